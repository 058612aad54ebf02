/* SPDX-License-Identifier: MIT */
/* signature.c - checks the arguments of extension ops and user kernels against a signature. */
#define _POSIX_C_SOURCE 200809L
#include "call/signature.h"

#include "base/argument.h"
#include "base/message.h"
#include "call/layout.h"
#include "call/operand.h"
#include "call/queue.h"
#include "memory/buffer.h"

#include <string.h>

/* Checks only the place of the tensor: nothing else is known about a packed tensor. */
static enum hw_status check_place(struct hw_queue *queue, const char *name, uint32_t i,
                                  const struct hw_tensor *t, bool writes)
{
    if (t->buffer && t->buffer->device != queue->device_impl)
        return fail(HW_INVALID,
                    "%s: argument %u is in a buffer of %s, but the queue is on %s", name,
                    (unsigned)i, buffer_of(t->buffer)->owner->name, queue->device->name);
    if (t->buffer && writes && t->buffer->flags & HW_BUFFER_READ_ONLY)
        return fail(HW_INVALID, "%s: argument %u is an output, but its buffer is read-only",
                    name, (unsigned)i);
    struct check check = { .impl = queue->device_impl };
    if (t->layout && (writes || !packed_fits(&check, t, &(struct byte_range){ 0 })))
        return fail(
            HW_INVALID,
            "%s: argument %u is packed (layout %u); a packed tensor must be an input, as "
            "hw_tensor_pack() made it",
            name, (unsigned)i, (unsigned)t->layout);
    if (!t->buffer && !(queue->device->info.features & HW_FEATURE_HOST_TENSORS))
        return fail(
            HW_UNSUPPORTED,
            "%s: argument %u is a host tensor, which %s cannot access; copy it to a buffer "
            "first",
            name, (unsigned)i, queue->device->name);
    return HW_OK;
}

enum hw_status check_tensor(struct hw_queue *queue, const char *name, uint32_t i,
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
            "%s: argument %u: its innermost axis is not contiguous; hw_copy() makes a copy "
            "that is",
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
    return fail(HW_INTERNAL, "%s: its signature has an unknown letter, '%c'", name, letter);
}

enum hw_status check_arguments(struct hw_queue *queue, const char *name,
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
        return fail_null(name, "args");
    for (uint32_t i = 0; i < count; i++) {
        enum hw_status status = check_argument(queue, name, i, signature[i], &args[i]);
        if (status)
            return status;
    }
    return HW_OK;
}
