/* SPDX-License-Identifier: MIT */
/* extension.c - beyond the op table: a plugin's own ops, kernels that the user wrote,
 * packed weights. The core checks arguments against the signature; the rest is the
 * plugin's. */
#define _POSIX_C_SOURCE 200809L
#include "run/operand.h"

#include <stdlib.h>
#include <string.h>

/* ---- arguments ---- */

#define MAX_ARGUMENTS 64

/* Only the tensor's place: nothing else is known of a packed one. */
static enum hw_status check_place(struct hw_queue *queue, const char *name, uint32_t i,
                                  const struct hw_tensor *t, bool writes)
{
    if (t->buffer && t->buffer->device != queue->device_impl)
        return fail(
            HW_INVALID, "%s: argument %u lies in a buffer of device %s, the queue is on %s",
            name, (unsigned)i, buffer_of(t->buffer)->owner->name, queue->device->name);
    if (t->buffer && writes && t->buffer->flags & HW_BUFFER_READ_ONLY)
        return fail(HW_INVALID, "%s: argument %u is written, and its buffer is read-only",
                    name, (unsigned)i);
    struct look look = { .impl = queue->device_impl };
    if (t->layout && (writes || !packed_fits(&look, t, &(struct extent_of_bytes){ 0 })))
        return fail(
            HW_INVALID,
            "%s: argument %u is packed (layout %u); a packed tensor is an input, as "
            "hw_tensor_pack() made it",
            name, (unsigned)i, (unsigned)t->layout);
    if (!t->buffer && !(queue->device->info.features & HW_FEATURE_HOST_TENSORS))
        return fail(
            HW_UNSUPPORTED,
            "%s: argument %u is a host tensor, which %s can not read; hw_copy() it to a "
            "buffer first",
            name, (unsigned)i, queue->device->name);
    return HW_OK;
}

static enum hw_status check_tensor(struct hw_queue *queue, const char *name, uint32_t i,
                                   const struct hw_tensor *t, bool writes)
{
    char why[FAULT_SIZE];
    if (!t)
        return fail(HW_INVALID, "%s: argument %u: tensor is NULL", name, (unsigned)i);
    if (!t->layout && tensor_fault(t, writes, why))
        return fail(HW_INVALID, "%s: argument %u: %s", name, (unsigned)i, why);
    enum hw_status status = check_place(queue, name, i, t, writes);
    if (!status && !t->layout && t->extent[t->rank - 1] > 1 &&
        t->stride[t->rank - 1] != hw_dtype_bytes(t->dtype))
        return fail(
            HW_UNSUPPORTED,
            "%s: argument %u: its innermost extent is not contiguous; hw_copy() makes a "
            "copy that is",
            name, (unsigned)i);
    return status;
}

static enum hw_status check_argument(struct hw_queue *queue, const char *name, uint32_t i,
                                     char letter, const struct hw_arg *arg)
{
    static const struct {
        char letter;
        enum hw_arg_kind kind;
        bool writes;
    } letters[] = { { 't', HW_ARG_TENSOR, false },
                    { 'o', HW_ARG_TENSOR, true },
                    { 'x', HW_ARG_TENSOR, true },
                    { 'i', HW_ARG_INT, false },
                    { 'f', HW_ARG_FLOAT, false } };
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++) {
        if (letters[k].letter != letter)
            continue;
        if (arg->kind != (uint32_t)letters[k].kind)
            return fail(HW_INVALID, "%s: argument %u has kind %u, the signature says '%c'",
                        name, (unsigned)i, (unsigned)arg->kind, letter);
        return arg->kind == HW_ARG_TENSOR
                   ? check_tensor(queue, name, i, arg->tensor, letters[k].writes)
                   : HW_OK;
    }
    return fail(HW_INTERNAL, "%s: its signature has a '%c', which means nothing", name,
                letter);
}

static enum hw_status check_arguments(struct hw_queue *queue, const char *name,
                                      const char *signature, const struct hw_arg *args,
                                      uint32_t count)
{
    const size_t wanted = strnlen(signature, MAX_ARGUMENTS + 1);
    if (wanted > MAX_ARGUMENTS)
        return fail(HW_INTERNAL, "%s: its signature has more than %d letters", name,
                    MAX_ARGUMENTS);
    if (count != wanted)
        return fail(HW_INVALID, "%s: %u arguments; its signature \"%s\" has %zu", name,
                    (unsigned)count, signature, wanted);
    if (count && !args)
        return fail(HW_INVALID, "%s: args may not be NULL", name);
    for (uint32_t i = 0; i < count; i++) {
        enum hw_status status = check_argument(queue, name, i, signature[i], &args[i]);
        if (status)
            return status;
    }
    return HW_OK;
}

/* ---- extension ops ---- */

#define MAX_EXTENSIONS                                                                     \
    4096 /* a plugin that never says "past the end" is not asked for ever */

static enum hw_status find_extension(struct hw_device *device, const char *name,
                                     struct hw_extension *found)
{
    for (uint32_t i = 0; i < MAX_EXTENSIONS; i++) {
        *found = (struct hw_extension){ .size = sizeof *found };
        plugin_asked();
        int32_t status = device->plugin->table.extension(device->impl, i, found);
        if (status && status != HW_END)
            return fail_in(answered(device, status), "extension ops of %s: ", device->name);
        if (status)
            break;
        if (found->name && found->signature && found->call &&
            strcmp(found->name, name) == 0)
            return HW_OK;
    }
    return fail(HW_UNSUPPORTED, "%s has no extension op \"%s\"", device->name, name);
}

enum hw_status hw_extension_call(struct hw_queue *queue, const char *name,
                                 const struct hw_arg *args, uint32_t count)
{
    struct hw_extension extension;
    enum hw_status status = queue_ready(queue, "hw_extension_call");
    if (status)
        return status;
    if (!name)
        return fail(HW_INVALID, "hw_extension_call: name may not be NULL");
    if (queue->recording)
        return fail(HW_UNSUPPORTED, "hw_extension_call: extension ops are not recorded");
    if ((status = find_extension(queue->device, name, &extension)) ||
        (status = check_arguments(queue, name, extension.signature, args, count)))
        return status;
    plugin_asked();
    status = answered(queue->device,
                      extension.call(extension.self, queue->impl, args, count));
    return status ? fail_in(status, "%s on %s: ", name, queue->device->name)
                  : settle_synchronous(queue);
}

/* ---- user kernels ---- */

struct hw_kernel {
    struct hw_device *device;
    void *impl;
    char *name, *signature;
    struct hw_kernel *next, *prev;
};

static char *copy_text(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static void kernel_free(struct hw_kernel *kernel)
{
    if (kernel->impl)
        kernel->device->plugin->table.kernel_destroy(kernel->impl);
    free(kernel->name);
    free(kernel->signature);
    free(kernel);
}

static enum hw_status check_description(const struct hw_user_kernel *desc)
{
    if (desc->size < offsetof(struct hw_user_kernel, blob_bytes) + sizeof desc->blob_bytes)
        return fail(HW_INVALID,
                    "hw_kernel_create: desc->size is %u; set it to sizeof *desc",
                    (unsigned)desc->size);
    if (!hw_knows(desc, sizeof *desc))
        return fail(
            HW_UNSUPPORTED,
            "hw_kernel_create: desc has fields that a newer library knows; leave them "
            "zero, or update this one");
    if (!desc->name || !desc->signature || !desc->group)
        return fail(HW_INVALID,
                    "hw_kernel_create: name, signature and group have to be set");
    if (!desc->source == !desc->blob)
        return fail(HW_INVALID, "hw_kernel_create: either source or blob has to be set");
    if (desc->blob && !desc->blob_bytes)
        return fail(HW_INVALID, "hw_kernel_create: blob is set, and blob_bytes is 0");
    if (strspn(desc->signature, "toxif") != strlen(desc->signature))
        return fail(HW_INVALID,
                    "hw_kernel_create: signature \"%s\" has letters other than t o x i f",
                    desc->signature);
    if (strlen(desc->signature) > MAX_ARGUMENTS)
        return fail(HW_INVALID, "hw_kernel_create: signature has %zu letters, %d can be",
                    strlen(desc->signature), MAX_ARGUMENTS);
    return HW_OK;
}

enum hw_status hw_kernel_create(struct hw_device *device, const struct hw_user_kernel *desc,
                                struct hw_kernel **out)
{
    if (!out)
        return fail(HW_INVALID, "hw_kernel_create: kernel may not be NULL");
    *out = NULL;
    if (!device || !desc)
        return fail(HW_INVALID, "hw_kernel_create: device and desc may not be NULL");
    enum hw_status status = check_description(desc);
    if (status || (status = device_usable(device)) || (status = device_wake(device)))
        return status;
    struct hw_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return fail(HW_NO_MEMORY, "out of memory for a kernel");
    kernel->device = device;
    kernel->name = copy_text(desc->name);
    kernel->signature = copy_text(desc->signature);
    if (!kernel->name || !kernel->signature) {
        kernel_free(kernel);
        return fail(HW_NO_MEMORY, "out of memory for a kernel");
    }
    plugin_asked();
    status = answered(
        device, device->plugin->table.kernel_build(device->impl, desc, &kernel->impl));
    if (status) {
        kernel->impl = NULL;
        kernel_free(kernel);
        return fail_in(status, "kernel %s on %s: ", desc->name, device->name);
    }
    struct hw_context *context = device->context;
    pthread_mutex_lock(&context->lock);
    kernel->next = context->kernels;
    if (kernel->next)
        kernel->next->prev = kernel;
    context->kernels = kernel;
    pthread_mutex_unlock(&context->lock);
    *out = kernel;
    return HW_OK;
}

enum hw_status hw_kernel_launch(struct hw_queue *queue, struct hw_kernel *kernel,
                                uint64_t groups, const struct hw_arg *args, uint32_t count)
{
    enum hw_status status = queue_ready(queue, "hw_kernel_launch");
    if (status)
        return status;
    if (!kernel)
        return fail(HW_INVALID, "hw_kernel_launch: kernel may not be NULL");
    if (kernel->device != queue->device)
        return fail(HW_INVALID, "hw_kernel_launch: the kernel is of %s, the queue of %s",
                    kernel->device->name, queue->device->name);
    if (queue->recording)
        return fail(HW_UNSUPPORTED, "hw_kernel_launch: user kernels are not recorded");
    if ((status = check_arguments(queue, kernel->name, kernel->signature, args, count)))
        return status;
    plugin_asked();
    status = answered(queue->device, queue->device->plugin->table.kernel_launch(
                                         queue->impl, kernel->impl, groups, args, count));
    return status ? fail_in(status, "%s on %s: ", kernel->name, queue->device->name)
                  : settle_synchronous(queue);
}

void hw_kernel_free(struct hw_kernel *kernel)
{
    if (!kernel || forked(kernel->device->context))
        return;
    struct hw_context *context = kernel->device->context;
    pthread_mutex_lock(&context->lock);
    if (kernel->prev)
        kernel->prev->next = kernel->next;
    else
        context->kernels = kernel->next;
    if (kernel->next)
        kernel->next->prev = kernel->prev;
    pthread_mutex_unlock(&context->lock);
    kernel_free(kernel);
}

/* ---- packed weights ---- */

static enum hw_status pack(struct hw_queue *queue, const struct hw_tensor *weights,
                           struct hw_tensor *packed)
{
    struct hw_device *device = queue->device;
    struct buffer *buffer;
    struct hw_tensor dst = *weights;
    uint64_t bytes = 0;
    plugin_asked();
    enum hw_status status = answered(
        device,
        device->plugin->table.pack_size(device->impl, weights, &bytes, &dst.layout));
    if (!status && !dst.layout)
        status = fail(HW_INTERNAL, "the plugin answered layout 0");
    if (status || (status = buffer_make(device, bytes, 0, &buffer)))
        return fail_in(status, "hw_tensor_pack on %s: ", device->name);
    dst.buffer = &buffer->base;
    dst.data = NULL;
    dst.offset = 0;
    memset(dst.stride, 0, sizeof dst.stride);
    plugin_asked();
    status = answered(device, device->plugin->table.pack(queue->impl, &dst, weights));
    if (status) {
        /* What it queued before that may still write there. */
        queue_free_later(queue, buffer);
        return fail_in(status, "hw_tensor_pack on %s: ", device->name);
    }
    if ((status = settle_synchronous(queue))) {
        buffer_drop(buffer);
        return status;
    }
    buffer->packed = dst;
    buffer_list(buffer);
    *packed = dst;
    return HW_OK;
}

enum hw_status hw_tensor_pack(struct hw_queue *queue, const struct hw_tensor *weights,
                              struct hw_tensor *packed)
{
    enum hw_status status = queue_ready(queue, "hw_tensor_pack");
    if (status)
        return status;
    if (!weights || !packed)
        return fail(HW_INVALID, "hw_tensor_pack: weights and packed may not be NULL");
    const struct hw_tensor given = *weights;
    memset(packed, 0, sizeof *packed);
    if (given.layout)
        return fail(HW_INVALID, "hw_tensor_pack: weights are packed already");
    if (queue->recording)
        return fail(HW_INVALID, "hw_tensor_pack: the queue is recording a graph");
    status = check_tensor(queue, "hw_tensor_pack", 0, &given, false);
    return status ? status : pack(queue, &given, packed);
}
