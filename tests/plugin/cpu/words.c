/* SPDX-License-Identifier: MIT */
/* words.c - the functions of kernels/words.h in loops, for test_words.c: compiled for each
 * instruction set as the kernels are. */
#include "words.h"

#define SWEEP(function) SWEEP_(function, ISA)
#define SWEEP_(f, isa)  SWEEP__(f, isa)
#define SWEEP__(f, isa)                                                                    \
    void sweep_##f##_##isa(float *y, const float *x, int64_t n);                           \
    void sweep_##f##_##isa(float *y, const float *x, int64_t n)                            \
    {                                                                                      \
        int64_t i = 0;                                                                     \
        for (; i + LANES <= n; i += LANES)                                                 \
            vf_store(y + i, f(vf_load(x + i)));                                            \
        vf_store_part(y + i, f(vf_load_part(x + i, n - i)), n - i);                        \
    }
SWEEP(vf_exp)
SWEEP(vf_exp_minus)
