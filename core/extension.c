/* SPDX-License-Identifier: MIT */
/* extension.c - what lies beyond the op table: layouts of a device's own, ops that one plugin
 * has, kernels that the user wrote. */
#define _POSIX_C_SOURCE 200809L
#include "work.h"

#include <stdlib.h>
#include <string.h>

/* ---- whether a device computes an op ---- */

enum hw_status hw_device_supports(struct hw_device *device, uint32_t op, const void *args,
                                  size_t size)
{
    union any_op copy;
    char why[512] = "";
    uint64_t scratch = 0;
    if (!device || !args || op >= HW_OP_COUNT)
        return fail(HW_INVALID, "hw_device_supports: device and args may not be NULL, and "
                                "op is an enum hw_op");
    enum hw_status status = guard(device->context);
    if (status || (status = device_wake(device)))
        return status;
    /* The check alone, by a queue that goes no further. */
    struct hw_queue checker = { .device = device,
                                .device_impl = device->impl,
                                .host_tensors = true,
                                .generation = device->context->generation,
                                .cold = COLD_CHECK };
    if ((status = hw_submit(&checker, op, args, size)))
        return status;
    memset(&copy, 0, sizeof copy);
    memcpy(&copy, args, size < op_descs[op].size ? size : op_descs[op].size);
    int32_t answer = device->plugin->table.supports(device->impl, op, &copy, why,
                                                    sizeof why, &scratch);
    if (!answer)
        return HW_OK;
    why[sizeof why - 1] = '\0';
    return fail((enum hw_status)answer, "%s: %s: %s", device->name, op_descs[op].name, why);
}

/* ---- packed weights ---- */

enum hw_status hw_tensor_pack(struct hw_queue *queue, const struct hw_tensor *weights,
                              struct hw_tensor *packed)
{
    if (!queue || !weights || !packed)
        return fail(HW_INVALID, "hw_tensor_pack: queue, weights and packed may not be NULL");
    struct hw_device *device = queue->device;
    const struct hw_plugin *table = &device->plugin->table;
    uint64_t bytes = 0;
    uint32_t layout = 0;
    enum hw_status status = guard(device->context);
    if (status)
        return status;
    struct hw_tensor made = *weights;
    int32_t answer = table->pack_size(device->impl, weights, &bytes, &layout);
    if (answer)
        return fail_in((enum hw_status)answer, "%s: pack weights: ", device->name);
    if (!bytes || !layout)
        return fail(HW_INTERNAL, "%s: its plugin packs into nothing", device->name);
    if ((status = hw_buffer_alloc(device, bytes, 0, &made.buffer)))
        return status;
    made.data = NULL;
    made.offset = 0;
    made.layout = layout;
    if ((answer = table->pack(queue->impl, &made, weights))) {
        hw_buffer_free(made.buffer);
        return fail_in((enum hw_status)answer, "%s: pack weights: ", device->name);
    }
    *packed = made;
    return HW_OK;
}

/* ---- arguments against a signature ---- */

static enum hw_status check_args(const char *name, const char *signature,
                                 const struct hw_arg *args, uint32_t count)
{
    static const char letters[] = "toxif";
    static const uint32_t kinds[] = { HW_ARG_TENSOR, HW_ARG_TENSOR, HW_ARG_TENSOR,
                                      HW_ARG_INT, HW_ARG_FLOAT };
    if (!signature || strspn(signature, letters) != strlen(signature))
        return fail(HW_INTERNAL, "%s: its signature is not made of \"%s\"", name, letters);
    if (strlen(signature) != count || (count && !args))
        return fail(HW_INVALID, "%s: %u arguments; its signature is \"%s\"", name,
                    (unsigned)count, signature);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t kind = kinds[strchr(letters, signature[i]) - letters];
        if (args[i].kind != kind || (kind == HW_ARG_TENSOR && !args[i].tensor))
            return fail(HW_INVALID, "%s: argument %u is not what its signature \"%s\" says",
                        name, (unsigned)i, signature);
    }
    return HW_OK;
}

/* ---- extension ops ---- */

enum hw_status hw_extension_call(struct hw_queue *queue, const char *name,
                                 const struct hw_arg *args, uint32_t count)
{
    if (!queue || !name)
        return fail(HW_INVALID, "hw_extension_call: queue and name may not be NULL");
    struct hw_device *device = queue->device;
    enum hw_status status = guard(device->context);
    if (status)
        return status;
    for (uint32_t i = 0; i < 4096; i++) { /* a plugin that never ends its list does not hang us */
        struct hw_extension extension = { .size = sizeof extension };
        if (device->plugin->table.extension(device->impl, i, &extension))
            break;
        if (!extension.name || strcmp(extension.name, name) != 0)
            continue;
        if (!extension.call)
            return fail(HW_INTERNAL, "%s: its plugin lists it without a function", name);
        if ((status = check_args(name, extension.signature, args, count)))
            return status;
        int32_t answer = extension.call(extension.self, queue->impl, args, count);
        return answer ? fail_in(queue_result(queue, answer), "%s: ", name) : HW_OK;
    }
    return fail(HW_UNSUPPORTED, "%s has no extension op %s", device->name, name);
}

/* ---- user kernels ---- */

struct hw_kernel {
    struct hw_device *device;
    void *impl;
    char *name, *signature;
};

enum hw_status hw_kernel_create(struct hw_device *device, const struct hw_user_kernel *desc,
                                struct hw_kernel **out)
{
    if (out)
        *out = NULL;
    if (!device || !desc || !out || desc->size < sizeof *desc || !desc->name ||
        !desc->signature)
        return fail(HW_INVALID, "hw_kernel_create: device, desc and kernel may not be NULL; "
                                "desc has its size, a name and a signature");
    enum hw_status status = guard(device->context);
    if (status || (status = device_wake(device)))
        return status;
    struct hw_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel) {
        kernel->device = device;
        kernel->name = strdup(desc->name);
        kernel->signature = strdup(desc->signature);
    }
    if (!kernel || !kernel->name || !kernel->signature)
        status = fail(HW_NO_MEMORY, "out of memory for a kernel");
    else
        status = (enum hw_status)device->plugin->table.kernel_build(device->impl, desc,
                                                                    &kernel->impl);
    if (status) {
        if (kernel)
            kernel->impl = NULL;
        hw_kernel_free(kernel);
        return fail_in(status, "%s: build kernel %s: ", device->name, desc->name);
    }
    *out = kernel;
    return HW_OK;
}

enum hw_status hw_kernel_launch(struct hw_queue *queue, struct hw_kernel *kernel,
                                uint64_t groups, const struct hw_arg *args, uint32_t count)
{
    if (!queue || !kernel || queue->device != kernel->device)
        return fail(HW_INVALID, "hw_kernel_launch: queue and kernel may not be NULL, and are "
                                "of one device");
    enum hw_status status = guard(kernel->device->context);
    if (status || (status = check_args(kernel->name, kernel->signature, args, count)))
        return status;
    int32_t answer = kernel->device->plugin->table.kernel_launch(queue->impl, kernel->impl,
                                                                 groups, args, count);
    return answer ? fail_in(queue_result(queue, answer), "%s: ", kernel->name) : HW_OK;
}

void hw_kernel_free(struct hw_kernel *kernel)
{
    if (!kernel)
        return;
    if (kernel->impl)
        kernel->device->plugin->table.kernel_destroy(kernel->impl);
    free(kernel->name);
    free(kernel->signature);
    free(kernel);
}
