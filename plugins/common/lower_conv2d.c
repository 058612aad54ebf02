/* SPDX-License-Identifier: MIT */
/* conv2d: groups of channels, and tiles of their planes. */
#include "lowering.h"

static int64_t or_one(int32_t value)
{
    return value ? value : 1;
}

/* Whether the weights of a channel follow each other without gaps. */
static bool is_flat(const struct hw_tensor *weight)
{
    int64_t step = hw_dtype_bytes(weight->dtype);
    for (int i = 0; i < 3; i++) {
        if (extent_of(weight, i) > 1 && stride_of(weight, i) != step)
            return false;
        step *= extent_of(weight, i);
    }
    return true;
}

void lower_conv2d(const struct hw_conv2d *op, struct lowered *out)
{
    struct conv2d_args *c = &out->args.conv2d;

    *c = (struct conv2d_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .weight = place_of(&op->weight),
        .bias_offset = offset_of(&op->bias),
        .groups = or_one(op->groups),
        .outs = extent_of(&op->y, 2) / or_one(op->groups),
        .ins = extent_of(&op->weight, 2),
        .height = extent_of(&op->x, 1),
        .width = extent_of(&op->x, 0),
        .out_height = extent_of(&op->y, 1),
        .out_width = extent_of(&op->y, 0),
        .kernel_height = extent_of(&op->weight, 1),
        .kernel_width = extent_of(&op->weight, 0),
        .stride_h = or_one(op->stride_h),
        .stride_w = or_one(op->stride_w),
        .pad_h = op->pad_h,
        .pad_w = op->pad_w,
        .dilation_h = or_one(op->dilation_h),
        .dilation_w = or_one(op->dilation_w),
        .y_type = op->y.dtype,
        .x_type = op->x.dtype,
        .weight_type = op->weight.dtype,
        .bias_type = op->bias.dtype,
        .flat = is_flat(&op->weight),
    };
    want_dense(out, &op->x);
    want_dense(out, &op->weight);
    want_dense(out, &op->bias);
    want_dense(out, &op->y);
    /* No product of extents of one tensor overflows: its size in bytes has been computed. */
    const int64_t plane = c->out_height * c->out_width;
    const double taps = (double)(c->ins * c->kernel_height * c->kernel_width);
    const double work = (double)extent_of(&op->y, 3) * (double)extent_of(&op->y, 2) *
                        (double)plane * (taps + 1);
    int64_t images;
    if (__builtin_mul_overflow(extent_of(&op->y, 3), c->groups, &images))
        refuse(out, TOO_MANY_GROUPS);
    else
        set_groups(out, images, pieces(c->outs, MATMUL_ROWS), pieces(plane, MATMUL_COLS),
                   work);
}
