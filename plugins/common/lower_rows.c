/* SPDX-License-Identifier: MIT */
/* Ops over the last extent, a group for each row: rmsnorm, add_rmsnorm, layernorm, softmax,
 * argmax, top_k, dot. */
#include "lowering.h"

_Static_assert(TOP_K_MAX == HW_MAX_K, "the kernel finds as many");

void lower_rmsnorm(const struct hw_rmsnorm *op, struct lowered *out)
{
    out->args.rmsnorm = (struct rmsnorm_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .weight_offset = offset_of(&op->weight),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .eps = op->eps,
        .has_weight = present(&op->weight),
    };
    want_form(out, &op->x, &op->weight);
    want_dense(out, &op->x);
    want_dense(out, &op->weight);
    want_dense(out, &op->y);
    set_row_groups(out, &op->x, 2);
}

void lower_add_rmsnorm(const struct hw_add_rmsnorm *op, struct lowered *out)
{
    out->args.add_rmsnorm = (struct add_rmsnorm_args){
        .y = place_of(&op->y),
        .residual = place_of(&op->residual),
        .x = place_of(&op->x),
        .weight_offset = offset_of(&op->weight),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .eps = op->eps,
        .has_weight = present(&op->weight),
    };
    want_form(out, &op->x, &op->weight);
    want_dense(out, &op->x);
    want_dense(out, &op->residual);
    want_dense(out, &op->weight);
    want_dense(out, &op->y);
    set_row_groups(out, &op->x, 3);
}

void lower_layernorm(const struct hw_layernorm *op, struct lowered *out)
{
    out->args.layernorm = (struct layernorm_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .weight_offset = offset_of(&op->weight),
        .bias_offset = offset_of(&op->bias),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .eps = op->eps,
        .has_weight = present(&op->weight),
        .has_bias = present(&op->bias),
        .reserved = 0,
    };
    want_form(out, &op->x, present(&op->weight) ? &op->weight : &op->bias);
    want_dense(out, &op->x);
    want_dense(out, &op->weight);
    want_dense(out, &op->bias);
    want_dense(out, &op->y);
    set_row_groups(out, &op->x, 4);
}

void lower_softmax(const struct hw_softmax *op, struct lowered *out)
{
    const bool masked = present(&op->mask);
    out->args.softmax = (struct softmax_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .mask = place_of(&op->mask),
        .mask_extents = extents_of(&op->mask),
        .slopes_offset = offset_of(&op->slopes),
        .sinks_offset = offset_of(&op->sinks),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .scale = op->scale == 0.0f ? 1.0f : op->scale,
        .mask_type = op->mask.dtype,
        .mask_step = masked && cols_of(&op->mask) == cols_of(&op->x),
        .log_form = op->log != 0,
        .has_slopes = present(&op->slopes),
        .has_sinks = present(&op->sinks),
    };
    want_form(out, &op->x, NULL);
    want_dense(out, &op->x);
    want_dense(out, &op->mask);
    want_dense(out, &op->slopes);
    want_dense(out, &op->sinks);
    want_dense(out, &op->y);
    set_row_groups(out, &op->x, 24);
}

/* An output with one element per row of an operand of rank `rank`. Its last extent becomes 1. */
static struct hw_tensor of_rows(const struct hw_tensor *t, int rank)
{
    struct hw_tensor y = *t;
    if (y.rank < rank && y.rank < HW_MAX_RANK) {
        y.extent[y.rank] = 1;
        y.stride[y.rank] = hw_dtype_bytes(y.dtype);
        y.rank++;
    }
    return y;
}

static void want_indices(struct lowered *out, const struct hw_tensor *x)
{
    if (cols_of(x) > INT32_MAX)
        refuse(out, "an index does not fit 32 bits");
}

void lower_argmax(const struct hw_argmax *op, struct lowered *out)
{
    const struct hw_tensor y = of_rows(&op->y, op->x.rank);
    out->args.argmax = (struct argmax_args){
        .y = place_of(&y),
        .x = place_of(&op->x),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
    };
    want_indices(out, &op->x);
    want_form(out, &op->x, NULL);
    want_dense(out, &op->x);
    set_row_groups(out, &op->x, 3);
}

void lower_top_k(const struct hw_top_k *op, struct lowered *out)
{
    out->args.top_k = (struct top_k_args){
        .indices = place_of(&op->indices),
        .x = place_of(&op->x),
        .values = place_of(&op->values),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .k = (int)cols_of(&op->indices),
        .has_values = present(&op->values),
    };
    want_indices(out, &op->x);
    want_form(out, &op->x, NULL);
    want_dense(out, &op->x);
    want_dense(out, &op->values);
    want_dense(out, &op->indices);
    set_row_groups(out, &op->x, 4);
}

void lower_dot(const struct hw_dot *op, struct lowered *out)
{
    const struct hw_tensor y = of_rows(&op->y,
                                       op->a.rank > op->b.rank ? op->a.rank : op->b.rank);
    out->args.dot = (struct dot_args){
        .y = place_of(&y),
        .a = place_of(&op->a),
        .b = place_of(&op->b),
        .n1 = extent_of(&y, 2),
        .n2 = extent_of(&y, 1),
        .cols = cols_of(&op->a),
        .y_type = op->y.dtype,
        .a_type = op->a.dtype,
        .b_type = op->b.dtype,
        .reserved = 0,
    };
    want_dense(out, &op->a);
    want_dense(out, &op->b);
    set_row_groups(out, &y, 2 * (double)cols_of(&op->a) + 1);
}
