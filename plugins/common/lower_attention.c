/* SPDX-License-Identifier: MIT */
/* attention: a group computes some of the rows that read one head of k and v. */
#include "lowering.h"

#include <math.h>

_Static_assert(ATTENTION_MAX_DIM == HW_MAX_HEAD, "the kernel takes every head");

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)

static int64_t length_of(const struct hw_attention *op)
{
    const int64_t keys = extent_of(&op->k, 2);
    return op->length == 0 || op->length > keys ? keys : op->length;
}

static struct attention_args args_of(const struct hw_attention *op)
{
    const int64_t dim = cols_of(&op->q);
    return (struct attention_args){
        .y = place_of(&op->y),
        .q = place_of(&op->q),
        .k = place_of(&op->k),
        .v = place_of(&op->v),
        .bias = place_of(&op->bias),
        .bias_extents = extents_of(&op->bias),
        .slopes_offset = offset_of(&op->slopes),
        .sinks_offset = offset_of(&op->sinks),
        .lengths_offset = offset_of(&op->lengths),
        .length = length_of(op),
        .keys_max = extent_of(&op->k, 2),
        .window = op->window,
        .queries = extent_of(&op->q, 2),
        .heads = extent_of(&op->q, 1),
        .kv_heads = extent_of(&op->k, 1),
        .head_dim = (int)dim,
        .value_dim = (int)cols_of(&op->v),
        .y_type = op->y.dtype,
        .q_type = op->q.dtype,
        .k_type = op->k.dtype,
        .v_type = op->v.dtype,
        .bias_type = op->bias.dtype,
        .causal = op->causal != 0,
        .has_slopes = present(&op->slopes),
        .has_sinks = present(&op->sinks),
        .has_lengths = present(&op->lengths),
        .scale = op->scale != 0.0f ? op->scale
                 : dim             ? (float)(1.0 / sqrt((double)dim))
                                   : 1.0f,
        .softcap = op->softcap,
        .reserved = 0,
    };
}

void lower_attention(const struct hw_attention *op, struct lowered *out)
{
    const int64_t dim = cols_of(&op->q), value_dim = cols_of(&op->v);
    const int64_t heads = extent_of(&op->q, 1), kv_heads = extent_of(&op->k, 1);
    int64_t batch_heads, rows;

    if (!is_float(&op->k) && !is_block(&op->k))
        refuse(out, "k: " UNKNOWN_TYPE);
    if (!is_float(&op->v) && !is_block(&op->v))
        refuse(out, "v: " UNKNOWN_TYPE);
    if (dim > ATTENTION_MAX_DIM || value_dim > ATTENTION_MAX_DIM)
        refuse(out,
               "head sizes above " TEXT_OF(ATTENTION_MAX_DIM) " have no portable kernel");
    for (uint32_t i = 0; i < out->pointers; i++)
        if (out->operand[i])
            want_dense(out, out->operand[i]);
    if (kv_heads == 0) {
        refuse(out, "k and v have no heads");
        return;
    }
    out->args.attention = args_of(op);
    if (__builtin_mul_overflow(extent_of(&op->q, 3), kv_heads, &batch_heads) ||
        __builtin_mul_overflow(extent_of(&op->q, 2), heads / kv_heads, &rows)) {
        refuse(out, TOO_MANY_GROUPS);
        return;
    }
    set_groups(out, batch_heads, pieces(rows, ATTENTION_ROWS), 1,
               (double)batch_heads * (double)rows * (double)length_of(op) *
                   (double)(dim + value_dim + 8));
}
