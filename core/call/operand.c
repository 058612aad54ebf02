/* SPDX-License-Identifier: MIT */
/* operand.c - the slow half of operand.h: rare cases, and the messages. */
#include "call/operand.h"

#include "base/message.h"
#include "memory/buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Only the device knows the layout of a packed tensor, so the tensor can only be used whole, as
 * hw_tensor_pack() made it. */
bool packed_fits(const struct check *check, const struct hw_tensor *t,
                 struct byte_range *where)
{
    const struct hw_buffer *buffer = t->buffer;
    if (!t->layout || !buffer || buffer->device != check->impl ||
        (t->reserved[0] | t->reserved[1] | t->reserved[2]))
        return false;
    const struct hw_tensor *made = &buffer_of(buffer)->packed;
    if (made->layout != t->layout || made->dtype != t->dtype || t->offset ||
        !equal_extents(made, t))
        return false;
    const uint64_t begin = (uint64_t)(uintptr_t)buffer->host;
    *where = (struct byte_range){ buffer->host ? NULL : buffer, begin,
                                  begin + buffer->bytes };
    return true;
}

/* ---- messages ---- */

static const char *name_of(const struct check *check, uint32_t operand)
{
    return op_rows[check->op].operands[operand].name;
}

static enum hw_status other_device(const struct check *check, const struct hw_tensor *t)
{
    const struct hw_device *owner = buffer_of(t->buffer)->owner;
    if (owner->context != check->device->context)
        return fail(
            HW_INVALID,
            "%s: %s is in a buffer of another context; copy it to host memory on a queue of "
            "that context",
            hw_op_name(check->op), name_of(check, check->wrong));
    return fail(
        HW_INVALID,
        "%s: %s is in a buffer of %s, but the queue is on %s; use hw_copy() to move it",
        hw_op_name(check->op), name_of(check, check->wrong), owner->name,
        check->device->name);
}

enum hw_status bad_operand(const struct check *check, const void *args)
{
    const struct operand_row *operand = &op_rows[check->op].operands[check->wrong];
    const struct hw_tensor *t = operand_at(args, operand);
    const char *op = hw_op_name(check->op);
    char text[DESCRIBE_SIZE], names[DESCRIBE_SIZE], why[FAULT_SIZE];

    if (t->rank == -1) /* from hw_host_1d() etc., which has set the reason as the message */
        return fail_in(HW_INVALID, "%s: %s could not be made: ", op, operand->name);
    if (t->dtype == HW_NONE && t->rank == 0)
        return fail(HW_INVALID, "%s: %s is missing (dtype 0)", op, operand->name);
    if (shape_fault(t, why))
        return fail(HW_INVALID, "%s: %s: %s", op, operand->name, why);
    if (!(check->dtypes >> t->dtype & 1))
        return fail(HW_INVALID, "%s: %s is %s; its dtype must be %s", op, operand->name,
                    describe(t, text), describe_dtypes(check->dtypes, names));
    if (t->buffer && t->buffer->device != check->impl)
        return other_device(check, t);
    if (t->buffer && role_writes(operand->role) && t->buffer->flags & HW_BUFFER_READ_ONLY)
        return fail(HW_INVALID, "%s: %s is an output, but its buffer is read-only", op,
                    operand->name);
    if (t->layout)
        return fail(
            HW_INVALID,
            "%s: %s is packed (layout %u); only weights may be packed, and only whole, as "
            "hw_tensor_pack() made them",
            op, operand->name, (unsigned)t->layout);
    if (tensor_fault(t, role_writes(operand->role), why))
        return fail(HW_INVALID, "%s: %s is %s: %s", op, operand->name, describe(t, text),
                    why);
    return fail(HW_INTERNAL, "%s: %s was refused without a reason", op, operand->name);
}

enum hw_status bad_shapes(const struct check *check, const void *args, uint32_t a,
                          uint32_t b, const char *rule)
{
    const struct operand_row *rows = op_rows[check->op].operands;
    char a_text[DESCRIBE_SIZE], b_text[DESCRIBE_SIZE];
    return fail(HW_INVALID, "%s: %s is %s, %s is %s: %s", hw_op_name(check->op),
                rows[a].name, describe(operand_at(args, &rows[a]), a_text), rows[b].name,
                describe(operand_at(args, &rows[b]), b_text), rule);
}

enum hw_status bad_value(const struct check *check, const char *field, double value,
                         const char *rule)
{
    return fail(HW_INVALID, "%s: %s is %g: %s", hw_op_name(check->op), field, value, rule);
}

enum hw_status bad_integer(const struct check *check, const char *field, int64_t value,
                           const char *rule)
{
    return fail(HW_INVALID, "%s: %s is %" PRId64 ": %s", hw_op_name(check->op), field,
                value, rule);
}

enum hw_status bad_overlap(const struct check *check, uint32_t y, uint32_t x)
{
    const char *rule = "an output must not overlap this operand";
    if (op_rows[check->op].written >> x & 1)
        rule = "both are written";
    else if (may_be_same(check, y, x))
        rule = "operands must be identical (same address and layout) or disjoint";
    return fail(HW_INVALID, "%s: %s overlaps %s: %s", hw_op_name(check->op),
                name_of(check, y), name_of(check, x), rule);
}
