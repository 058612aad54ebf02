/* SPDX-License-Identifier: MIT */
/* Kernels of the application: source text, PTX that the driver translates, or machine code for the
 * card. */
#include "launch.h"

#include <limits.h>
#include <stdlib.h>

struct kernel {
    struct device *device;
    void *module, *function;
    unsigned group[3];
};

/* ---- building ---- */

/* The value of a kernel's parameter: the address of a tensor's first element, a 64-bit integer, or
 * an f32. */
union value {
    uint64_t address;
    int64_t i;
    float f;
};

static size_t value_bytes(char letter)
{
    return letter == 'f' ? sizeof(float) : sizeof(uint64_t);
}

/* A kernel with more parameters than arguments would read undefined values. Drivers older than CUDA
 * 12.4 do not report parameters. */
static int32_t check_parameters(const struct kernel *kernel, const char *signature)
{
    struct device *device = kernel->device;
    const struct driver *cuda = device->cuda;
    const size_t letters = strlen(signature);
    size_t count = 0, offset, bytes;
    int result;
    if (!cuda->function_parameter)
        return HW_OK;
    while (!(result = cuda->function_parameter(kernel->function, count, &offset, &bytes))) {
        if (count < letters && bytes != value_bytes(signature[count]))
            return hw_fail(device->host, HW_INVALID,
                           "parameter %zu of the kernel has %zu bytes, '%c' of the "
                           "signature \"%s\" has %zu",
                           count, bytes, signature[count], signature,
                           value_bytes(signature[count]));
        count++;
    }
    if (result != INVALID_VALUE) /* the answer past the last parameter */
        return answer(device, result, "ask for the parameters of a kernel");
    return count == letters
               ? HW_OK
               : hw_fail(device->host, HW_INVALID,
                         "the kernel has %zu parameters, the signature \"%s\" has %zu",
                         count, signature, letters);
}

/* PTX is text, which the driver reads to its NUL. */
static int32_t load_blob(struct device *device, const struct hw_user_kernel *desc,
                         void **module)
{
    char *image = calloc(1, (size_t)desc->blob_bytes + 1);
    if (!image)
        return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
    memcpy(image, desc->blob, (size_t)desc->blob_bytes);
    const int32_t status = launch_load(device, image, desc->name, module);
    free(image);
    return status;
}

static int32_t load(struct kernel *kernel, const struct hw_user_kernel *desc)
{
    struct device *device = kernel->device;
    int32_t status = desc->source ? module_of_source(device, desc, &kernel->module)
                                  : load_blob(device, desc, &kernel->module);
    if (!status)
        status = answer(
            device,
            device->cuda->module_function(&kernel->function, kernel->module, desc->name),
            desc->source ? "find the kernel in the source text, where it has to be "
                           "extern \"C\" __global__"
                         : "find the kernel in the blob");
    return status ? status : check_parameters(kernel, desc->signature);
}

static void unload(const struct kernel *kernel)
{
    if (kernel->module)
        note(kernel->device, kernel->device->cuda->module_unload(kernel->module),
             "unload a kernel");
}

int32_t kernel_build(void *self, const struct hw_user_kernel *desc, void **out)
{
    struct device *device = self;
    if (!hw_knows(desc, sizeof *desc))
        return too_new(device->host, "kernel");
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
    *kernel = (struct kernel){
        .device = device,
        .group = { desc->group, desc->group_y ? desc->group_y : 1,
                   desc->group_z ? desc->group_z : 1 },
    };
    int32_t status = enter(device);
    if (!status) {
        status = load(kernel, desc);
        if (status)
            unload(kernel);
        leave(device);
    }
    if (status)
        free(kernel);
    else
        *out = kernel;
    return status;
}

void kernel_destroy(void *self)
{
    struct kernel *kernel = self;
    if (enter_to_close(kernel->device, "free a kernel")) {
        unload(kernel);
        leave(kernel->device);
    }
    free(kernel);
}

/* ---- launching ---- */

enum { MOST_ARGUMENTS = 64 };

static union value value_of(const struct hw_arg *arg)
{
    const struct hw_tensor *t = arg->tensor;
    switch (arg->kind) {
    case HW_ARG_TENSOR:
        return (union value){ .address = launch_base(t) + t->buffer->offset + t->offset };
    case HW_ARG_INT:
        return (union value){ .i = arg->i };
    default:
        return (union value){ .f = (float)arg->f };
    }
}

static int32_t submit(struct queue *queue, const struct kernel *kernel,
                      const uint64_t groups[3], void **parameters)
{
    const unsigned *group = kernel->group;
    const int32_t status = enter(queue->device);
    if (status)
        return status;
    const int result = queue->device->cuda->launch(
        kernel->function, (unsigned)groups[0], (unsigned)groups[1], (unsigned)groups[2],
        group[0], group[1], group[2], 0, queue->stream, parameters, NULL);
    leave(queue->device);
    return answer(queue->device, result, "launch a kernel of the application");
}

int32_t kernel_launch_3d(void *self, void *kernel, const uint64_t groups[3],
                         const struct hw_arg *args, uint32_t count)
{
    struct queue *queue = self;
    const struct hw_host *host = queue->device->host;
    union value values[MOST_ARGUMENTS];
    void *parameters[MOST_ARGUMENTS];
    if (count > MOST_ARGUMENTS)
        return hw_fail(host, HW_UNSUPPORTED, "%u arguments; at most %d are supported",
                       (unsigned)count, MOST_ARGUMENTS);
    for (int i = 0; i < 3; i++)
        if (groups[i] > INT_MAX)
            return hw_fail(host, HW_UNSUPPORTED, "%llu groups; no device launches as many",
                           (unsigned long long)groups[i]);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = value_of(&args[i]);
        parameters[i] = &values[i];
    }
    return submit(queue, kernel, groups, parameters);
}

int32_t kernel_launch(void *self, void *kernel, uint64_t groups, const struct hw_arg *args,
                      uint32_t count)
{
    return kernel_launch_3d(self, kernel, (const uint64_t[3]){ groups, 1, 1 }, args, count);
}
