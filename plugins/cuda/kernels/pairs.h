/* SPDX-License-Identifier: MIT */
/* pairs.h - two floats rounded to 16 bits, in one word. For compute capability 8.0 and later. */
#ifndef CUDA_KERNELS_PAIRS_H
#define CUDA_KERNELS_PAIRS_H

template <int TYPE> FUNC u32 pair_of(float low, float high)
{
    u32 pair;
    if (TYPE == STORAGE_F16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

#endif
