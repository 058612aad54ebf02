/* SPDX-License-Identifier: MIT */
/* Kernels of the application: OpenCL C that the device's implementation compiles, or one of its
 * program binaries. */
#include "opencl.h"

#include <limits.h>
#include <stdlib.h>

struct kernel {
    struct device *device;
    void *program, *handle;
    size_t group[3]; /* work-items */
    pthread_mutex_t
        lock; /* of the arguments, which the handle keeps until they are set again */
};

/* ---- parameters ---- */

/* The value of a kernel's parameters: a tensor has a memory object and the bytes from its start to
 * the first element, an integer has 64 bits, a float is an f32. Each function sets the parameter at
 * `*index` and counts it; it returns an error of OpenCL. */
static int set_memory(const struct kernel *kernel, uint32_t *index, void *memory)
{
    return kernel->device->cl->set_argument(kernel->handle, (*index)++, sizeof memory,
                                            memory ? (void *)&memory : NULL);
}

static int set_integer(const struct kernel *kernel, uint32_t *index, int64_t i)
{
    return kernel->device->cl->set_argument(kernel->handle, (*index)++, sizeof i, &i);
}

static int set_float(const struct kernel *kernel, uint32_t *index, float f)
{
    return kernel->device->cl->set_argument(kernel->handle, (*index)++, sizeof f, &f);
}

static int set_argument(const struct kernel *kernel, uint32_t *index,
                        const struct hw_arg *arg)
{
    const struct hw_tensor *t = arg->tensor;
    int error;
    switch (arg->kind) {
    case HW_ARG_TENSOR:
        error = set_memory(kernel, index, t->buffer->impl);
        return error ? error
                     : set_integer(kernel, index, (int64_t)(t->buffer->offset + t->offset));
    case HW_ARG_INT:
        return set_integer(kernel, index, arg->i);
    default:
        return set_float(kernel, index, (float)arg->f);
    }
}

/* Sets the parameters of a letter. Fails if a parameter has another size, or is a pointer instead
 * of a number. */
static int try_letter(const struct kernel *kernel, uint32_t *index, char letter)
{
    int error;
    switch (letter) {
    case 'i':
        return set_integer(kernel, index, 0);
    case 'f':
        return set_float(kernel, index, 0.0f);
    default:
        error = set_memory(kernel, index, NULL);
        return error ? error : set_integer(kernel, index, 0);
    }
}

/* The type that a parameter must have. A tensor has two parameters. */
static const char *wanted_by(char letter, bool second)
{
    if (letter == 'f')
        return "a float";
    return letter == 'i' || second ? "a long" : "a global pointer";
}

static uint32_t parameters_of(const char *signature)
{
    uint32_t count = 0;
    for (; *signature; signature++)
        count += *signature == 'i' || *signature == 'f' ? 1 : 2;
    return count;
}

/* ---- building ---- */

static int32_t check_parameters(const struct kernel *kernel, const char *signature)
{
    struct device *device = kernel->device;
    uint32_t count = 0, index = 0;
    const int error = device->cl->kernel_info(kernel->handle, KERNEL_PARAMETERS,
                                              sizeof count, &count, NULL);
    if (error)
        return answer(device, error, "ask for the parameters of a kernel");
    if (count != parameters_of(signature))
        return hw_fail(device->host, HW_INVALID,
                       "the kernel has %u parameters, the signature \"%s\" has %u: a "
                       "tensor is two, a pointer and a long",
                       (unsigned)count, signature, (unsigned)parameters_of(signature));
    for (const char *letter = signature; *letter; letter++) {
        const uint32_t first = index;
        const int refused = try_letter(kernel, &index, *letter);
        if (refused == INVALID_ARG_SIZE || refused == INVALID_ARG_VALUE)
            return hw_fail(device->host, HW_INVALID,
                           "parameter %u of the kernel is not %s, as '%c' of the signature "
                           "\"%s\" asks for",
                           (unsigned)(index - 1), wanted_by(*letter, index - first == 2),
                           *letter, signature);
        if (refused)
            return answer(device, refused, "set a parameter of a kernel");
    }
    return HW_OK;
}

/* Queries the implementation about a compiled kernel. */
static int32_t ask(const struct kernel *kernel, uint32_t what, size_t size, void *value)
{
    struct device *device = kernel->device;
    return answer(device,
                  device->cl->kernel_group_info(kernel->handle, device->handle, what, size,
                                                value, NULL),
                  "ask about a kernel");
}

static int32_t check_group_most(const struct kernel *kernel)
{
    size_t most = 0, left;
    const int32_t status = ask(kernel, KERNEL_GROUP_MOST, sizeof most, &most);
    if (status)
        return status;
    left = most;
    for (int i = 0; i < 3; i++)
        left /= kernel->group[i];
    return left ? HW_OK
                : hw_fail(
                      kernel->device->host, HW_UNSUPPORTED,
                      "groups of %zu x %zu x %zu work-items; the device runs this kernel "
                      "in groups of at most %zu",
                      kernel->group[0], kernel->group[1], kernel->group[2], most);
}

/* The attribute reqd_work_group_size; 0: there is none. */
static int32_t check_group_required(const struct kernel *kernel)
{
    const size_t *group = kernel->group;
    size_t required[3] = { 0 };
    const int32_t status = ask(kernel, KERNEL_GROUP_REQUIRED, sizeof required, required);
    if (status || !required[0] || !memcmp(required, group, sizeof required))
        return status;
    return hw_fail(kernel->device->host, HW_INVALID,
                   "groups of %zu x %zu x %zu work-items; the kernel requires %zu x %zu x "
                   "%zu (reqd_work_group_size)",
                   group[0], group[1], group[2], required[0], required[1], required[2]);
}

/* PoCL ends the process if a kernel with more memory than the device's is launched. */
static int32_t check_local_memory(const struct kernel *kernel)
{
    struct device *device = kernel->device;
    uint64_t bytes = 0;
    const uint64_t most = device_local_memory(device->plugin, device->handle);
    const int32_t status = ask(kernel, KERNEL_LOCAL_MEMORY, sizeof bytes, &bytes);
    if (status || !most || bytes <= most)
        return status;
    return hw_fail(device->host, HW_UNSUPPORTED,
                   "the kernel has %llu bytes of local memory; the device has %llu",
                   (unsigned long long)bytes, (unsigned long long)most);
}

static int32_t build(struct kernel *kernel, const struct hw_user_kernel *desc)
{
    struct device *device = kernel->device;
    int error = 0;
    int32_t status = program_of_application(device, desc, &kernel->program);
    if (status)
        return status;
    kernel->handle = device->cl->create_kernel(kernel->program, desc->name, &error);
    status = answer(device, error, "find the kernel in the program");
    if (!status)
        status = check_parameters(kernel, desc->signature);
    if (!status)
        status = check_group_most(kernel);
    if (!status)
        status = check_group_required(kernel);
    return status ? status : check_local_memory(kernel);
}

int32_t kernel_build(void *self, const struct hw_user_kernel *desc, void **out)
{
    struct device *device = self;
    int32_t status = check_lost(device);
    if (status)
        return status;
    if (!hw_knows(desc, sizeof *desc))
        return too_new(device->host, "kernel");
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
    kernel->device = device;
    kernel->group[0] = desc->group;
    kernel->group[1] = desc->group_y ? desc->group_y : 1;
    kernel->group[2] = desc->group_z ? desc->group_z : 1;
    pthread_mutex_init(&kernel->lock, NULL);
    status = build(kernel, desc);
    if (status)
        kernel_destroy(kernel);
    else
        *out = kernel;
    return status;
}

void kernel_destroy(void *self)
{
    struct kernel *kernel = self;
    struct device *device = kernel->device;
    if (kernel->handle)
        note(device, device->cl->release_kernel(kernel->handle), "release a kernel");
    if (kernel->program)
        note(device, device->cl->release_program(kernel->program), "release a program");
    pthread_mutex_destroy(&kernel->lock);
    free(kernel);
}

/* ---- launching ---- */

static int submit(struct queue *queue, struct kernel *kernel, const size_t items[3],
                  const struct hw_arg *args, uint32_t count)
{
    uint32_t index = 0;
    int error = 0;
    pthread_mutex_lock(&kernel->lock);
    for (uint32_t i = 0; i < count && !error; i++)
        error = set_argument(kernel, &index, &args[i]);
    if (!error)
        error = queue->device->cl->launch(queue->handle, kernel->handle, 3, NULL, items,
                                          kernel->group, 0, NULL, NULL);
    pthread_mutex_unlock(&kernel->lock);
    return error ? error : launch_flush(queue, 1);
}

int32_t kernel_launch_3d(void *self, void *kernel, const uint64_t groups[3],
                         const struct hw_arg *args, uint32_t count)
{
    struct queue *queue = self;
    const size_t *group = ((struct kernel *)kernel)->group;
    size_t items[3];
    const int32_t status = check_lost(queue->device);
    if (status)
        return status;
    for (int i = 0; i < 3; i++) {
        if (groups[i] > INT_MAX)
            return hw_fail(queue->device->host, HW_UNSUPPORTED,
                           "%llu groups; no device launches as many",
                           (unsigned long long)groups[i]);
        items[i] = (size_t)groups[i] * group[i];
    }
    return answer(queue->device, submit(queue, kernel, items, args, count),
                  "launch a kernel of the application");
}

int32_t kernel_launch(void *self, void *kernel, uint64_t groups, const struct hw_arg *args,
                      uint32_t count)
{
    return kernel_launch_3d(self, kernel, (const uint64_t[3]){ groups, 1, 1 }, args, count);
}
