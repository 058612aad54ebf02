/* SPDX-License-Identifier: MIT */
/* rounded.h - numbers rounded to 8 bits, 32 neighbours at a time. */
#ifndef CPU_ROUNDED_H
#define CPU_ROUNDED_H

#include "words.h"

/* The result of rounding 32 numbers: codes of a scale, and the sums of each half of the codes. */
struct rounded_run {
    float scale;
    int32_t sum[2];
    bool good; /* otherwise bytes cannot represent them: scale and codes are 0 */
};

/* A run is not rounded if its largest number is outside this range, which keeps scales and their
 * inverses finite. */
static const float smallest = 1e-34f, largest = 1e34f;

INLINE struct rounded_run round_run(int8_t *code, const float *x)
{
    vf most = vf_set(0), wrong = vf_set(0);
    for (int i = 0; i < PACKED_RUN; i += LANES) {
        const vf v = vf_load(x + i);
        most = vf_max(most, vf_abs(v));
        wrong += vf_set(0) * v; /* NaN, if it is not finite */
    }
    const float size = vf_greatest(most);
    const bool good = vf_sum(wrong) == 0.0f &&
                      (size == 0.0f || (size >= smallest && size <= largest));
    const vf inverse = vf_set(good && size > 0.0f ? 127.0f / size : 0.0f);
    struct rounded_run run = { .good = good, .scale = good ? size / 127.0f : 0.0f };
    for (int i = 0; i < PACKED_RUN && good; i += LANES) {
        const vi q = vi_round(vf_load(x + i) * inverse);
        vi_store_i8(code + i, q);
        run.sum[i / (PACKED_RUN / 2)] += vi_sum(q);
    }
    if (!good)
        memset(code, 0, PACKED_RUN);
    return run;
}

#endif
