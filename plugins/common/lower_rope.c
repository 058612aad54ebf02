/* SPDX-License-Identifier: MIT */
/* rope: angles become fractions of a turn. */
#include "lowering.h"

#include <math.h>

static const double two_pi = 6.283185307179586476925;

/* A double in 0 .. 1 as a fraction of 2^64. A value that was rounded up to 1 becomes the largest
 * fraction. */
static uint64_t fraction(double turns)
{
    return turns < 1.0 ? (uint64_t)(turns * 18446744073709551616.0) : UINT64_MAX;
}

static double or_default(float value, double otherwise)
{
    return value != 0.0f ? (double)value : otherwise;
}

/* The pair that turns `n` times in the trained context. */
static double pair_of(const struct hw_rope *op, double dims, double theta, double n)
{
    return dims * log((double)op->context / (n * two_pi)) / (2.0 * log(theta));
}

/* YaRN: the first frequency is the one of a factor `most`. Each pair's frequency is reduced from
 * there, by a share that is linear between two pairs. */
static void set_ramp(const struct hw_rope *op, struct rope_args *a, double theta,
                     double scale, double most)
{
    const double dims = (double)a->dims, yarn = (double)op->yarn;
    const double low = floor(pair_of(op, dims, theta, or_default(op->beta_fast, 32.0)));
    const double high = ceil(pair_of(op, dims, theta, or_default(op->beta_slow, 1.0)));
    const double fast = 1.0 - (scale * (1.0 - yarn) + yarn) / most;
    const uint64_t from = fraction(fmax(fast, 0.0)), to = fraction(1.0 - scale / most);
    a->ramped = 1;
    a->ramp_first = (int64_t)fmin(fmax(low, 0.0), dims);
    const int64_t last = (int64_t)fmax(fmin(high, dims - 1.0), -1.0);
    a->ramp_length = last > a->ramp_first ? last - a->ramp_first : 1;
    a->reduction = from;
    a->step = to >= from ? (to - from) / (uint64_t)a->ramp_length
                         : -((from - to) / (uint64_t)a->ramp_length);
}

void lower_rope(const struct hw_rope *op, struct lowered *out)
{
    const double scale = or_default(op->scale, 1.0), theta = or_default(op->theta, 10000.0);
    const int64_t dims = op->dims ? op->dims : cols_of(&op->x);
    const double most = op->yarn != 0.0f && scale < 1.0 ? 1.0 : scale;
    const double attention = op->yarn != 0.0f && scale > 0.0 ? 1.0 - 0.1 * log(scale) : 1.0;
    const double ratio = dims ? pow(theta, -2.0 / (double)dims) : 0.0;

    if (!(scale > 0.0 && scale < two_pi))
        refuse(out, "scale is not between 0 and 2 pi");
    if (!(theta > 1.0 && ratio < 1.0))
        refuse(out, "theta is not above 1");
    if (out->why)
        return;
    out->args.rope = (struct rope_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .positions_offset = offset_of(&op->positions),
        .factors_offset = offset_of(&op->factors),
        .start = op->start,
        .tokens = extent_of(&op->x, 2),
        .heads = extent_of(&op->x, 1),
        .head_dim = cols_of(&op->x),
        .dims = dims,
        .frequency = fraction(most / two_pi),
        .ratio = fraction(ratio),
        .interleaved = op->interleaved != 0,
        .has_positions = present(&op->positions),
        .has_factors = present(&op->factors),
        .ramp_first = 0,
        .ramp_length = 0,
        .reduction = 0,
        .step = 0,
        .ramped = 0,
        .magnitude = (float)or_default(op->magnitude, attention),
        .reserved = 0,
    };
    if (op->yarn != 0.0f)
        set_ramp(op, &out->args.rope, theta, scale, most);
    want_form(out, &op->x, NULL);
    want_dense(out, &op->x);
    want_dense(out, &op->positions);
    want_dense(out, &op->factors);
    want_dense(out, &op->y);
    const double tokens = (double)extent_of(&op->x, 3) * (double)extent_of(&op->x, 2);
    set_groups(out, extent_of(&op->x, 3), extent_of(&op->x, 2), 1,
               tokens * ((double)extent_of(&op->x, 1) * (double)cols_of(&op->x) * 2 +
                         (double)dims * 16));
}
