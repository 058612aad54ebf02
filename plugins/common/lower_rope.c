/* SPDX-License-Identifier: MIT */
/* rope: angles become fractions of a turn. */
#include "lowering.h"

#include <math.h>

/* A double in 0 .. 1, as a fraction of 2^64. */
static uint64_t fraction(double turns)
{
    return (uint64_t)(turns * 18446744073709551616.0);
}

void lower_rope(const struct hw_rope *op, struct lowered *out)
{
    const double two_pi = 6.283185307179586476925;
    const double scale = op->scale == 0.0f ? 1.0 : (double)op->scale;
    const double theta = op->theta == 0.0f ? 10000.0 : (double)op->theta;
    const int64_t dims = op->dims ? op->dims : cols_of(&op->x);
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
        .frequency = fraction(scale / two_pi),
        .ratio = fraction(ratio),
        .interleaved = op->interleaved != 0,
        .has_positions = present(&op->positions),
        .has_factors = present(&op->factors),
    };
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
