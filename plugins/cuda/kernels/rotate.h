/* SPDX-License-Identifier: MIT */
/* rotate.h - a head on its way to the cache: rope, and what the cache stores. Follows args.h,
 * prelude/math.h, prelude/storage.h, device.h and heads.h.
 *
 * A lane has two neighbours of the first half of the head and the same two of the second: two pairs
 * of rope, whichever way it pairs, and 16 lanes have two blocks of 32. Arithmetic is that of the
 * portable kernels, operation by operation; a result is rounded as it is stored in y before it goes
 * to the table. */
#ifndef CUDA_KERNELS_ROTATE_H
#define CUDA_KERNELS_ROTATE_H

/* The angles and the codes are those of the portable kernels, which name some things as others are
 * named here. Nothing calls the body of the kernel. After this file there is no KERNEL(): NVRTC has
 * no push_macro. */
#undef KERNEL
#define KERNEL(name) FUNC void portable_##name
namespace portable {
#include "prelude/quantise.h"

#include "prelude/group.h"

#include "rope.c"
} // namespace portable
#undef KERNEL

/* ---- numbers ---- */

/* What a lane has of a head: elements 2 i and the next one, and those half a head behind. */
struct four {
    float v[4];
};

FUNC void load_pair(float *to, u64 row, int type, int i)
{
    if (type == STORAGE_F32) {
        u32 bits[2];
        load_two(bits, row + (u64)i * 4);
        to[0] = f32_of_bits(bits[0]);
        to[1] = f32_of_bits(bits[1]);
        return;
    }
    const u32 both = *(const u32 *)(row + (u64)i * 2);
    UNROLL for (int j = 0; j < 2; j++) to[j] = type == STORAGE_F16
                                                   ? f32_of_f16((u16)(both >> j * 16))
                                                   : f32_of_bf16((u16)(both >> j * 16));
}

FUNC struct four load_four(u64 row, int type, int i, int half)
{
    struct four x;
    load_pair(x.v, row, type, i);
    load_pair(x.v + 2, row, type, i + half);
    return x;
}

/* Two neighbours as they are stored, in one word or two. */
struct words {
    u32 v[2];
};

FUNC struct words words_of(const float *v, int type)
{
    struct words w = { { bits_of_f32(v[0]), bits_of_f32(v[1]) } };
    if (type == STORAGE_F16)
        w.v[0] = (u32)f16_of_f32(v[0]) | (u32)f16_of_f32(v[1]) << 16;
    if (type == STORAGE_BF16)
        w.v[0] = (u32)bf16_of_f32(v[0]) | (u32)bf16_of_f32(v[1]) << 16;
    return w;
}

FUNC void store_pair(u64 row, int type, int i, const float *v)
{
    const struct words w = words_of(v, type);
    if (type == STORAGE_F32)
        asm volatile("st.v2.u32 [%0], {%1,%2};" ::"l"(row + (u64)i * 4), "r"(w.v[0]),
                     "r"(w.v[1])
                     : "memory");
    else
        *(u32 *)(row + (u64)i * 2) = w.v[0];
}

/* As it is stored. */
FUNC float rounded(float v, int type)
{
    return type == STORAGE_F32   ? v
           : type == STORAGE_F16 ? f32_of_f16(f16_of_f32(v))
                                 : f32_of_bf16(bf16_of_f32(v));
}

/* ---- q8_0 ---- */

/* The largest of 16 lanes. */
FUNC u32 most_of_block(u32 v, u32 lanes)
{
    UNROLL for (int distance = 1; distance < 16; distance *= 2)
    {
        u32 other;
        asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, %3;"
                     : "=r"(other)
                     : "r"(v), "r"(distance), "r"(lanes));
        v = max_u32(v, other);
    }
    return v;
}

/* Two neighbours of a block that 16 lanes have, as store_q8_0() stores them. */
FUNC void store_codes_of(u64 row, int i, const float *v, int lane)
{
    const u32 lanes = lane < 16 ? 0xffffu : 0xffff0000u;
    const u32 top = most_of_block(
        max_u32(bits_of_f32(v[0]) & 0x7fffffffu, bits_of_f32(v[1]) & 0x7fffffffu), lanes);
    const float d = f32_of_bits(top) / 127.0f, id = portable::inverse_of(d);
    const u64 block = row + (u64)(i / BLOCK * Q8_0_BYTES);
    const int low = portable::round_q8(mul_exact(v[0], id));
    const int high = portable::round_q8(mul_exact(v[1], id));
    if (i % BLOCK == 0)
        *(u16 *)block = f16_of_f32(d);
    *(u16 *)(block + 2 + (u64)(i % BLOCK)) = (u16)((low & 255) | (high & 255) << 8);
}

/* ---- a head ---- */

/* The position of a token. */
FUNC i64 position_of(const struct heads_job &j, int token)
{
    return j.rope.has_positions ? ((const int *)j.positions)[token] : j.rope.start + token;
}

/* The row of the table that a token is stored in; -1: none. */
FUNC i64 row_number(const struct heads_job &j, int token)
{
    const u64 number = j.rows + (u64)(token * j.store.rows.stride[2]);
    const i64 row = j.store.rows_type == STORAGE_I64 ? *(const i64 *)number
                                                     : (i64) * (const int *)number;
    return row < j.store.table_rows ? row : -1;
}

/* Cosines and sines of the pairs of a lane. */
struct angles {
    float cosine[2], sine[2];
};

/* portable::rope_powered() of two pairs. */
FUNC void power_both(u64 *f, u64 ratio, u32 first, u32 second)
{
    LOOP for (; first | second; first /= 2, second /= 2)
    {
        if (first % 2)
            f[0] = portable::rope_scaled(f[0], ratio);
        if (second % 2)
            f[1] = portable::rope_scaled(f[1], ratio);
        ratio = portable::rope_scaled(ratio, ratio);
    }
}

FUNC struct angles angles_of(const struct heads_job &j, i64 position, int i)
{
    const struct rope_args &a = j.rope;
    const struct portable::rope_turns r = {
        a.frequency,  a.ratio,       a.reduction,   a.step,   (u64)position,
        a.ramp_first, a.ramp_length, a.has_factors, a.ramped, a.magnitude,
    };
    const int dim = (int)a.head_dim;
    const int pair[2] = { a.interleaved ? i / 2 : i,
                          a.interleaved ? i / 2 + dim / 4 : i + 1 };
    u64 powers[2] = { r.frequency, r.frequency };
    struct angles angles;
    power_both(powers, r.ratio, (u32)pair[0], (u32)pair[1]);
    UNROLL for (int n = 0; n < 2; n++)
    {
        u64 f = powers[n];
        f = r.ramped ? portable::rope_reduced(r, f, pair[n]) : f;
        f = r.has_factors
                ? portable::rope_divided(f, load_f32((GLOBAL const u8 *)j.factors, pair[n]))
                : f;
        const u32 turn = (u32)(r.position * f >> 32);
        angles.sine[n] = r.magnitude * portable::rope_sine(turn);
        angles.cosine[n] = r.magnitude * portable::rope_sine(turn + 0x40000000u);
    }
    return angles;
}

/* a b + c, rounded once. */
FUNC float fused(float a, float b, float c)
{
    float f;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(f) : "f"(a), "f"(b), "f"(c));
    return f;
}

/* Which product is rounded is said here: a compiler would not choose the same one everywhere. */
FUNC void rotate(float &u, float &v, float cosine, float sine)
{
    const float first = fused(u, cosine, -mul_exact(v, sine));
    v = fused(v, cosine, mul_exact(u, sine));
    u = first;
}

FUNC void rotate_four(struct four &x, const struct angles &a, int interleaved)
{
    float *v = x.v;
    if (interleaved) {
        rotate(v[0], v[1], a.cosine[0], a.sine[0]);
        rotate(v[2], v[3], a.cosine[1], a.sine[1]);
    } else {
        rotate(v[0], v[2], a.cosine[0], a.sine[0]);
        rotate(v[1], v[3], a.cosine[1], a.sine[1]);
    }
}

/* Stores what a lane has as the table does, from element `first` of `row` on. */
FUNC void store_four(const struct heads_job &j, u64 row, int first, const struct four &x,
                     int half, int lane)
{
    UNROLL for (int n = 0; n < 2; n++)
    {
        float v[2];
        UNROLL for (int i = 0; i < 2; i++) v[i] = j.y ? rounded(x.v[n * 2 + i], j.type)
                                                      : x.v[n * 2 + i];
        if (j.store.to_type == STORAGE_Q8_0)
            store_codes_of(row, first + n * half, v, lane);
        else
            store_pair(row, j.store.to_type, first + n * half, v);
    }
}

#endif
