/* SPDX-License-Identifier: MIT */
/* tables.h - which row of a table get_rows reads and set_rows writes. */
#ifndef CPU_TABLES_H
#define CPU_TABLES_H

#include "words.h"

/* The number in the table of row i; both ops have the same arguments. */
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

/* The first byte of row `number` of the table that output row i reads. */
static inline const char *table_row(const struct plan *plan, int64_t i, int64_t number)
{
    const struct rows_args *a = &plan->lowered.args.get_rows;
    const int64_t i1 = i / a->count % a->batch1, i0 = i / a->count / a->batch1;
    return (const char *)plan->pointer[1] + a->from.offset +
           i0 % a->from_extents.n[0] * a->from.stride[0] +
           i1 % a->from_extents.n[1] * a->from.stride[1] + number * a->from.stride[2];
}

/* The first byte of row `number` of the table that input row i goes to. */
static inline char *row_to_set(const struct plan *plan, int64_t i, int64_t number)
{
    const struct rows_args *a = &plan->lowered.args.set_rows;
    const int64_t i1 = i / a->count % a->batch1, i0 = i / a->count / a->batch1;
    return (char *)plan->pointer[0] + a->to.offset + i0 * a->to.stride[0] +
           i1 * a->to.stride[1] + number * a->to.stride[2];
}

#endif
