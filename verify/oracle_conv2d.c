/* SPDX-License-Identifier: MIT */
/* oracle_conv2d.c - y[b,o,i,j] = bias[o] + the sum over c, p, q of weight[o,c,p,q] times the
 * element of x under weight (c, p, q) of the kernel at (i, j), or zero outside of x. */
#include "oracle.h"

#include <math.h>

static int64_t or_one(int32_t value)
{
    return value ? value : 1;
}

/* One element of y. */
struct spot {
    int64_t b, o, i, j;
};

static void conv2d_at(const struct hw_conv2d *op, struct operand *operands, int64_t at,
                      struct spot s)
{
    const struct operand *x = &operands[operand_conv2d_x];
    const struct operand *w = &operands[operand_conv2d_weight];
    const struct operand *bias = &operands[operand_conv2d_bias];
    struct operand *y = &operands[operand_conv2d_y];
    const int64_t ins = w->extent[1], kh = w->extent[2], kw = w->extent[3];
    const int64_t height = x->extent[2], width = x->extent[3];
    const int64_t group = s.o / (w->extent[0] / or_one(op->groups));
    double sum = 0, squares = 0, magnitude = 0;

    for (int64_t c = 0; c < ins; c++)
        for (int64_t p = 0; p < kh; p++)
            for (int64_t q = 0; q < kw; q++) {
                const int64_t row = s.i * or_one(op->stride_h) - op->pad_h +
                                    p * or_one(op->dilation_h);
                const int64_t col = s.j * or_one(op->stride_w) - op->pad_w +
                                    q * or_one(op->dilation_w);
                const int64_t plane = s.b * x->extent[1] + group * ins + c;
                if (row < 0 || row >= height || col < 0 || col >= width)
                    continue;
                const double term = x->value[(plane * height + row) * width + col] *
                                    w->value[((s.o * ins + c) * kh + p) * kw + q];
                sum += term;
                squares += term * term;
                magnitude += fabs(term);
            }
    const double offset = bias->dtype ? bias->value[s.o] : 0;
    y->want[at] = sum + offset;
    y->noise[at] = sqrt(squares);
    y->drift[at] = sqrt((double)(ins * kh * kw)) * magnitude + fabs(offset);
}

bool oracle_conv2d(const struct hw_conv2d *op, struct operand *operands)
{
    const struct operand *y = &operands[operand_conv2d_y];
    const int64_t outs = y->extent[1], rows = y->extent[2], cols = y->extent[3];

    for (int64_t at = 0; at < y->count; at++)
        conv2d_at(op, operands, at,
                  (struct spot){ at / cols / rows / outs, at / cols / rows % outs,
                                 at / cols % rows, at % cols });
    return true;
}

double flops_conv2d(const struct hw_conv2d *op, const struct operand *operands)
{
    const struct operand *w = &operands[operand_conv2d_weight];

    (void)op;
    return 2.0 * (double)operands[operand_conv2d_y].count * (double)w->extent[1] *
           (double)w->extent[2] * (double)w->extent[3];
}
