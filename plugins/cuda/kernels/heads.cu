/* SPDX-License-Identifier: MIT */
/* Heads of q, k and v on their way to the cache: rope, and set_rows. One launch may rotate q and k
 * and store k and v: in a decoding step, launches are what these ops cost.
 *
 * A warp takes a head of a token, or some of many tokens. A lane has two neighbours of the first
 * half of the head and the same two of the second: two pairs of rope, whichever way it pairs, and
 * 16 lanes have two blocks of 32. Arithmetic is that of the portable kernels, operation by
 * operation; a result is rounded as it is stored in y before it goes to the table.
 *
 * A launch may begin early, while the kernel before it ends. docs/cuda.md has what it takes on an
 * H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "prelude/quantise.h"

#include "prelude/group.h"

#include "device.h"
#include "heads.h"

/* The angles are those of the portable kernel, whose body nothing calls here. */
#undef KERNEL
#define KERNEL(name) FUNC void portable_##name
#include "rope.c"

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
    UNROLL for (int j = 0; j < 2; j++)
        to[j] = type == STORAGE_F16 ? f32_of_f16((u16)(both >> j * 16))
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
        asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::"l"(row + (u64)i * 4), "r"(w.v[0]),
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
    UNROLL for (int distance = 1; distance < 16; distance *= 2) {
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
    const u32 top = most_of_block(max_u32(bits_of_f32(v[0]) & 0x7fffffffu,
                                          bits_of_f32(v[1]) & 0x7fffffffu),
                                  lanes);
    const float d = f32_of_bits(top) / 127.0f, id = inverse_of(d);
    const u64 block = row + (u64)(i / BLOCK * Q8_0_BYTES);
    const int low = round_q8(mul_exact(v[0], id)), high = round_q8(mul_exact(v[1], id));
    if (i % BLOCK == 0)
        *(u16 *)block = f16_of_f32(d);
    *(u16 *)(block + 2 + (u64)(i % BLOCK)) = (u16)((low & 255) | (high & 255) << 8);
}

/* ---- a head ---- */

/* Cosines and sines of the pairs of a lane. */
struct angles {
    float cosine[2], sine[2];
};

FUNC struct angles angles_of(const struct heads_job &j, i64 position, int i)
{
    const struct rope_args &a = j.rope;
    const struct rope_turns r = {
        a.frequency,  a.ratio,       a.reduction,   a.step,   (u64)position, a.ramp_first,
        a.ramp_length, a.has_factors, a.ramped,     a.magnitude,
    };
    struct angles angles;
    UNROLL for (int n = 0; n < 2; n++) {
        const i64 pair = a.interleaved ? i / 2 + n * (a.head_dim / 4) : i + n;
        u64 f = rope_powered(r.frequency, r.ratio, pair);
        f = r.ramped ? rope_reduced(r, f, pair) : f;
        f = r.has_factors ? rope_divided(f, load_f32((GLOBAL const u8 *)j.factors, pair)) : f;
        const u32 turn = (u32)(r.position * f >> 32);
        angles.sine[n] = r.magnitude * rope_sine(turn);
        angles.cosine[n] = r.magnitude * rope_sine(turn + 0x40000000u);
    }
    return angles;
}

FUNC void rotate(float &u, float &v, float cosine, float sine)
{
    const float first = u * cosine - v * sine;
    v = v * cosine + u * sine;
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

/* Stores what a lane has in a row of the table, from element `first` on. */
FUNC void store_four(const struct heads_job &j, u64 row, int first, const struct four &x,
                     int half, int lane)
{
    UNROLL for (int n = 0; n < 2; n++) {
        float v[2];
        UNROLL for (int i = 0; i < 2; i++)
            v[i] = j.y ? rounded(x.v[n * 2 + i], j.type) : x.v[n * 2 + i];
        if (j.store.to_type == STORAGE_Q8_0)
            store_codes_of(row, first + n * half, v, lane);
        else
            store_pair(row, j.store.to_type, first + n * half, v);
    }
}

/* Where a token's row of the table is; 0: nowhere. */
FUNC u64 row_of(const struct heads_job &j, int token)
{
    if (!j.table)
        return 0;
    const u64 number = j.rows + (u64)(token * j.store.rows.stride[2]);
    const i64 row = j.store.rows_type == STORAGE_I64 ? *(const i64 *)number
                                                     : (i64) * (const int *)number;
    if (row < 0 || row >= j.store.table_rows)
        return 0;
    return j.table + (u64)(row * j.store.to.stride[2]);
}

FUNC void move(const struct heads_job &j, int token, int head, int end, int lane)
{
    const int dim = (int)j.rope.head_dim, half = dim / 2;
    const u64 x = j.x + (u64)(token * j.rope.x.stride[1]);
    const u64 y = j.y + (u64)(token * j.rope.y.stride[1]);
    const i64 position = j.rope.has_positions ? ((const int *)j.positions)[token]
                                              : j.rope.start + token;
    const u64 row = row_of(j, token);
    LOOP for (int i = lane * 2; i < half; i += 64) {
        struct angles angles = { { 0.0f }, { 0.0f } };
        struct four next = load_four(x + (u64)(head * j.rope.x.stride[2]), j.type, i, half);
        if (j.y)
            angles = angles_of(j, position, i);
        LOOP for (int h = head; h < end; h++) {
            struct four now = next;
            if (h + 1 < end)
                next = load_four(x + (u64)((h + 1) * j.rope.x.stride[2]), j.type, i, half);
            if (j.y) {
                const u64 to = y + (u64)(h * j.rope.y.stride[2]);
                rotate_four(now, angles, j.rope.interleaved);
                store_pair(to, j.type, i, now.v);
                store_pair(to, j.type, i + half, now.v + 2);
            }
            if (row)
                store_four(j, row, h * dim + i, now, half, lane);
        }
    }
}

extern "C" __attribute__((global, launch_bounds(HEADS_WARPS * 32))) void heads_move(
    ARGS(const struct heads_args) s)
{
    const int warp = group_id() * HEADS_WARPS + local_id() / 32;
    int n = 0;
    while (n + 1 < s.jobs && warp >= s.job[n + 1].first)
        n++;
    const struct heads_job &j = s.job[n];
    const int number = warp - j.first, token = number / j.runs;
    const int head = number % j.runs * s.each, heads = (int)j.rope.heads;
    take_turn();
    if (token < j.rope.tokens)
        move(j, token, head, head + s.each < heads ? head + s.each : heads, local_id() % 32);
}
