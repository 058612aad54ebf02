/* SPDX-License-Identifier: MIT */
/* The kernels: each form of a kernel is a program, compiled for the device on first use and kept on
 * disk (common/module.h). */
#include "opencl.h"

#include <build_stamp.h>
#include <stdlib.h>

extern const struct embedded kernel_text[]; /* the portable kernels in OpenCL C */

#define LANGUAGE "-cl-std=CL1.2"

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

/* Takes the binary for the only device that the program was built for. Returns an error of
 * OpenCL. */
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

/* Logs the error and the compiler's log, which is given in full or not at all. */
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

static int32_t make(void *user, const struct module_program *program, const char *source,
                    struct module_image *image, void **made)
{
    struct device *device = user;
    int error = 0;
    *made = device->cl->program_of_source(device->context, 1, &source, NULL, &error);
    if (!error)
        error = device->cl->build_program(*made, 1, &device->handle, program->options, NULL,
                                          NULL);
    if (!error)
        return HW_OK;
    explain(device, *made, error, image);
    if (*made)
        note(device, device->cl->release_program(*made), "release a program");
    *made = NULL;
    return answer(device, error, "compile a kernel");
}

/* An implementation may compile again for the binary: PoCL does, for groups of any size. */
static int32_t compile(void *user, const struct module_program *program, const char *source,
                       struct module_image *image)
{
    struct device *device = user;
    void *made;
    const int32_t status = make(user, program, source, image, &made);
    if (status)
        return status;
    const int error = take_binary(device, made, image);
    if (error)
        explain(device, made, error, image);
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

/* The options include correctly rounded quotients and square roots, if the device has them: the
 * quantisers need them to agree with others bit for bit. */
void program_begin(struct device *device, const char *options)
{
    uint64_t config = 0;
    if (device->cl->device_info(device->handle, DEVICE_SINGLE_CONFIG, sizeof config,
                                &config, NULL))
        config = 0;
    snprintf(device->options, sizeof device->options, LANGUAGE "%s%s",
             config & CORRECTLY_ROUNDED ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
             options);
    device->builder.host = device->host;
    device->builder.device = device->name;
    device->builder.driver = device->driver;
    device->builder.build = HW_BUILD_STAMP;
    device->builder.user = device;
    device->builder.compile = compile;
    device->builder.load = load;
    device->builder.make = make;
}

int32_t program_of_application(struct device *device, const struct hw_user_kernel *desc,
                               void **program)
{
    if (desc->blob)
        return load(device, desc->blob, (size_t)desc->blob_bytes, program);
    const struct embedded text = { desc->name, (const void *)desc->source,
                                   strlen(desc->source) };
    const struct module_program wanted = { .name = desc->name,
                                           .options = device->options,
                                           .parts = { &text } };
    return module_load(&device->builder, &wanted, program);
}

void program_end(struct device *device)
{
    for (int i = 0; i < PORTABLE_PROGRAMS + TUNED_PROGRAMS; i++)
        if (device->program[i].handle)
            note(device, device->cl->release_program(device->program[i].handle),
                 "release a program");
}

/* ---- kernels ---- */

/* The source of a program. */
struct recipe {
    const char *file, *entry, *name;
    const char *options;
};

/* The largest group, in work-items, in which the device runs this kernel. It may be smaller than
 * for other kernels, for example if this one needs many registers. */
static int32_t most_items(struct device *device, void *program, const char *entry,
                          size_t *most)
{
    int error = 0;
    void *kernel = device->cl->create_kernel(program, entry, &error);
    if (!error)
        error = device->cl->kernel_group_info(kernel, device->handle, KERNEL_GROUP_MOST,
                                              sizeof *most, most, NULL);
    if (kernel)
        note(device, device->cl->release_kernel(kernel), "release a kernel");
    return answer(device, error, "ask about a kernel");
}

/* Loads a program for groups of program->group work-items. Returns HW_UNSUPPORTED if the device
 * runs only smaller groups. */
static int32_t load_program(struct device *device, const struct recipe *recipe,
                            struct program *program)
{
    struct module_program wanted = { .name = recipe->name, .options = recipe->options };
    size_t most = 0;
    if (!module_parts(&wanted, kernel_text, recipe->file))
        return hw_fail(device->host, HW_UNSUPPORTED, "the plugin has no kernel %s",
                       recipe->file);
    int32_t status = module_load(&device->builder, &wanted, &program->handle);
    if (status)
        return status;
    status = most_items(device, program->handle, recipe->entry, &most);
    if (!status && most < program->group)
        status = hw_fail(device->host, HW_UNSUPPORTED,
                         "the device runs kernel %s in groups of at most %zu work-items; "
                         "it needs %u",
                         recipe->file, most, (unsigned)program->group);
    if (status) {
        note(device, device->cl->release_program(program->handle), "release a program");
        program->handle = NULL;
    }
    return status;
}

/* Loads it with the largest groups that the kernel can have. */
static int32_t find_portable(struct device *device, const struct lowered *l,
                             struct program *program)
{
    char name[64], options[256];
    const struct recipe recipe = { kernels[l->kernel].name, kernels[l->kernel].entry, name,
                                   options };
    int32_t status;
    lowered_name(l, name, sizeof name);
    program->group = device->group;
    do {
        snprintf(options, sizeof options, "%s -DGROUP=%u %s", device->options,
                 (unsigned)program->group, form_options[l->form]);
        status = load_program(device, &recipe, program);
    } while (status == HW_UNSUPPORTED && (program->group /= 2) >= LEAST_GROUP);
    return status;
}

static int32_t find_tuned(struct device *device, const struct tuned *tuned,
                          const struct launch *launch, struct program *program)
{
    char entry[64], own[256], options[400];
    const struct recipe recipe = { tuned->name, entry, tuned->name, options };
    snprintf(entry, sizeof entry, "%s_kernel", tuned->name);
    tuned->describe(device, launch, own, sizeof own);
    snprintf(options, sizeof options, "%s%s %s",
             launch->dots && device->dots ? "-cl-std=CL3.0" : LANGUAGE,
             device->options + sizeof LANGUAGE - 1, own);
    program->group = launch->group;
    return load_program(device, &recipe, program);
}

/* A kernel of a loaded program; the queue owns shared kernels. */
static int32_t make_kernel(struct queue *queue, int program, const char *entry,
                           enum sharing sharing, void **kernel)
{
    int error = 0;
    *kernel = queue->device->cl->create_kernel(queue->device->program[program].handle,
                                               entry, &error);
    if (!error && sharing == SHARED_KERNEL)
        queue->kernel[program] = *kernel;
    return answer(queue->device, error, "find a kernel");
}

int32_t program_portable(struct queue *queue, const struct lowered *l, enum sharing sharing,
                         void **kernel, size_t *group)
{
    struct device *device = queue->device;
    const int number = (int)l->form * PORTABLE_COUNT + (int)l->kernel;
    int32_t status = HW_OK;
    if (sharing == SHARED_KERNEL && queue->kernel[number]) {
        *kernel = queue->kernel[number];
        *group = device->program[number].group;
        return HW_OK;
    }
    pthread_mutex_lock(&device->lock);
    if (!device->program[number].handle)
        status = find_portable(device, l, &device->program[number]);
    *group = device->program[number].group;
    pthread_mutex_unlock(&device->lock);
    return status ? status
                  : make_kernel(queue, number, kernels[l->kernel].entry, sharing, kernel);
}

int32_t program_tuned(struct queue *queue, const struct tuned *tuned,
                      const struct launch *launch, enum sharing sharing, void **kernel)
{
    struct device *device = queue->device;
    const int number = PORTABLE_PROGRAMS + (int)launch->program;
    char entry[64];
    int32_t status = HW_OK;
    if (sharing == SHARED_KERNEL && queue->kernel[number]) {
        *kernel = queue->kernel[number];
        return HW_OK;
    }
    snprintf(entry, sizeof entry, "%s_kernel", tuned->name);
    pthread_mutex_lock(&device->lock);
    if (!device->program[number].handle)
        status = find_tuned(device, tuned, launch, &device->program[number]);
    pthread_mutex_unlock(&device->lock);
    return status ? status : make_kernel(queue, number, entry, sharing, kernel);
}

void program_drop(struct queue *queue)
{
    struct device *device = queue->device;
    for (int i = 0; i < PORTABLE_PROGRAMS + TUNED_PROGRAMS; i++)
        if (queue->kernel[i])
            note(device, device->cl->release_kernel(queue->kernel[i]), "release a kernel");
}
