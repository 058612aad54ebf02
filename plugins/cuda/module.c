/* SPDX-License-Identifier: MIT */
/* Kernels of the application from source text, compiled by NVRTC if it is installed. */
#include "common/module.h"

#include "launch.h"

#include <build_stamp.h>
#include <stdlib.h>

enum { MOST_ARCHS = 64, OPTION_BYTES = 64 };

static const struct symbol symbols[] = {
#define REQUIRED(result, name, arguments, names) SYMBOL(struct compiler, name, names, true)
#include "nvrtc.def"
};

#if defined(_WIN32)
#define NVRTC_13 "nvrtc64_130_0.dll"
#define NVRTC_12 "nvrtc64_120_0.dll"
#define NVRTC_11 "nvrtc64_112_0.dll"
#else
#define NVRTC_13 "libnvrtc.so.13"
#define NVRTC_12 "libnvrtc.so.12"
#define NVRTC_11 "libnvrtc.so.11.2|libnvrtc.so"
#endif

/* Prefers the NVRTC of the driver's own CUDA, then older ones: the driver loads their output. Newer
 * ones are opened only for a better message. */
static const char *files_for(const struct plugin *plugin)
{
    const int major = plugin->supported / 1000;
    return major >= 13   ? NVRTC_13 "|" NVRTC_12 "|" NVRTC_11
           : major == 12 ? NVRTC_12 "|" NVRTC_11 "|" NVRTC_13
                         : NVRTC_11 "|" NVRTC_12 "|" NVRTC_13;
}

static const struct symbol_library library = {
    .symbols = symbols,
    .count = sizeof symbols / sizeof symbols[0],
    .remedy = "; kernels in source text need NVRTC 11.2 or later, a library of the CUDA "
              "toolkit: install it, or pass `blob`, which nvcc -ptx makes",
};

/* One compilation. `machine_code` is false if NVRTC is older than the card: then the driver
 * translates PTX for the newest card that NVRTC knows. */
struct compilation {
    struct device *device;
    const struct compiler *nvrtc;
    bool machine_code;
};

static const char *words_of(const struct compilation *c, int result)
{
    const char *words = c->nvrtc->error_string(result);
    return words ? words : "an error that this NVRTC cannot name";
}

/* "cannot <what>: <NVRTC's words>" */
static int32_t answer_nvrtc(const struct compilation *c, int result, const char *what)
{
    if (!result)
        return HW_OK;
    return hw_fail(c->device->host,
                   result == NVRTC_OUT_OF_MEMORY ? HW_NO_MEMORY : HW_DRIVER,
                   "cannot %s: %s (%d)", what, words_of(c, result), result);
}

/* ---- which compiler ---- */

static int32_t find_compiler(struct plugin *plugin)
{
    struct symbol_library wanted = library;
    int32_t status = HW_OK;
    wanted.files = files_for(plugin);
    pthread_mutex_lock(&plugin->lock);
    if (!plugin->nvrtc.version)
        status = symbols_load(plugin->host, &wanted, &plugin->nvrtc);
    pthread_mutex_unlock(&plugin->lock);
    return status ? HW_UNSUPPORTED : HW_OK; /* this device is there */
}

/* Chooses the card's architecture, or else the newest one before it. */
static int32_t choose_arch(struct compilation *c, int *best)
{
    const int capability = c->device->capability;
    int known[MOST_ARCHS], count = 0;
    int32_t status = answer_nvrtc(c, c->nvrtc->arch_count(&count), "count architectures");
    if (!status && (count < 1 || count > MOST_ARCHS))
        status = hw_fail(c->device->host, HW_DRIVER, "NVRTC knows %d architectures", count);
    if (!status)
        status = answer_nvrtc(c, c->nvrtc->archs(known), "list architectures");
    *best = 0;
    for (int i = 0; !status && i < count; i++)
        if (known[i] > *best && known[i] <= capability)
            *best = known[i];
    if (!status && !*best)
        status = hw_fail(c->device->host, HW_UNSUPPORTED,
                         "the installed NVRTC compiles for no card as old as this one, of "
                         "compute capability %d.%d",
                         capability / 10, capability % 10);
    c->machine_code = *best == capability;
    return status;
}

/* A driver loads machine code of its own major version of CUDA and of earlier ones, and translates
 * PTX that is not newer than itself. */
static int32_t check_version(const struct compilation *c, int major, int minor)
{
    const struct plugin *plugin = c->device->plugin;
    if (c->machine_code ? major <= plugin->supported / 1000
                        : major * 1000 + minor * 10 <= plugin->supported)
        return HW_OK;
    return hw_fail(
        c->device->host, HW_UNSUPPORTED,
        "the installed NVRTC belongs to CUDA %d.%d, but the driver supports %s and cannot "
        "load NVRTC's %s: install NVRTC %d.%d or a newer driver, or pass `blob`, made by "
        "nvcc -ptx of %s",
        major, minor, plugin->version, c->machine_code ? "machine code" : "PTX",
        plugin->supported / 1000, plugin->supported % 1000 / 10, plugin->version);
}

/* ---- compiling ---- */

static int take_image(const struct compilation *c, void *program,
                      struct module_image *image)
{
    const struct compiler *nvrtc = c->nvrtc;
    const int result = c->machine_code ? nvrtc->cubin_bytes(program, &image->bytes)
                                       : nvrtc->ptx_bytes(program, &image->bytes);
    if (result || !image->bytes)
        return result ? result : NVRTC_INTERNAL;
    image->data = malloc(image->bytes);
    if (!image->data)
        return NVRTC_OUT_OF_MEMORY;
    return c->machine_code ? nvrtc->cubin(program, image->data)
                           : nvrtc->ptx(program, image->data);
}

static void explain(const struct compilation *c, void *program, int result,
                    struct module_image *image)
{
    size_t bytes = 0;
    char *log = NULL;
    if (program && !c->nvrtc->log_bytes(program, &bytes) && bytes && bytes < SIZE_MAX)
        log = calloc(1, bytes + 1);
    if (log && c->nvrtc->log(program, log))
        log[0] = '\0';
    snprintf(image->log, sizeof image->log, "%s (%d)%s%s", words_of(c, result), result,
             log && log[0] ? ": " : "", log ? log : "");
    free(log);
}

static int32_t compile(void *user, const struct module_program *wanted, const char *text,
                       struct module_image *image)
{
    const struct compilation *c = user;
    void *program = NULL;
    int result = c->nvrtc->program_create(&program, text, wanted->name, 0, NULL, NULL);
    if (!result)
        result = c->nvrtc->program_compile(program, 1, &wanted->options);
    if (!result)
        result = take_image(c, program, image);
    if (result)
        explain(c, program, result, image);
    if (program)
        c->nvrtc->program_destroy(&program);
    return answer_nvrtc(c, result, "compile a kernel");
}

/* PTX is text, which the driver reads to its NUL. */
static int32_t load(void *user, const void *image, size_t bytes, void **module)
{
    const struct compilation *c = user;
    if (!c->machine_code && ((const char *)image)[bytes - 1])
        return hw_fail(c->device->host, HW_DRIVER, "the PTX has no end");
    return launch_load(c->device, image, "the application", module);
}

int32_t module_of_source(struct device *device, const struct hw_user_kernel *desc,
                         void **module)
{
    struct compilation c = { .device = device, .nvrtc = &device->plugin->nvrtc };
    char options[OPTION_BYTES], arch[OPTION_BYTES], driver[OPTION_BYTES];
    const struct embedded text = { desc->name, (const void *)desc->source,
                                   strlen(desc->source) };
    const struct module_program wanted = { .name = desc->name,
                                           .options = options,
                                           .parts = { &text } };
    struct module_builder builder = { .host = device->host,
                                      .device = arch,
                                      .driver = driver,
                                      .build = HW_BUILD_STAMP,
                                      .user = &c,
                                      .compile = compile,
                                      .load = load };
    int best = 0, major = 0, minor = 0;
    int32_t status = find_compiler(device->plugin);
    if (!status)
        status = choose_arch(&c, &best);
    if (!status)
        status = answer_nvrtc(&c, c.nvrtc->version(&major, &minor), "ask for the version");
    if (!status)
        status = check_version(&c, major, minor);
    if (status)
        return status;
    snprintf(options, sizeof options, "--gpu-architecture=%s_%d",
             c.machine_code ? "sm" : "compute", best);
    snprintf(arch, sizeof arch, "sm_%d", device->capability);
    snprintf(driver, sizeof driver, "NVRTC %d.%d, %s", major, minor,
             device->plugin->version);
    return module_load(&builder, &wanted, module);
}
