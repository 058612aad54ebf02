/* SPDX-License-Identifier: MIT */
/* attention: a group for some of the rows that read one head of k and v. */
#include "lowering.h"

#include <math.h>

void lower_attention(const struct hw_attention *op, struct lowered *out)
{
    const int64_t keys = extent_of(&op->k, 2), dim = cols_of(&op->q),
                  heads = extent_of(&op->q, 1);
    const int64_t kv_heads = extent_of(&op->k, 1), queries = extent_of(&op->q, 2);
    const int64_t length = op->length == 0 || op->length > keys ? keys : op->length;
    int64_t batch_heads, rows;

    if (!is_float(&op->k) && !is_block(&op->k))
        refuse(out, "k, v: " UNKNOWN_TYPE);
    if (dim > ATTENTION_MAX_DIM || cols_of(&op->v) > ATTENTION_MAX_DIM)
        refuse(out, "head sizes above 256 have no portable kernel");
    out->args.attention = (struct attention_args){
        .y = place_of(&op->y),
        .q = place_of(&op->q),
        .k = place_of(&op->k),
        .v = place_of(&op->v),
        .bias = place_of(&op->bias),
        .lengths_offset = offset_of(&op->lengths),
        .length = length,
        .keys_max = keys,
        .window = op->window,
        .queries = queries,
        .heads = heads,
        .kv_heads = kv_heads,
        .head_dim = (int)dim,
        .value_dim = (int)cols_of(&op->v),
        .y_type = op->y.dtype,
        .q_type = op->q.dtype,
        .k_type = op->k.dtype,
        .v_type = op->v.dtype,
        .bias_type = op->bias.dtype,
        .causal = op->causal != 0,
        .has_lengths = present(&op->lengths),
        .scale = op->scale != 0.0f ? op->scale
                 : dim             ? (float)(1.0 / sqrt((double)dim))
                                   : 1.0f,
        .softcap = op->softcap,
    };
    want_dense(out, &op->q);
    want_dense(out, &op->k);
    want_dense(out, &op->v);
    want_dense(out, &op->y);
    want_dense(out, &op->bias);
    want_dense(out, &op->lengths);
    if (kv_heads == 0) {
        refuse(out, "k and v have no heads");
        return;
    }
    if (__builtin_mul_overflow(extent_of(&op->q, 3), kv_heads, &batch_heads) ||
        __builtin_mul_overflow(queries, heads / kv_heads, &rows)) {
        refuse(out, TOO_MANY_GROUPS);
        return;
    }
    set_groups(out, batch_heads, pieces(rows, ATTENTION_ROWS), 1,
               (double)batch_heads * (double)rows * (double)length *
                   (double)(dim + cols_of(&op->v) + 8));
}
