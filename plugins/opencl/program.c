/* SPDX-License-Identifier: MIT */
/* The kernels: each form of one is a program, compiled for the device when it is first used and
 * kept on disk (common/module.h). */
#include "opencl.h"

#include <stdlib.h>

extern const struct embedded kernel_text[]; /* the portable kernels in OpenCL C */

enum { PROGRAM_BINARY_SIZES = 0x1165, PROGRAM_BINARIES = 0x1166, BUILD_LOG = 0x1183 };
enum { KERNEL_GROUP_MOST = 0x11B0, DEVICE_SINGLE_CONFIG = 0x101B };

#define VARIANT_OPTIONS(act, wgt) "-DACT=" #act " -DWGT=" #wgt

static const char *const form_options[FORM_COUNT] = {
    "",
#define VARIANT(act, wgt) VARIANT_OPTIONS(act, wgt),
#include "../../kernels/kernels.def"
};

/* A kernel's file, and its entry point (dialect/opencl.h). */
static const struct {
    const char *name, *entry;
} kernels[PORTABLE_COUNT] = {
#define K(name, args, pointers) { #name, #name "_kernel" },
#define MIXED                   K
#define PLAIN                   K
#define WEIGHTED                K
#include "../../kernels/kernels.def"
#undef K
};

/* ---- from text to an image, from an image to a program ---- */

/* Of the one device that the program was built for. Returns an error of OpenCL. */
static int take_binary(const struct device *device, void *program,
                       struct module_image *image)
{
    unsigned char *binary;
    size_t size = 0;
    int error = device->cl->program_info(program, PROGRAM_BINARY_SIZES, sizeof image->bytes,
                                         &image->bytes, &size);
    if (!error && (size != sizeof image->bytes || !image->bytes))
        error = INVALID_BINARY;
    if (error)
        return error;
    image->data = binary = malloc(image->bytes);
    if (!binary)
        return OUT_OF_HOST_MEMORY;
    error = device->cl->program_info(program, PROGRAM_BINARIES, sizeof binary, &binary,
                                     &size);
    return !error && size != sizeof binary ? INVALID_BINARY : error;
}

/* The error, and what the compiler says about it. The log is given whole or not at all. */
static void explain(const struct device *device, void *program, int error,
                    struct module_image *image)
{
    size_t size = 0;
    snprintf(image->log, sizeof image->log, "%s (%d)", error_name(error), error);
    if (!program ||
        device->cl->build_info(program, device->handle, BUILD_LOG, 0, NULL, &size))
        return;
    char *log = calloc(1, size + 1);
    if (log && !device->cl->build_info(program, device->handle, BUILD_LOG, size, log, NULL))
        snprintf(image->log, sizeof image->log, "%s (%d): %s", error_name(error), error,
                 log);
    free(log);
}

static int32_t compile(void *user, const struct module_program *program, const char *source,
                       struct module_image *image)
{
    struct device *device = user;
    int error = 0;
    void *made = device->cl->program_of_source(device->context, 1, &source, NULL, &error);
    if (!error)
        error = device->cl->build_program(made, 1, &device->handle, program->options, NULL,
                                          NULL);
    if (!error)
        error = take_binary(device, made, image);
    if (error)
        explain(device, made, error, image);
    if (made)
        note(device, device->cl->release_program(made), "release a program");
    return answer(device, error, "compile a kernel");
}

static int32_t load(void *user, const void *image, size_t bytes, void **program)
{
    struct device *device = user;
    const unsigned char *binary = image;
    int error = 0, refused = 0;
    *program = device->cl->program_of_binary(device->context, 1, &device->handle, &bytes,
                                             &binary, &refused, &error);
    if (!error)
        error = refused;
    if (!error)
        error = device->cl->build_program(*program, 1, &device->handle, "", NULL, NULL);
    if (error && *program) {
        note(device, device->cl->release_program(*program), "release a program");
        *program = NULL;
    }
    return answer(device, error, "load a compiled kernel");
}

/* Quotients and square roots that are rounded correctly, where the device has them: the
 * quantisers need them to agree bit for bit with others. */
void program_begin(struct device *device)
{
    enum { CORRECTLY_ROUNDED = 128 };
    uint64_t config = 0;
    if (device->cl->device_info(device->handle, DEVICE_SINGLE_CONFIG, sizeof config,
                                &config, NULL))
        config = 0;
    snprintf(device->options, sizeof device->options, "-cl-std=CL1.2%s",
             config & CORRECTLY_ROUNDED ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    device->builder.host = device->host;
    device->builder.device = device->name;
    device->builder.driver = device->driver;
    device->builder.build = HW_BUILD_STAMP;
    device->builder.user = device;
    device->builder.compile = compile;
    device->builder.load = load;
}

void program_end(struct device *device)
{
    for (int form = 0; form < FORM_COUNT; form++)
        for (int kernel = 0; kernel < PORTABLE_COUNT; kernel++)
            if (device->program[form][kernel].handle)
                note(device,
                     device->cl->release_program(device->program[form][kernel].handle),
                     "release a program");
}

/* ---- kernels ---- */

static int32_t load_program(struct device *device, const struct lowered *l,
                            struct program *program)
{
    char name[64], options[256];
    struct module_program wanted = { .name = name, .options = options };
    lowered_name(l, name, sizeof name);
    snprintf(options, sizeof options, "%s -DGROUP=%u %s", device->options,
             (unsigned)program->group, form_options[l->form]);
    if (!module_parts(&wanted, kernel_text, kernels[l->kernel].name))
        return hw_fail(device->host, HW_UNSUPPORTED, "the plugin has no kernel %s", name);
    return module_load(&device->builder, &wanted, &program->handle);
}

/* The most work-items that the device allows a group of this kernel, which may be fewer than for
 * others: if it needs many registers, say. */
static int32_t most_items(struct device *device, const struct program *program,
                          const char *entry, size_t *most)
{
    int error = 0;
    void *kernel = device->cl->create_kernel(program->handle, entry, &error);
    if (!error)
        error = device->cl->kernel_info(kernel, device->handle, KERNEL_GROUP_MOST,
                                        sizeof *most, most, NULL);
    if (kernel)
        note(device, device->cl->release_kernel(kernel), "release a kernel");
    return answer(device, error, "ask about a kernel");
}

/* With the largest groups that the kernel can have. */
static int32_t find_program(struct device *device, const struct lowered *l,
                            struct program *program)
{
    for (program->group = device->group;; program->group /= 2) {
        size_t most = 0;
        int32_t status = load_program(device, l, program);
        if (!status)
            status = most_items(device, program, kernels[l->kernel].entry, &most);
        if (!status && most >= program->group)
            return status;
        if (program->handle)
            note(device, device->cl->release_program(program->handle), "release a program");
        program->handle = NULL;
        if (status)
            return status;
        if (program->group == LEAST_GROUP)
            return hw_fail(device->host, HW_UNSUPPORTED,
                           "the device runs kernel %s in groups of at most %zu work-items; "
                           "it needs %d",
                           kernels[l->kernel].name, most, LEAST_GROUP);
    }
}

int32_t program_kernel(struct queue *queue, const struct lowered *l, void **kernel,
                       size_t *group)
{
    struct device *device = queue->device;
    struct program *program = &device->program[l->form][l->kernel];
    void **own = &queue->kernel[l->form][l->kernel];
    int32_t status = HW_OK;
    int error = 0;
    if (!*own) {
        pthread_mutex_lock(&device->lock);
        if (!program->handle)
            status = find_program(device, l, program);
        pthread_mutex_unlock(&device->lock);
        if (status)
            return status;
        *own = device->cl->create_kernel(program->handle, kernels[l->kernel].entry, &error);
        if (error)
            *own = NULL;
    }
    *kernel = *own;
    *group = program->group;
    return answer(device, error, "find a kernel");
}

void program_drop(struct queue *queue)
{
    struct device *device = queue->device;
    for (int form = 0; form < FORM_COUNT; form++)
        for (int kernel = 0; kernel < PORTABLE_COUNT; kernel++)
            if (queue->kernel[form][kernel])
                note(device, device->cl->release_kernel(queue->kernel[form][kernel]),
                     "release a kernel");
}
