/* SPDX-License-Identifier: MIT */
/* The kernels that take any mix of storage types at run time, in plain C. */
#include "dialect.h"

#include "attention.c"
#include "copy.c"
#include "get_rows.c"
#include "matmul.c"
#include "matmul_vec.c"
#include "set_rows.c"

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
