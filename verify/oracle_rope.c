/* SPDX-License-Identifier: MIT */
/* oracle_rope.c - rotates pair i of the first `dims` elements of each head by the angle
 * position * scale * theta^(-2i/dims) / factors[i], and multiplies it by magnitude; YaRN as
 * hw/ops.h defines it. */
#include "oracle.h"

#include <math.h>

static int64_t dims_of(const struct hw_rope *op, const struct operand *y)
{
    return op->dims ? op->dims : operand_cols(y);
}

static double given(float value, double otherwise)
{
    return value != 0.0f ? (double)value : otherwise;
}

/* The factor of pair i's positions. */
static double scale_of(const struct hw_rope *op, int64_t dims, int64_t i)
{
    const double scale = given(op->scale, 1), theta = given(op->theta, 10000);
    const double turn = 2 * acos(-1);
    if (op->yarn == 0.0f)
        return scale;
    const double fast = log((double)op->context / (turn * given(op->beta_fast, 32)));
    const double slow = log((double)op->context / (turn * given(op->beta_slow, 1)));
    const double low = fmax(0, floor((double)dims * fast / (2 * log(theta))));
    const double high = fmin((double)dims - 1,
                             ceil((double)dims * slow / (2 * log(theta))));
    const double ramp = 1 - ((double)i - low) / fmax(high - low, 0.001);
    const double m = (double)op->yarn * fmax(0, fmin(1, ramp));
    return scale * (1 - m) + m;
}

bool oracle_rope(const struct hw_rope *op, struct operand *operands)
{
    const struct operand *x = &operands[operand_rope_x];
    const struct operand *positions = &operands[operand_rope_positions];
    const struct operand *factors = &operands[operand_rope_factors];
    struct operand *y = &operands[operand_rope_y];
    const int64_t depth = operand_cols(y), heads = y->extent[y->rank - 2];
    const int64_t tokens = y->extent[y->rank - 3], dims = dims_of(op, y);
    const double theta = given(op->theta, 10000);
    const double paper = op->yarn != 0.0f ? 1 + 0.1 * log(1 / given(op->scale, 1)) : 1;
    const double magnitude = given(op->magnitude, paper);

    for (int64_t row = 0; row < operand_rows(y); row++) {
        const int64_t token = row / heads % tokens;
        const double position = positions->dtype ? positions->value[token]
                                                 : (double)(op->start + token);
        for (int64_t i = 0; i < dims / 2; i++) {
            const double factor = factors->dtype ? factors->value[i] : 1;
            const double angle = position * scale_of(op, dims, i) *
                                 pow(theta, -2.0 * (double)i / (double)dims) / factor;
            const int64_t first = row * depth + (op->interleaved ? 2 * i : i);
            const int64_t second = first + (op->interleaved ? 1 : dims / 2);
            const double a = x->value[first], b = x->value[second];
            y->want[first] = magnitude * (a * cos(angle) - b * sin(angle));
            y->want[second] = magnitude * (a * sin(angle) + b * cos(angle));
            y->drift[first] = y->drift[second] = fabs(magnitude) * (fabs(a) + fabs(b));
        }
        for (int64_t i = row * depth + dims; i < (row + 1) * depth; i++)
            y->want[i] = x->value[i];
    }
    return true;
}

/* Sines and cosines are not counted: there is one per position and pair, not per head.
 */
double flops_rope(const struct hw_rope *op, const struct operand *operands)
{
    const struct operand *y = &operands[operand_rope_y];
    return 3.0 * (double)operand_rows(y) * (double)dims_of(op, y);
}
