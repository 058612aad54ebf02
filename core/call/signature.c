/* SPDX-License-Identifier: MIT */
/* signature.c - checks the arguments of extension ops and user kernels against a signature. */
#define _POSIX_C_SOURCE 200809L
#include "call/signature.h"

#include "base/argument.h"
#include "base/message.h"
#include "call/operand.h"
#include "call/queue.h"
#include "memory/dtype.h"
#include "route/support.h"

#include <string.h>

enum hw_status check_tensor(struct hw_queue *queue, const char *name, uint32_t i,
                            const struct hw_tensor *t, bool writes)
{
    const struct use use = { .device = queue->device,
                             .dtypes = ANY_DTYPE,
                             .reads_packed = !writes,
                             .writes = writes };
    char why[FAULT_SIZE], text[DESCRIBE_SIZE];
    if (!t)
        return fail(HW_INVALID, "%s: argument %u: tensor is NULL", name, (unsigned)i);
    if (use_fault(&use, t, &(struct byte_range){ 0 }, why))
        return fail(HW_INVALID, "%s: argument %u (%s): %s", name, (unsigned)i,
                    describe(t, text), why);
    if (!t->buffer && !queue->host_tensors)
        return fail(
            HW_UNSUPPORTED,
            "%s: argument %u is a host tensor, which %s cannot access; copy it to a buffer "
            "first",
            name, (unsigned)i, queue->device->name);
    if (!t->layout && innermost_strided(t))
        return fail(
            HW_UNSUPPORTED,
            "%s: argument %u: its innermost axis is not contiguous; hw_copy() makes a copy "
            "that is",
            name, (unsigned)i);
    return HW_OK;
}

static enum hw_status check_argument(struct hw_queue *queue, const char *name, uint32_t i,
                                     char letter, const struct hw_arg *arg)
{
    static const enum hw_arg_kind kinds['x' + 1] = { ['t'] = HW_ARG_TENSOR,
                                                     ['o'] = HW_ARG_TENSOR,
                                                     ['x'] = HW_ARG_TENSOR,
                                                     ['i'] = HW_ARG_INT,
                                                     ['f'] = HW_ARG_FLOAT };
    if (!strchr("toxif", letter))
        return fail(HW_INTERNAL, "%s: its signature has an unknown letter, '%c'", name,
                    letter);
    if (arg->kind != (uint32_t)kinds[(unsigned char)letter])
        return fail(HW_INVALID, "%s: argument %u has kind %u, the signature says '%c'",
                    name, (unsigned)i, (unsigned)arg->kind, letter);
    return arg->kind == HW_ARG_TENSOR
               ? check_tensor(queue, name, i, arg->tensor, letter != 't')
               : HW_OK;
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
