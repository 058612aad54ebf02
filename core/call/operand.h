/* SPDX-License-Identifier: MIT */
/* operand.h - the check of one operand: dtype, extents, strides, address and alignment. These
 * functions return only true or false; operand.c then finds the reason for the message. Loops run
 * over all four axes, because unused entries are zero. */
#ifndef HW_CALL_OPERAND_H
#define HW_CALL_OPERAND_H

#include "base/likely.h"
#include "call/check.h"
#include "call/layout.h"
#include "call/ops.h"
#include "memory/dtype.h"

/* ---- one operand ---- */

/* The result of one pass over the axes. */
struct axes {
    int64_t span;    /* bytes from the first element to the end of the last one, if any */
    int64_t count;   /* elements */
    int64_t signs;   /* negative if an extent or a stride is negative */
    int64_t unused;  /* not zero if an entry beyond the rank is not zero */
    int64_t strides; /* all strides, or-ed */
    bool overflow;
    bool folded; /* an axis steps over less than all of its inside; invalid for outputs */
};

static inline struct axes axes_of(const struct hw_tensor *t, struct dtype_row row)
{
    struct axes a = { .span = row.bytes, .count = 1 };
    const int inner = t->rank - 1;
    for (int i = HW_MAX_RANK - 1; i >= 0; i--) {
        const int64_t extent = t->extent[i], stride = t->stride[i];
        /* Wraps for INT64_MIN, which is refused as negative. */
        const int64_t blocks = i == inner ? extent >> row.shift : extent;
        const int64_t steps = (int64_t)((uint64_t)blocks - 1);
        int64_t reach;
        a.signs |= extent | stride;
        a.unused |= i <= inner ? 0 : extent | stride;
        a.strides |= stride;
        a.folded |= (steps > 0) & (stride < a.span);
        a.overflow |= __builtin_mul_overflow(steps, stride, &reach);
        a.overflow |= __builtin_add_overflow(a.span, reach, &a.span);
        a.overflow |= __builtin_mul_overflow(a.count, i <= inner ? extent : 1, &a.count);
    }
    return a;
}

/* Whether the bytes of a tensor lie inside its buffer or the address space; sets `where`. */
static inline bool locate(struct check *check, const struct hw_tensor *t, uint64_t span,
                          uint64_t alignment, bool writes, struct byte_range *where)
{
    const struct hw_buffer *buffer = t->buffer;
    uint64_t begin = t->offset, end;
    bool bad = false;
    where->space = NULL;
    if (buffer) {
        bad = (buffer->device != check->impl) | __builtin_add_overflow(begin, span, &end) |
              (end > buffer->bytes) | (writes && buffer->flags & HW_BUFFER_READ_ONLY);
        begin += (uint64_t)(uintptr_t)buffer->host;
        where->space = buffer->host ? NULL : buffer;
    } else {
        check->traits |= TRAIT_HOST;
        bad = t->data == NULL && span != 0;
        bad |= __builtin_add_overflow(begin, (uint64_t)(uintptr_t)t->data, &begin);
        bad |= __builtin_add_overflow(begin, span, &end);
    }
    where->begin = span ? begin : 0;
    where->end = span ? begin + span : 0;
    return !bad & ((begin & (alignment - 1)) == 0);
}

/* Whether a packed tensor is as its device made it. */
bool packed_fits(const struct check *check, const struct hw_tensor *t,
                 struct byte_range *where);

/* Whether operand number `index` is valid. If not, bad_operand() finds the reason. */
static inline bool operand_fits(struct check *check, const struct hw_tensor *t,
                                uint32_t index, enum hw_role role, uint32_t dtypes)
{
    struct byte_range *where = &check->bytes[index];
    check->wrong = index;
    check->dtypes = dtypes;
    if (role_optional(role) && t->dtype == HW_NONE) {
        *where = (struct byte_range){ 0 };
        return true;
    }
    if (unlikely((uint32_t)t->dtype >= HW_DTYPE_END || !(dtypes >> t->dtype & 1) ||
                 (uint32_t)t->rank - 1u >= HW_MAX_RANK))
        return false;
    if (unlikely(t->layout | t->reserved[0] | t->reserved[1] | t->reserved[2]))
        return role == HW_ROLE_WEIGHT && packed_fits(check, t, where);
    const struct dtype_row row = dtype_rows[t->dtype];
    const struct axes a = axes_of(t, row);
    const int64_t cols = t->extent[t->rank - 1], step = t->stride[t->rank - 1];
    const bool strided = (cols > 1) & (step != row.bytes);
    check->traits |= strided ? TRAIT_STRIDED : 0;
    if (unlikely((a.signs < 0) | a.overflow | (a.unused != 0) |
                 ((a.strides & (row.alignment - 1)) != 0) |
                 ((cols & ((INT64_C(1) << row.shift) - 1)) != 0) |
                 ((row.shift != 0) & (step != row.bytes))))
        return false;
    const uint64_t span = a.count ? (uint64_t)a.span : 0;
    if (role_writes(role))
        check->traits |= span ? 0 : TRAIT_EMPTY;
    if (unlikely(role_writes(role) && a.folded && span))
        if (tensor_fault(t, true, (char[FAULT_SIZE]){ 0 }))
            return false;
    /* A copy may fill a read-only buffer. */
    return locate(check, t, span, row.alignment,
                  role_writes(role) && check->op != HW_OP_COPY, where);
}

/* HW_INVALID, with the fault of the operand. */
enum hw_status bad_operand(const struct check *check, const void *args)
    __attribute__((cold));
/* HW_INVALID: operands `a` and `b`, with their shapes, violate `rule`. */
enum hw_status bad_shapes(const struct check *check, const void *args, uint32_t a,
                          uint32_t b, const char *rule) __attribute__((cold));
/* HW_INVALID: a scalar field violates `rule`. */
enum hw_status bad_value(const struct check *check, const char *field, double value,
                         const char *rule) __attribute__((cold));
enum hw_status bad_integer(const struct check *check, const char *field, int64_t value,
                           const char *rule) __attribute__((cold));
/* HW_INVALID: output `y` overlaps operand `x`. */
enum hw_status bad_overlap(const struct check *check, uint32_t y, uint32_t x)
    __attribute__((cold));

/* Whether output `y` may be exactly operand `x`. */
static inline bool may_be_same(const struct check *check, uint32_t y, uint32_t x)
{
    return (check->in_place >> x & 1) && y == op_rows[check->op].operand_count - 1;
}

#endif
