/* SPDX-License-Identifier: MIT */
/* Ops that move and convert: copy, get_rows, set_rows. */
#include "lowering.h"

/* `narrow` is the operand with one row per index: y of get_rows, x of set_rows. */
static void lower_table(const struct hw_tensor *to, const struct hw_tensor *from,
                        const struct hw_tensor *rows, const struct hw_tensor *narrow,
                        const struct hw_tensor *table, struct lowered *out)
{
    struct rows_args *args = &out->args.get_rows;
    const int64_t count = extent_of(narrow, 1);
    int64_t batches;

    *args = (struct rows_args){
        .to = place_of(to),
        .from = place_of(from),
        .rows = { .offset = offset_of(rows),
                  .stride = { stride_of(rows, 2), stride_of(rows, 1),
                              stride_of(rows, 0) } },
        .from_extents = extents_of(from),
        .rows_extents = { { extent_of(rows, 2), extent_of(rows, 1), count } },
        .batch1 = extent_of(narrow, 2),
        .count = count,
        .table_rows = extent_of(table, 1),
        .cols = cols_of(to),
        .to_type = to->dtype,
        .from_type = from->dtype,
        .rows_type = rows->dtype,
        .reserved = 0,
    };
    if ((!is_float(to) && !is_block(to)) || (!is_float(from) && !is_block(from)))
        refuse(out, "table: " UNKNOWN_TYPE);
    want_dense(out, to);
    want_dense(out, from);
    want_dense(out, rows);
    if (__builtin_mul_overflow(extent_of(narrow, 3), extent_of(narrow, 2), &batches))
        refuse(out, TOO_MANY_GROUPS);
    else
        set_groups(out, batches, count, 1,
                   (double)batches * (double)count * (double)cols_of(to) * 2);
}

void lower_get_rows(const struct hw_get_rows *op, struct lowered *out)
{
    lower_table(&op->y, &op->table, &op->rows, &op->y, &op->table, out);
}

void lower_set_rows(const struct hw_set_rows *op, struct lowered *out)
{
    lower_table(&op->table, &op->x, &op->rows, &op->x, &op->table, out);
}

/* Values that are copied unchanged move as integers of their size. */
static int storage_of_bits(int64_t bytes)
{
    switch (bytes) {
    case 1:
        return STORAGE_I8;
    case 2:
        return STORAGE_I16;
    case 4:
        return STORAGE_I32;
    default:
        return STORAGE_I64;
    }
}

/* A tensor of a block type as rows of bytes. */
static struct hw_tensor as_bytes(const struct hw_tensor *t)
{
    struct hw_tensor bytes = *t;
    const int last = t->rank - 1;
    bytes.dtype = HW_I8;
    bytes.extent[last] = t->extent[last] / hw_dtype_block(t->dtype) *
                         hw_dtype_bytes(t->dtype);
    bytes.stride[last] = 1;
    return bytes;
}

/* Whether a kernel converts between the two types. */
static bool converts(const struct hw_tensor *dst, const struct hw_tensor *src)
{
    if (is_float(dst))
        return is_float(src) || is_block(src);
    return is_float(src) && is_block(dst);
}

void lower_copy(const struct hw_copy *op, struct lowered *out)
{
    struct hw_tensor dst = op->dst, src = op->src;
    const bool bits = src.dtype == dst.dtype;
    if (bits && hw_dtype_block(src.dtype) > 1) {
        dst = as_bytes(&op->dst);
        src = as_bytes(&op->src);
    }
    const bool blocks = is_block(&dst) || is_block(&src);
    if (!bits && !converts(&dst, &src)) {
        refuse(
            out,
            "floats convert to floats or blocks, blocks to floats, other types not at all");
        return;
    }
    if (blocks && !(is_dense(&dst) && is_dense(&src))) {
        refuse(out, "the innermost extents must be contiguous to convert a block type");
        return;
    }
    const struct hw_tensor *const t[] = { &dst, &src };
    struct rows r;
    if (!find_rows(out, t, 2, blocks ? STEPS_NEIGHBOURS : STEPS_ANY, &r))
        return;
    out->args.copy = (struct copy_args){
        .dst = r.place[0],
        .src = r.place[1],
        .n1 = r.outer[1],
        .n2 = r.outer[2],
        .cols = r.cols,
        .dst_step = r.step[0],
        .src_step = r.step[1],
        .dst_type = bits ? storage_of_bits(hw_dtype_bytes(dst.dtype)) : dst.dtype,
        .src_type = bits ? storage_of_bits(hw_dtype_bytes(src.dtype)) : src.dtype,
    };
    set_span_groups(out, &r, 2);
}
