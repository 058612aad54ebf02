/* SPDX-License-Identifier: MIT */
/* The functions of the prelude in loops, compiled with the flags for kernels. */
#include "dialect.h"

#define SWEEP(function)                                                                    \
    void sweep_##function(float *y, const float *x, int n)                                 \
    {                                                                                      \
        for (int i = 0; i < n; i++)                                                        \
            y[i] = function(x[i]);                                                         \
    }
SWEEP(exp_f32)
SWEEP(log_f32)
SWEEP(tanh_f32)
SWEEP(expm1_f32)
SWEEP(normal_tail_f32)

void round_trip_f16(u16 *to, float *wide, const u16 *from, int n)
{
    for (int i = 0; i < n; i++)
        wide[i] = f32_of_f16(from[i]);
    for (int i = 0; i < n; i++)
        to[i] = f16_of_f32(wide[i]);
}

void narrow_f16(u16 *to, const float *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = f16_of_f32(from[i]);
}

void narrow_bf16(u16 *to, const float *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = bf16_of_f32(from[i]);
}
