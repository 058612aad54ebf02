/* SPDX-License-Identifier: MIT */
/* Ops over the last extent, a group for each row: rmsnorm, add_rmsnorm, softmax, argmax. */
#include "lowering.h"

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

void lower_softmax(const struct hw_softmax *op, struct lowered *out)
{
    const bool masked = present(&op->mask);
    out->args.softmax = (struct softmax_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .mask = place_of(&op->mask),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .scale = op->scale == 0.0f ? 1.0f : op->scale,
        .has_mask = masked,
        .mask_step = masked && cols_of(&op->mask) == cols_of(&op->x),
        .log_form = op->log != 0,
    };
    want_form(out, &op->x, &op->mask);
    want_dense(out, &op->x);
    want_dense(out, &op->mask);
    want_dense(out, &op->y);
    set_row_groups(out, &op->x, 24);
}

void lower_argmax(const struct hw_argmax *op, struct lowered *out)
{
    /* y has one element for each row of x: x's extents without the last, or with a last one
     * of 1. */
    struct hw_tensor y = op->y;
    if (y.rank < op->x.rank && y.rank < HW_MAX_RANK) {
        y.extent[y.rank] = 1;
        y.stride[y.rank] = 4;
        y.rank++;
    }
    out->args.argmax = (struct argmax_args){
        .y = place_of(&y),
        .x = place_of(&op->x),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
    };
    if (cols_of(&op->x) > INT32_MAX)
        refuse(out, "an index does not fit 32 bits");
    want_form(out, &op->x, NULL);
    want_dense(out, &op->x);
    set_row_groups(out, &op->x, 3);
}
