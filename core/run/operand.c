/* SPDX-License-Identifier: MIT */
/* operand.c - the slow half of operand.h: what is rare, and the words for what is wrong. */
#include "run/operand.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Blocks are read through their 16-bit scales; plain types through themselves. */
#define SHIFT(elements)           ((elements) == 1 ? 0 : (elements) == 32 ? 5 : 8)
#define ALIGNMENT(elements, size) ((elements) == 1 ? (size) : 2)
const struct dtype_row dtype_rows[16] = {
#define X(NAME, value, name, elements, size)                                               \
    [value] = { size, SHIFT(elements), ALIGNMENT(elements, size) },
    HW_DTYPES(X)
#undef X
};
_Static_assert(HW_DTYPE_END <= 16, "dtype_rows has room for every dtype");
#define X(NAME, value, name, elements, size)                                               \
    _Static_assert(1 << SHIFT(elements) == (elements), name ": elements of a block");
HW_DTYPES(X)
#undef X

/* ---- one tensor ---- */

__attribute__((format(printf, 2, 3))) static bool faulty(char why[FAULT_SIZE],
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, FAULT_SIZE, format, arguments);
    va_end(arguments);
    return true;
}

/* Steps along an axis: of blocks along the innermost one. */
static int64_t steps_of(const struct hw_tensor *t, int axis)
{
    return (axis == t->rank - 1 ? t->extent[axis] / hw_dtype_block(t->dtype)
                                : t->extent[axis]) -
           1;
}

static bool shape_fault(const struct hw_tensor *t, char why[FAULT_SIZE])
{
    if (hw_dtype_bytes(t->dtype) == 0)
        return faulty(why, t->dtype ? "dtype %d is none" : "it is absent (dtype %d)",
                      (int)t->dtype);
    if (t->rank < 1 || t->rank > HW_MAX_RANK)
        return faulty(why, "rank %d; 1 to %d can be", (int)t->rank, HW_MAX_RANK);
    if (t->reserved[0] | t->reserved[1] | t->reserved[2])
        return faulty(why, "its reserved words are not zero");
    for (int i = 0; i < HW_MAX_RANK; i++) {
        if (i >= t->rank && (t->extent[i] || t->stride[i]))
            return faulty(
                why, "extent[%d] and stride[%d] lie beyond its rank %d and are not zero", i,
                i, (int)t->rank);
        if (t->extent[i] < 0)
            return faulty(why, "extent[%d] is %" PRId64, i, t->extent[i]);
        if (t->stride[i] < 0)
            return faulty(why, "stride[%d] is %" PRId64 "; strides are never negative", i,
                          t->stride[i]);
        if (t->stride[i] % dtype_rows[t->dtype].alignment)
            return faulty(
                why, "stride[%d] is %" PRId64 ", no multiple of %d, the alignment of %s", i,
                t->stride[i], dtype_rows[t->dtype].alignment, hw_dtype_name(t->dtype));
    }
    const int64_t block = hw_dtype_block(t->dtype), cols = t->extent[t->rank - 1];
    if (cols % block)
        return faulty(why,
                      "extent[%d] is %" PRId64 ", no multiple of the %" PRId64
                      " elements of a block of %s",
                      t->rank - 1, cols, block, hw_dtype_name(t->dtype));
    if (block > 1 && t->stride[t->rank - 1] != hw_dtype_bytes(t->dtype))
        return faulty(why,
                      "stride[%d] is %" PRId64 "; rows of %s are whole blocks of %" PRId64
                      " bytes",
                      t->rank - 1, t->stride[t->rank - 1], hw_dtype_name(t->dtype),
                      hw_dtype_bytes(t->dtype));
    return false;
}

/* The bytes that it spans. */
static bool span_fault(const struct hw_tensor *t, uint64_t *span, char why[FAULT_SIZE])
{
    int64_t count = 1, bytes = hw_dtype_bytes(t->dtype), reach;
    bool overflow = false;
    for (int i = t->rank - 1; i >= 0; i--) {
        overflow |= __builtin_mul_overflow(count, t->extent[i], &count);
        overflow |= __builtin_mul_overflow(steps_of(t, i), t->stride[i], &reach);
        overflow |= __builtin_add_overflow(bytes, reach, &bytes);
    }
    if (overflow)
        return faulty(why, "its elements or its bytes can not be counted in 63 bits");
    *span = count ? (uint64_t)bytes : 0;
    return false;
}

static bool place_fault(const struct hw_tensor *t, uint64_t span, char why[FAULT_SIZE])
{
    const uint64_t alignment = dtype_rows[t->dtype].alignment;
    uint64_t begin = t->offset, end;
    if (t->buffer) {
        if (__builtin_add_overflow(begin, span, &end) || end > t->buffer->bytes)
            return faulty(why,
                          "%" PRIu64 " bytes at offset %" PRIu64
                          " do not fit into its buffer of %" PRIu64 " bytes",
                          span, t->offset, t->buffer->bytes);
        begin += (uint64_t)(uintptr_t)t->buffer->host;
    } else {
        if (!t->data && span)
            return faulty(why, "it has neither buffer nor data");
        if (__builtin_add_overflow(begin, (uint64_t)(uintptr_t)t->data, &begin) ||
            __builtin_add_overflow(begin, span, &end))
            return faulty(why,
                          "%" PRIu64 " bytes at offset %" PRIu64 " pass the end of memory",
                          span, t->offset);
    }
    if (begin & (alignment - 1))
        return faulty(why,
                      "its first element is not aligned to the %" PRIu64 " bytes of %s",
                      alignment, hw_dtype_name(t->dtype));
    return false;
}

/* No two elements in one place: sorted by stride, each axis steps over all that lies inside
 * it. Layouts that interleave without nesting are refused, too; no constructor makes them.
 */
static bool folds(const struct hw_tensor *t, char why[FAULT_SIZE])
{
    int order[HW_MAX_RANK], n = 0;
    for (int i = 0; i < t->rank; i++) {
        if (steps_of(t, i) <= 0)
            continue;
        int at = n++;
        for (; at > 0 && t->stride[order[at - 1]] > t->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    int64_t inside = hw_dtype_bytes(t->dtype);
    for (int k = 0; k < n; k++) {
        int axis = order[k];
        if (t->stride[axis] < inside)
            return faulty(why,
                          "it is written, and with stride[%d] of %" PRId64
                          " its elements overlap each other",
                          axis, t->stride[axis]);
        inside += steps_of(t, axis) * t->stride[axis];
    }
    return false;
}

bool tensor_fault(const struct hw_tensor *t, bool writes, char why[FAULT_SIZE])
{
    uint64_t span = 0;
    if (shape_fault(t, why) || span_fault(t, &span, why) || place_fault(t, span, why))
        return true;
    return writes && span && folds(t, why);
}

/* Nobody but its device knows what lies in a packed tensor: it is used whole, as it was
 * made. */
bool packed_fits(const struct look *look, const struct hw_tensor *t,
                 struct extent_of_bytes *where)
{
    const struct hw_buffer *buffer = t->buffer;
    if (!t->layout || !buffer || buffer->device != look->impl ||
        (t->reserved[0] | t->reserved[1] | t->reserved[2]))
        return false;
    const struct hw_tensor *made = &buffer_of(buffer)->packed;
    if (made->layout != t->layout || made->dtype != t->dtype || t->offset ||
        !equal_extents(made, t))
        return false;
    const uint64_t begin = (uint64_t)(uintptr_t)buffer->host;
    *where = (struct extent_of_bytes){ buffer->host ? NULL : buffer, begin,
                                       begin + buffer->bytes };
    return true;
}

/* ---- two tensors ---- */

/* Bytes that a tensor covers in one period of `period` bytes, if its longer strides are
 * multiples of it: the span of the shorter ones. */
static bool within_period(const struct hw_tensor *t, int64_t period, uint64_t *span)
{
    int64_t bytes = hw_dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        if (steps_of(t, i) > 0 && t->stride[i] % period != 0)
            bytes += steps_of(t, i) * t->stride[i];
    *span = (uint64_t)bytes;
    return bytes <= period;
}

static bool apart_in_period(const struct hw_tensor *a, uint64_t a_begin,
                            const struct hw_tensor *b, uint64_t b_begin, int64_t period)
{
    uint64_t a_span, b_span, p = (uint64_t)period;
    if (!within_period(a, period, &a_span) || !within_period(b, period, &b_span))
        return false;
    uint64_t ahead = (b_begin % p + p - a_begin % p) % p; /* from a to the next b */
    return ahead >= a_span && p - ahead >= b_span;
}

/* As columns of one matrix, or heads of one projection, are: seen modulo a stride of
 * either, the two cover different bytes. Sound: where it answers yes, no byte is shared. */
bool interleaved(const struct hw_tensor *a, const struct extent_of_bytes *a_bytes,
                 const struct hw_tensor *b, const struct extent_of_bytes *b_bytes)
{
    if (a->layout || b->layout)
        return false;
    for (int i = 0; i < HW_MAX_RANK; i++) {
        if (i < a->rank && a->stride[i] > 0 &&
            apart_in_period(a, a_bytes->begin, b, b_bytes->begin, a->stride[i]))
            return true;
        if (i < b->rank && b->stride[i] > 0 &&
            apart_in_period(a, a_bytes->begin, b, b_bytes->begin, b->stride[i]))
            return true;
    }
    return false;
}

/* ---- words ---- */

static const char *name_of(const struct look *look, uint32_t operand)
{
    return op_rows[look->op].operands[operand].name;
}

static enum hw_status other_device(const struct look *look, const struct hw_tensor *t)
{
    const struct hw_device *owner = buffer_of(t->buffer)->owner;
    return fail(HW_INVALID,
                "%s: %s lies in a buffer of device %s, the queue is on %s; use hw_copy() "
                "to move it",
                hw_op_name(look->op), name_of(look, look->wrong), owner ? owner->name : "?",
                look->device->name);
}

enum hw_status misfit(const struct look *look, const void *args)
{
    const struct operand *operand = &op_rows[look->op].operands[look->wrong];
    const struct hw_tensor *t = operand_at(args, operand);
    const char *op = hw_op_name(look->op);
    char text[DESCRIBE_SIZE], names[DESCRIBE_SIZE], why[FAULT_SIZE];

    if (t->rank == -1) /* hw_host_1d() and its kind: the message has the reason */
        return fail_in(HW_INVALID, "%s: %s could not be made: ", op, operand->name);
    if (t->dtype == HW_NONE && t->rank == 0)
        return fail(HW_INVALID, "%s: %s is missing (dtype 0)", op, operand->name);
    if (shape_fault(t, why))
        return fail(HW_INVALID, "%s: %s: %s", op, operand->name, why);
    if (!(look->dtypes >> t->dtype & 1))
        return fail(HW_INVALID, "%s: %s is %s; its dtype may be %s here", op, operand->name,
                    describe(t, text), describe_dtypes(look->dtypes, names));
    if (t->buffer && t->buffer->device != look->impl)
        return other_device(look, t);
    if (t->buffer && role_writes(operand->role) && t->buffer->flags & HW_BUFFER_READ_ONLY)
        return fail(HW_INVALID, "%s: %s is written, and its buffer is read-only", op,
                    operand->name);
    if (t->layout)
        return fail(HW_INVALID,
                    "%s: %s is packed (layout %u); only weights may be, whole, as "
                    "hw_tensor_pack() made them",
                    op, operand->name, (unsigned)t->layout);
    if (tensor_fault(t, role_writes(operand->role), why))
        return fail(HW_INVALID, "%s: %s is %s: %s", op, operand->name, describe(t, text),
                    why);
    return fail(HW_INTERNAL, "%s: %s was refused without a reason", op, operand->name);
}

enum hw_status mismatch(const struct look *look, const void *args, uint32_t a, uint32_t b,
                        const char *rule)
{
    const struct operand *rows = op_rows[look->op].operands;
    char a_text[DESCRIBE_SIZE], b_text[DESCRIBE_SIZE];
    return fail(HW_INVALID, "%s: %s is %s, %s is %s: %s", hw_op_name(look->op),
                rows[a].name, describe(operand_at(args, &rows[a]), a_text), rows[b].name,
                describe(operand_at(args, &rows[b]), b_text), rule);
}

enum hw_status bad_value(const struct look *look, const char *field, double value,
                         const char *rule)
{
    return fail(HW_INVALID, "%s: %s is %g: %s", hw_op_name(look->op), field, value, rule);
}

enum hw_status bad_integer(const struct look *look, const char *field, int64_t value,
                           const char *rule)
{
    return fail(HW_INVALID, "%s: %s is %" PRId64 ": %s", hw_op_name(look->op), field, value,
                rule);
}

enum hw_status bad_overlap(const struct look *look, uint32_t a, uint32_t b,
                           const char *rule)
{
    return fail(HW_INVALID, "%s: %s overlaps %s: %s", hw_op_name(look->op),
                name_of(look, a), name_of(look, b), rule);
}
