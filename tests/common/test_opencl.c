/* SPDX-License-Identifier: MIT */
/* The services of plugins/common together, as an OpenCL plugin uses them: every portable
 * kernel is embedded, compiled by whatever OpenCL implementation is installed, and comes
 * out of the cache the second time. The argument is a directory for the cache. Skipped
 * without OpenCL. */
#include "common/module.h"
#include "common/symbols.h"

#include <stdlib.h>

extern const struct embedded kernel_text[]; /* opencl.h, args.h, ..., each kernel */

struct opencl {
#define REQUIRED SYMBOL_MEMBER
#include "opencl.def"
};

static const struct symbol symbols[] = {
#define REQUIRED(result, name, arguments, names) SYMBOL(struct opencl, name, names, true)
#include "opencl.def"
};

static const struct symbol_library library = {
    .files = "libOpenCL.so.1",
    .remedy = "install an OpenCL implementation",
    .symbols = symbols,
    .count = sizeof symbols / sizeof symbols[0],
};

enum { DEVICE_NAME = 0x102B, DRIVER_VERSION = 0x102D, ANY_DEVICE = -1 };
enum { PROGRAM_BINARY_SIZES = 0x1165, PROGRAM_BINARIES = 0x1166, BUILD_LOG = 0x1183 };

struct device {
    struct opencl cl;
    void *device, *context;
    char name[256], driver[256];
    const char *kernel; /* whose program is loaded */
    int compiled;
};

static int32_t build(struct device *d, void *program, const char *options)
{
    return program && !d->cl.build_program(program, 1, &d->device, options, NULL, NULL)
               ? HW_OK
               : HW_DRIVER;
}

static int32_t take_binary(struct device *d, void *program, struct module_image *image)
{
    unsigned char *binary;

    if (d->cl.program_info(program, PROGRAM_BINARY_SIZES, sizeof image->bytes,
                           &image->bytes, NULL))
        return HW_DRIVER;
    image->data = binary = malloc(image->bytes);
    if (!binary)
        return HW_NO_MEMORY;
    return d->cl.program_info(program, PROGRAM_BINARIES, sizeof binary, &binary, NULL)
               ? HW_DRIVER
               : HW_OK;
}

static int32_t compile(void *user, const struct module_program *p, const char *text,
                       struct module_image *image)
{
    struct device *d = user;
    void *program = d->cl.program_of_source(d->context, 1, &text, NULL, NULL);
    int32_t status = build(d, program, p->options);

    d->compiled++;
    if (program && status)
        d->cl.build_info(program, d->device, BUILD_LOG, sizeof image->log, image->log,
                         NULL);
    if (status == HW_OK)
        status = take_binary(d, program, image);
    if (program)
        d->cl.release_program(program);
    return status;
}

/* A module is the kernel; it keeps its program alive. */
static int32_t load(void *user, const void *image, size_t bytes, void **module)
{
    struct device *d = user;
    const unsigned char *binary = image;
    void *program = d->cl.program_of_binary(d->context, 1, &d->device, &bytes, &binary,
                                            NULL, NULL);
    int32_t status = build(d, program, "");

    *module = status ? NULL : d->cl.create_kernel(program, d->kernel, NULL);
    if (program)
        d->cl.release_program(program);
    return *module ? HW_OK : HW_DRIVER;
}

static int32_t say(void *instance, int32_t status, const char *text)
{
    (void)instance;
    printf("# %s\n", text);
    return status;
}

static void log_line(void *instance, int32_t level, const char *text)
{
    (void)instance, (void)level;
    printf("# %s\n", text);
}

/* The first device of the first platform. */
static bool open_device(const struct hw_host *host, struct device *d)
{
    void *platform = NULL;
    uint32_t count = 0;

    if (symbols_load(host, &library, &d->cl) || d->cl.get_platforms(1, &platform, &count) ||
        count == 0 ||
        d->cl.get_devices(platform, (uint64_t)(uint32_t)ANY_DEVICE, 1, &d->device, &count))
        return false;
    d->cl.device_info(d->device, DEVICE_NAME, sizeof d->name - 1, d->name, NULL);
    d->cl.device_info(d->device, DRIVER_VERSION, sizeof d->driver - 1, d->driver, NULL);
    d->context = d->cl.create_context(NULL, 1, &d->device, NULL, NULL, NULL);
    printf("# %s, driver %s\n", d->name, d->driver);
    return d->context != NULL;
}

static int tests, failures;

/* The first time it is compiled, the second time it is not. */
static void check(const struct hw_host *host, struct device *d, const char *kernel,
                  const char *types, const char *options)
{
    char name[64];
    struct module_program program = { .name = name, .options = options };
    bool good = module_parts(&program, kernel_text, kernel);

    snprintf(name, sizeof name, "%s %s", kernel, types);
    d->kernel = kernel;
    for (int time = 1; time <= 2; time++) {
        struct module_builder builder = { .host = host,
                                          .device = d->name,
                                          .driver = d->driver,
                                          .build = "test",
                                          .user = d,
                                          .compile = compile,
                                          .load = load };
        void *module = NULL;
        d->compiled = 0;
        good = good && module_load(&builder, &program, &module) == HW_OK &&
               (time == 1 || d->compiled == 0);
        if (module)
            d->cl.release_kernel(module);
    }
    printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
    failures += !good;
}

enum class { MIXED_KERNEL, PLAIN_KERNEL, WEIGHTED_KERNEL };

static const struct {
    enum class class;
    const char *name;
} kernels[] = {
#define MIXED(name, args, pointers)    { MIXED_KERNEL, #name },
#define PLAIN(name, args, pointers)    { PLAIN_KERNEL, #name },
#define WEIGHTED(name, args, pointers) { WEIGHTED_KERNEL, #name },
#include "kernels.def"
};

static const struct {
    const char *act, *wgt;
} variants[] = {
#define VARIANT(act, wgt) { #act, #wgt },
#include "kernels.def"
};

/* A kernel in every variant that it has. */
static void check_variants(const struct hw_host *host, struct device *d, size_t kernel)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const char *act = variants[i].act, *wgt = variants[i].wgt;
        char types[32], options[64];
        if (kernels[kernel].class == PLAIN_KERNEL && strcmp(act, wgt))
            continue;
        snprintf(types, sizeof types, "%s %s", act, wgt);
        snprintf(options, sizeof options, "-cl-std=CL1.2 -DACT=%s -DWGT=%s", act, wgt);
        check(host, d, kernels[kernel].name, types, options);
    }
}

int main(int argc, char **argv)
{
    static struct device device;
    const struct hw_host host = { .size = sizeof host,
                                  .fail = say,
                                  .log = log_line,
                                  .cache_dir = argc == 2 ? argv[1] : "" };

    if (!open_device(&host, &device)) {
        printf("1..1\nok 1 # SKIP not applicable: no OpenCL implementation here\n");
        return 0;
    }
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i].class == MIXED_KERNEL)
            check(&host, &device, kernels[i].name, "mixed", "-cl-std=CL1.2");
        else
            check_variants(&host, &device, i);
    printf("1..%d\n", tests);
    device.cl.release_context(device.context);
    return failures > 0;
}
