/* SPDX-License-Identifier: MIT */
/* oracle_move.c - ops that move or convert data, exact to the bit: copy, get_rows,
 * set_rows. */
#include "oracle.h"

#include "storage.h"

#include <string.h>

/* Copies or converts `count` packed elements. */
static void move(struct operand *to, int64_t to_at, const struct operand *from,
                 int64_t from_at, int64_t count)
{
    unsigned char *target = to->exact_bytes + storage_bytes(to->dtype, to_at);

    if (to->dtype == from->dtype)
        memcpy(target, from->bytes + storage_bytes(from->dtype, from_at),
               storage_bytes(from->dtype, count));
    else
        storage_write(to->dtype, target, from->value + from_at, count);
}

/* The results as numbers, too, for a comparison with a tolerance. */
static void finish(struct operand *to, bool same_dtype)
{
    storage_read_all(to->dtype, to->exact_bytes, to->want, to->count);
    to->exact = true;
    to->same_dtype = same_dtype;
}

bool oracle_copy(const struct hw_copy *op, struct operand *operands)
{
    const struct operand *src = &operands[operand_copy_src];
    struct operand *dst = &operands[operand_copy_dst];

    (void)op;
    move(dst, 0, src, 0, src->count);
    finish(dst, src->dtype == dst->dtype);
    return true;
}

double flops_copy(const struct hw_copy *op, const struct operand *operands)
{
    (void)op;
    (void)operands;
    return 0;
}

/* The batch of `t` for batch `batch` of `whole`, a tensor of matrices. The last `own` extents of
 * `t` are not batches. */
static int64_t batch_of(const struct operand *t, int32_t own, const struct operand *whole,
                        int64_t batch)
{
    int64_t index = 0, step = 1;

    for (int32_t back = 1; back <= t->rank - own; back++) {
        const int64_t extent = t->extent[t->rank - own - back];
        const int64_t all = whole->extent[whole->rank - 2 - back];
        index += batch % all % extent * step;
        batch /= all;
        step *= extent;
    }
    return index;
}

static int64_t integer_at(const struct operand *o, int64_t i)
{
    int32_t narrow;
    int64_t wide;

    if (o->dtype == HW_I64)
        return memcpy(&wide, o->bytes + 8 * i, sizeof wide), wide;
    return memcpy(&narrow, o->bytes + 4 * i, sizeof narrow), narrow;
}

/* The row of the table, counted over all its batches, for row `i` of `narrow`, counted in the same
 * way; -1 if the row number is outside of the table. */
static int64_t table_row(const struct operand *table, const struct operand *rows,
                         const struct operand *narrow, int64_t i)
{
    const int64_t count = narrow->extent[narrow->rank - 2], batch = i / count;
    const int64_t number = integer_at(rows,
                                      batch_of(rows, 1, narrow, batch) * count + i % count);
    const int64_t height = table->extent[table->rank - 2];

    if (number < 0 || number >= height)
        return -1;
    return batch_of(table, 2, narrow, batch) * height + number;
}

bool oracle_get_rows(const struct hw_get_rows *op, struct operand *operands)
{
    const struct operand *table = &operands[operand_get_rows_table];
    const struct operand *rows = &operands[operand_get_rows_rows];
    struct operand *y = &operands[operand_get_rows_y];
    const int64_t cols = operand_cols(y);

    (void)op;
    for (int64_t i = 0; i < operand_rows(y); i++) {
        const int64_t row = table_row(table, rows, y, i);
        if (row >= 0) /* otherwise it stays zero */
            move(y, i * cols, table, row * cols, cols);
    }
    finish(y, false);
    return true;
}

double flops_get_rows(const struct hw_get_rows *op, const struct operand *operands)
{
    (void)op;
    (void)operands;
    return 0;
}

bool oracle_set_rows(const struct hw_set_rows *op, struct operand *operands)
{
    const struct operand *x = &operands[operand_set_rows_x];
    const struct operand *rows = &operands[operand_set_rows_rows];
    struct operand *table = &operands[operand_set_rows_table];
    const int64_t cols = operand_cols(table);

    (void)op;
    memcpy(table->exact_bytes, table->bytes, storage_bytes(table->dtype, table->count));
    for (int64_t i = 0; i < operand_rows(x); i++) {
        const int64_t row = table_row(table, rows, x, i);
        if (row >= 0)
            move(table, row * cols, x, i * cols, cols);
    }
    finish(table, false);
    return true;
}

double flops_set_rows(const struct hw_set_rows *op, const struct operand *operands)
{
    (void)op;
    (void)operands;
    return 0;
}
