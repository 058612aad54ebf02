/* SPDX-License-Identifier: MIT */
/* Operands of one shape, cut into as few and as long rows as their strides allow. */
#include "lowering.h"

/* Extents and each operand's strides, outermost first, for operands that broadcast to the
 * first. */
struct shape {
    int rank, operands;
    int64_t extent[HW_MAX_RANK];
    int64_t stride[HW_MAX_RANK][ROWS_OPERANDS];
};

/* Whether axis `i` continues where the next inner one, kept at `last`, ends. */
static bool continues(const struct shape *s, int i, int last)
{
    for (int k = 0; k < s->operands; k++) {
        int64_t whole;
        if (__builtin_mul_overflow(s->extent[last], s->stride[last][k], &whole) ||
            s->stride[i][k] != whole)
            return false;
    }
    return true;
}

/* Drops extents of 1 and merges axes that follow each other in all operands. */
static void merge(struct shape *s)
{
    struct shape kept; /* only its entries from `last` on are set */
    kept.operands = s->operands;
    int last = HW_MAX_RANK; /* kept axes are stored from the end */
    for (int i = s->rank - 1; i >= 0; i--) {
        int64_t both;
        if (s->extent[i] == 1)
            continue;
        kept.extent[last - 1] = s->extent[i];
        memcpy(kept.stride[last - 1], s->stride[i], sizeof s->stride[i]);
        if (last < HW_MAX_RANK && continues(&kept, last - 1, last) &&
            !__builtin_mul_overflow(kept.extent[last], s->extent[i], &both))
            kept.extent[last] = both;
        else
            last--;
    }
    s->rank = HW_MAX_RANK - last;
    for (int i = 0; i < s->rank; i++) {
        s->extent[i] = kept.extent[last + i];
        memcpy(s->stride[i], kept.stride[last + i], sizeof s->stride[i]);
    }
}

/* Bytes of `unit` elements of a row. With block types, `unit` is whole blocks of all
 * operands. */
static int64_t step_of(const struct hw_tensor *t, int64_t unit)
{
    return unit == 1 ? hw_dtype_bytes(t->dtype)
                     : unit / hw_dtype_block(t->dtype) * hw_dtype_bytes(t->dtype);
}

static int64_t unit_of(const struct hw_tensor *const *t, int operands)
{
    int64_t unit = 1;
    for (int k = 0; k < operands; k++)
        if (hw_dtype_block(t[k]->dtype) > unit)
            unit = hw_dtype_block(t[k]->dtype);
    return unit;
}

static struct shape shape_of(const struct hw_tensor *const *t, int operands, int64_t unit)
{
    struct shape s;
    s.rank = t[0]->rank;
    s.operands = operands;
    for (int i = 0; i < s.rank; i++) {
        const int axis = s.rank - 1 - i;
        s.extent[i] = axis == 0 && unit > 1 ? t[0]->extent[i] / unit : t[0]->extent[i];
        for (int k = 0; k < operands; k++)
            s.stride[i][k] = axis == 0 && unit > 1 ? step_of(t[k], unit)
                                                   : stride_of(t[k], axis);
    }
    merge(&s);
    return s;
}

/* Whether the last remaining axis can be the row. The innermost axis was dropped if its extent is
 * 1, so check the strides. */
static bool is_along_row(const struct shape *s, const struct hw_tensor *const *t,
                         int64_t unit, enum steps steps)
{
    for (int k = 0; k < s->operands && s->rank > 0; k++) {
        const int64_t step = s->stride[s->rank - 1][k];
        if (steps != STEPS_ANY && step != step_of(t[k], unit) &&
            !(steps == STEPS_NEIGHBOURS_OR_SAME && k > 0 && step == 0))
            return false;
    }
    return s->rank > 0;
}

/* Whether a tensor of plain elements is contiguous. Counts its elements. */
static bool is_one_row(const struct hw_tensor *t, int64_t *cols)
{
    int64_t step = hw_dtype_bytes(t->dtype);
    *cols = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->extent[i] != 1 && t->stride[i] != step)
            return false;
        step *= t->extent[i];
        *cols *= t->extent[i];
    }
    return !is_block(t);
}

static bool same_shape(const struct hw_tensor *a, const struct hw_tensor *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; i < HW_MAX_RANK; i++)
        same &= a->extent[i] == b->extent[i] && a->stride[i] == b->stride[i];
    return same;
}

static void set_one_row(const struct hw_tensor *const *t, int operands, struct rows *rows)
{
    for (int k = 0; k < operands; k++) {
        rows->place[k] = (struct place){ .offset = offset_of(t[k]) };
        rows->step[k] = hw_dtype_bytes(t[k]->dtype);
    }
    rows->outer[0] = rows->outer[1] = rows->outer[2] = 1;
}

bool find_one_row(const struct hw_tensor *const *t, int operands, struct rows *rows)
{
    for (int k = 1; k < operands; k++)
        if (!same_shape(t[k], t[0]))
            return false;
    if (!is_one_row(t[0], &rows->cols))
        return false;
    set_one_row(t, operands, rows);
    return true;
}

bool find_rows(struct lowered *out, const struct hw_tensor *const *t, int operands,
               enum steps steps, struct rows *rows)
{
    if (find_one_row(t, operands, rows))
        return true;
    const int64_t unit = unit_of(t, operands);
    const struct shape s = shape_of(t, operands, unit);
    const int outer = is_along_row(&s, t, unit, steps) ? s.rank - 1 : s.rank;

    if (outer > 3) {
        refuse(out, NOT_CONTIGUOUS);
        return false;
    }
    set_one_row(t, operands, rows);
    rows->cols = outer < s.rank ? s.extent[outer] * unit : unit;
    for (int k = 0; k < operands; k++) {
        rows->step[k] = outer < s.rank && unit == 1 ? s.stride[outer][k] : step_of(t[k], 1);
        for (int i = 0; i < outer; i++)
            rows->place[k].stride[3 - outer + i] = s.stride[i][k];
    }
    for (int i = 0; i < outer; i++)
        rows->outer[3 - outer + i] = s.extent[i];
    return true;
}

void set_span_groups(struct lowered *out, const struct rows *rows, double work)
{
    int64_t spans;
    if (__builtin_mul_overflow(rows->outer[2], pieces(rows->cols, ELEMENT_SPAN), &spans)) {
        refuse(out, TOO_MANY_GROUPS);
        return;
    }
    const double count = (double)rows->outer[0] * (double)rows->outer[1] *
                         (double)rows->outer[2];
    set_groups(out, rows->outer[0], rows->outer[1], spans,
               count * (double)rows->cols * work);
}
