/* SPDX-License-Identifier: MIT */
/* operand.h - what check.c is written with: one operand's dtype, extents, strides, place
 * and alignment, and whether two operands share bytes.
 *
 * These only say yes or no; the words for a no are found again by operand.c. Loops run over
 * all four axes: unused entries are zero, and checked to be. */
#ifndef HW_RUN_OPERAND_H
#define HW_RUN_OPERAND_H

#include "base/likely.h"
#include "run/check.h"
#include "run/dtype.h"
#include "run/layout.h"
#include "run/ops.h"

/* ---- one operand ---- */

/* What one pass over the axes finds. */
struct axes {
    int64_t span;  /* bytes from the first element's first to the last one's last, if any */
    int64_t count; /* elements */
    int64_t signs; /* negative: an extent or a stride is */
    int64_t unused;  /* not zero: an entry beyond the rank is not */
    int64_t strides; /* all of them, or-ed */
    bool overflow;
    bool folded; /* an axis steps less than what lies inside it: outputs may not */
};

static inline struct axes axes_of(const struct hw_tensor *t, struct dtype_row row)
{
    struct axes a = { .span = row.bytes, .count = 1 };
    const int inner = t->rank - 1;
    for (int i = HW_MAX_RANK - 1; i >= 0; i--) {
        const int64_t extent = t->extent[i], stride = t->stride[i];
        /* Wraps for the smallest extent, which is refused by its sign. */
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

/* Whether the bytes of a tensor lie inside its buffer, or the address space; and where. */
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

/* A packed tensor has the layout of its device; out of line. */
bool packed_fits(const struct check *check, const struct hw_tensor *t,
                 struct byte_range *where);

/* Whether operand number `index` may be what it is; false leaves the rest to bad_operand(). */
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
    /* Read-only memory is filled by copies. */
    return locate(check, t, span, row.alignment,
                  role_writes(role) && check->op != HW_OP_COPY, where);
}

/* HW_INVALID for the operand that did not fit. */
enum hw_status bad_operand(const struct check *check, const void *args)
    __attribute__((cold));
/* HW_INVALID: operands `a` and `b`, with their shapes, break `rule`. */
enum hw_status bad_shapes(const struct check *check, const void *args, uint32_t a,
                          uint32_t b, const char *rule) __attribute__((cold));
/* HW_INVALID: a scalar field. */
enum hw_status bad_value(const struct check *check, const char *field, double value,
                         const char *rule) __attribute__((cold));
enum hw_status bad_integer(const struct check *check, const char *field, int64_t value,
                           const char *rule) __attribute__((cold));
enum hw_status bad_overlap(const struct check *check, uint32_t a, uint32_t b,
                           const char *rule) __attribute__((cold));

/* ---- two operands ---- */

/* Whether output `y` leaves operand `x` alone. */
static inline bool operands_disjoint(const struct check *check, const struct hw_tensor *y,
                                     uint32_t y_index, const struct hw_tensor *x,
                                     uint32_t x_index)
{
    const struct byte_range *a = &check->bytes[y_index], *b = &check->bytes[x_index];
    return likely(!share_space(a, b)) || interleaved(y, a, x, b);
}

/* The same, or exactly in place. */
static inline bool operands_disjoint_or_same(const struct check *check,
                                             const struct hw_tensor *y, uint32_t y_index,
                                             const struct hw_tensor *x, uint32_t x_index)
{
    const struct byte_range *a = &check->bytes[y_index], *b = &check->bytes[x_index];
    if (likely(!share_space(a, b)))
        return true;
    return (a->begin == b->begin && x->dtype == y->dtype && equal_extents(x, y) &&
            equal_strides(x, y)) ||
           interleaved(y, a, x, b);
}

#endif
