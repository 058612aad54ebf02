/* SPDX-License-Identifier: MIT */
/* lowering.h - shared by the files lower_<family>.c: one function per op, which lower() calls, and
 * helpers for tensors. */
#ifndef COMMON_LOWERING_H
#define COMMON_LOWERING_H

#include "lower.h"

#include <stdbool.h>

/* One per op, called by lower(): each sets the arguments, the groups and the form, or refuses.
 * `out` already has the operands and the kernel with the op's name. */
#define X(NAME, name) void lower_##name(const struct hw_##name *op, struct lowered *out);
HW_OPS(X)
#undef X

#define NOT_CONTIGUOUS  "the innermost extent of an operand is not contiguous"
#define UNKNOWN_TYPE    "neither floats nor blocks"
#define TOO_MANY_GROUPS "more than 2^31 - 1 groups"

/* ---- tensors ---- */

static inline bool present(const struct hw_tensor *t)
{
    return t->dtype != HW_NONE;
}

static inline bool is_float(const struct hw_tensor *t)
{
    return t->dtype == HW_F32 || t->dtype == HW_F16 || t->dtype == HW_BF16;
}

static inline bool is_block(const struct hw_tensor *t)
{
    return hw_dtype_block(t->dtype) > 1;
}

/* Axes count from the innermost, which is 0. A missing one has extent 1. */
static inline int64_t extent_of(const struct hw_tensor *t, int axis)
{
    return axis < t->rank ? t->extent[t->rank - 1 - axis] : 1;
}

/* An extent of 1 repeats. */
static inline int64_t stride_of(const struct hw_tensor *t, int axis)
{
    return extent_of(t, axis) == 1 ? 0 : t->stride[t->rank - 1 - axis];
}

static inline int64_t cols_of(const struct hw_tensor *t)
{
    return t->extent[t->rank - 1];
}

static inline bool is_dense(const struct hw_tensor *t)
{
    return !present(t) || cols_of(t) <= 1 || t->layout ||
           t->stride[t->rank - 1] == hw_dtype_bytes(t->dtype);
}

static inline int64_t pieces(int64_t n, int64_t piece)
{
    return n / piece + (n % piece != 0);
}

/* Bytes from the address that a plugin passes for an operand to its first element. */
static inline int64_t offset_of(const struct hw_tensor *t)
{
    return present(t) ? (int64_t)(t->offset + (t->buffer ? t->buffer->offset : 0)) : 0;
}

/* The offset of an operand and the strides of its three outer axes. */
static inline struct place place_of(const struct hw_tensor *t)
{
    if (!present(t))
        return (struct place){ 0 };
    return (struct place){
        .offset = offset_of(t),
        .stride = { stride_of(t, 3), stride_of(t, 2), stride_of(t, 1) },
    };
}

/* The outer extents of an operand that repeats. */
struct extents extents_of(const struct hw_tensor *t);

/* ---- results; the first refusal counts ---- */

static inline void refuse(struct lowered *out, const char *why)
{
    if (!out->why)
        out->why = why;
}

/* Refuses a tensor whose rows have gaps between their elements. */
static inline void want_dense(struct lowered *out, const struct hw_tensor *t)
{
    if (!is_dense(t))
        refuse(out, NOT_CONTIGUOUS);
}

/* Selects the form that is compiled for the type of `x`, and of `weight` unless that is NULL
 * or absent. */
void want_form(struct lowered *out, const struct hw_tensor *x,
               const struct hw_tensor *weight);

/* a * b * c groups, and the work of all of them. */
void set_groups(struct lowered *out, int64_t a, int64_t b, int64_t c, double work);

/* One group for each row of `t`; `work` for each element. */
void set_row_groups(struct lowered *out, const struct hw_tensor *t, double work);

/* ---- lower_shape.c: as few and as long rows as the strides of operands allow ---- */

enum { ROWS_OPERANDS = 3 };

/* Rows of up to three outer extents, `step` bytes from element to element. */
struct rows {
    struct place place[ROWS_OPERANDS];
    int64_t step[ROWS_OPERANDS];
    int64_t outer[3], cols;
};

/* How far apart the elements of a row may be for a kernel. */
enum steps {
    STEPS_NEIGHBOURS,         /* not at all */
    STEPS_NEIGHBOURS_OR_SAME, /* or an input repeats one element */
    STEPS_ANY
};

/* Whether the operands have one type, shape and strides, and are contiguous. Then they are one row,
 * and nothing has to be merged. This is the usual case. */
bool find_one_row(const struct hw_tensor *const *t, int operands, struct rows *rows);

/* The longest rows of operands that have the shape of the first one or broadcast to it. Returns
 * false, with a reason, if they cannot be cut into rows. */
bool find_rows(struct lowered *out, const struct hw_tensor *const *t, int operands,
               enum steps steps, struct rows *rows);

/* One group per ELEMENT_SPAN elements of a row; `work` per element. */
void set_span_groups(struct lowered *out, const struct rows *rows, double work);

#endif
