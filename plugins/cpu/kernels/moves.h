/* SPDX-License-Identifier: MIT */
/* moves.h - shared by copies, get_rows and set_rows of all types: the rows to read and write, and
 * the loop that calls a conversion. */
#ifndef CPU_MOVES_H
#define CPU_MOVES_H

#include "spans.h"

/* Converts n elements, whole blocks where there are blocks. */
typedef void convert_fn(char *to, const char *from, int64_t n);

/* ---- tables ---- */

/* The table's row number for row i; both ops have the same arguments. */
static inline int64_t number_at(const struct plan *plan, int64_t i)
{
    const struct rows_args *a = &plan->lowered.args.get_rows;
    const int64_t *n = a->rows_extents.n;
    const int64_t i2 = i % a->count, i1 = i / a->count % a->batch1;
    const int64_t i0 = i / a->count / a->batch1;
    const char *at = (const char *)plan->pointer[2] + a->rows.offset +
                     i0 % n[0] * a->rows.stride[0] + i1 % n[1] * a->rows.stride[1] +
                     i2 % n[2] * a->rows.stride[2];
    return a->rows_type == HW_I64 ? *(const int64_t *)(const void *)at
                                  : *(const int32_t *)(const void *)at;
}

/* The first byte of row `number` of the table, which output row i reads. */
static inline const char *table_row(const struct plan *plan, int64_t i, int64_t number)
{
    const struct rows_args *a = &plan->lowered.args.get_rows;
    const int64_t i1 = i / a->count % a->batch1, i0 = i / a->count / a->batch1;
    return (const char *)plan->pointer[1] + a->from.offset +
           i0 % a->from_extents.n[0] * a->from.stride[0] +
           i1 % a->from_extents.n[1] * a->from.stride[1] + number * a->from.stride[2];
}

/* The first byte of row `number` of the table, the target of input row i. */
static inline char *row_to_set(const struct plan *plan, int64_t i, int64_t number)
{
    const struct rows_args *a = &plan->lowered.args.set_rows;
    const int64_t i1 = i / a->count % a->batch1, i0 = i / a->count / a->batch1;
    return (char *)plan->pointer[0] + a->to.offset + i0 * a->to.stride[0] +
           i1 * a->to.stride[1] + number * a->to.stride[2];
}

/* Numbers that no row has give zeros. */
static inline void get_rows_by(convert_fn *fn, const struct plan *plan, int64_t first,
                               int64_t end)
{
    const struct rows_args *a = &plan->lowered.args.get_rows;
    for (int64_t i = first; i < end; i++) {
        char *to = row_of(plan->pointer[0], &a->to, a->batch1, a->count, i);
        const int64_t number = number_at(plan, i);
        if (number >= 0 && number < a->table_rows)
            fn(to, table_row(plan, i, number), a->cols);
        else
            memset(to, 0, (size_t)(a->cols * hw_dtype_bytes(a->to_type)));
    }
}

/* Row numbers outside the table are skipped. */
static inline void set_rows_by(convert_fn *fn, const struct plan *plan, int64_t first,
                               int64_t end)
{
    const struct rows_args *a = &plan->lowered.args.set_rows;
    for (int64_t i = first; i < end; i++) {
        const int64_t number = number_at(plan, i);
        if (number >= 0 && number < a->table_rows)
            fn(row_to_set(plan, i, number),
               row_of(plan->pointer[1], &a->from, a->batch1, a->count, i), a->cols);
    }
}

/* ---- copies of contiguous rows ---- */

/* The address of element `first` of row `row` of an operand of copy. */
static inline char *place_of(void *base, const struct place *place,
                             const struct copy_args *a, int32_t type,
                             const struct stretch *s)
{
    return row_of(base, place, a->n1, a->n2, s->row) +
           s->first / hw_dtype_block(type) * hw_dtype_bytes(type);
}

static inline void copy_by(convert_fn *fn, const struct plan *plan, int64_t group,
                           int64_t end)
{
    const struct copy_args *a = &plan->lowered.args.copy;
    while (group < end) {
        const struct stretch s = next_stretch(&group, end, a->cols);
        fn(place_of(plan->pointer[0], &a->dst, a, a->dst_type, &s),
           place_of(plan->pointer[1], &a->src, a, a->src_type, &s), s.count);
    }
}

#endif
