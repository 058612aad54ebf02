/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for one row of a: decoding. It streams b once, and reads GGML's blocks as
 * they are; what limits it is the memory's bandwidth.
 *
 * Each warp owns a run of rows of b, ROWS at a time. Its copies run STAGES - 1 steps ahead, from
 * device memory to a ring of its own in shared memory (cp.async), so there is no barrier in the
 * loop. A step is 32 units of each row, one per lane; a unit is 32 numbers of a block type, two
 * times 16 codes that share a scale.
 *
 * Codes are multiplied as integers: a is kept in shared memory as numbers of 23 bits, in three
 * planes of bytes, relative to the largest of 32 neighbours. That is as exact as f32, and dp4a
 * takes four products at a time. Where a has a NaN or an infinity, all is done in floats.
 *
 * Needs compute capability 8.0. A group has as many warps as blockDim says. docs/cuda.md has what
 * it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "matmul_gemv.h"

#define UNROLL _Pragma("unroll")

/* ---- the machine ---- */

struct __attribute__((aligned(16))) quad {
    u32 v[4];
};

FUNC int group_count()
{
    int n;
    asm("mov.u32 %0, %%nctaid.x;" : "=r"(n));
    return n;
}

FUNC int local_count()
{
    int n;
    asm("mov.u32 %0, %%ntid.x;" : "=r"(n));
    return n;
}

FUNC void warp_barrier()
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

FUNC u32 warp_max(u32 v)
{
    u32 most;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(v));
    return most;
}

FUNC u32 from_lane(u32 v, int distance)
{
    u32 other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(other)
                 : "r"(v), "r"(distance));
    return other;
}

FUNC float warp_sum(float v)
{
    for (int distance = 16; distance; distance /= 2)
        v += f32_of_bits(from_lane(bits_of_f32(v), distance));
    return v;
}

FUNC int nearest_int(float v)
{
    int i;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(i) : "f"(v));
    return i;
}

FUNC int dot4(u32 a, u32 b, int sum)
{
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* Begins to copy `bytes` bytes so that from[0] arrives at to[from % 16]. It copies whole pieces
 * of 16 bytes, so up to 15 on either side that are not used. */
FUNC void copy_begin(u8 *to, GLOBAL const u8 *from, int bytes, int lane)
{
    u32 at;
    const int before = (int)((u64)from % 16);
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(at) : "l"(to));
    from -= before;
    for (int i = lane * 16; i < before + bytes; i += 32 * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + i), "l"(from + i)
                     : "memory");
}

FUNC void copies_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for all but the last STAGES - 1 commits. */
FUNC void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GEMV_STAGES - 1) : "memory");
}

/* ---- a as integers ---- */

enum { HALF = 16, PLANE = 32 * HALF };

/* Where element k of a row has its code: which unit, which half of it, which place there. In
 * SUPER numbers of q4_K, a byte has codes of k and k + 32; in those of q6_K, of k and k + 64. */
struct spot {
    int unit, half, place;
};

template <int TYPE> FUNC struct spot spot_of(int k)
{
    struct spot s = { k / BLOCK, k / HALF % 2, k % HALF };
    const int in = k % SUPER;
    if (TYPE == STORAGE_Q4_K) {
        s.unit = k / SUPER * 8 + in / 64 * 2 + in / HALF % 2;
        s.half = in / 32 % 2;
    }
    if (TYPE == STORAGE_Q6_K) {
        s.unit = k / SUPER * 8 + in / 128 * 4 + in / 32 % 2 * 2 + in / HALF % 2;
        s.half = in / 64 % 2;
    }
    return s;
}

/* In shared memory, for each step: three planes of the first halves of its 32 units, three of the
 * second ones; then two floats for each half: its scale, and the sum of its numbers. */
FUNC u8 *plane_of(u8 *x, int step, int half, int plane)
{
    return x + step * GEMV_A_BYTES(STORAGE_Q8_0) + (half * 3 + plane) * PLANE;
}

FUNC float *scales_of(u8 *x, int unit, int half)
{
    return (float *)plane_of(x, unit / 32, 2, 0) + unit % 32 * 4 + half * 2;
}

/* 32 neighbours, one per lane, as integers below 2^22 times a power of two. Returns whether all
 * of them are finite. */
template <int TYPE> FUNC bool stage_run(u8 *x, float v, int k)
{
    const struct spot at = spot_of<TYPE>(k);
    const u32 most = warp_max(bits_of_f32(v) & 0x7fffffffu);
    const u32 exponent = most >> 23 > 27 ? most >> 23 : 27;
    const float scale = f32_of_bits((exponent - 21) << 23);
    const int code = nearest_int(v * f32_of_bits((275 - exponent) << 23));
    const int low = (i8)code, middle = (i8)((code - low) >> 8);
    const int digit[3] = { low, middle, (code - low - middle * 256) >> 16 };
    for (int i = 0; i < 3; i++)
        plane_of(x, at.unit / 32, at.half, i)[at.unit % 32 * HALF + at.place] = (u8)digit[i];
    int sum = code;
    for (int distance = HALF / 2; distance; distance /= 2)
        sum += (int)from_lane((u32)sum, distance);
    if (at.place == 0) {
        float *to = scales_of(x, at.unit, at.half);
        to[0] = scale;
        to[1] = (float)sum * scale;
    }
    return most < 0x7f800000u;
}

/* ---- codes ---- */

/* Two times 16 codes of a row. A number is code * scale + offset. */
struct unit {
    u32 code[2][4];
    float scale[2], offset[2];
};

/* 16 bytes from an even address on. */
FUNC void take(u32 *to, const u8 *from)
{
    const u32 *words = (const u32 *)(from - (u64)from % 4);
    const u32 shift = (u32)((u64)from % 4) * 8;
    UNROLL for (int i = 0; i < 4; i++)
        asm("shf.r.wrap.b32 %0, %1, %2, %3;"
            : "=r"(to[i])
            : "r"(words[i]), "r"(words[i + 1]), "r"(shift));
}

FUNC float half_at(const u8 *from)
{
    return f32_of_f16(*(const u16 *)from);
}

FUNC void take_q8_0(struct unit *u, const u8 *row, int lane)
{
    row += lane * 34;
    take(u->code[0], row + 2);
    take(u->code[1], row + 18);
    u->scale[0] = u->scale[1] = half_at(row);
}

FUNC void take_q4_0(struct unit *u, const u8 *row, int lane)
{
    u32 codes[4];
    row += lane * 18;
    take(codes, row + 2);
    UNROLL for (int i = 0; i < 4; i++) {
        u->code[0][i] = codes[i] & 0x0f0f0f0fu;
        u->code[1][i] = codes[i] >> 4 & 0x0f0f0f0fu;
    }
    u->scale[0] = u->scale[1] = half_at(row);
    u->offset[0] = u->offset[1] = -8.0f * u->scale[0];
}

/* Eight lanes share 256 numbers: two f16 factors, 8 scales and 8 minima of 6 bits in 12 bytes,
 * then 128 bytes of codes. Here the block begins at a multiple of 16. */
FUNC void take_q4_K(struct unit *u, const u8 *row, int lane)
{
    row += lane / 8 * 144;
    const int pair = lane % 8 / 2, shift = pair % 2 * 16;
    const struct quad head = *(const struct quad *)row;
    const struct quad codes = *(const struct quad *)(row + 16 + lane % 8 * 16);
    const u32 *small = head.v + 1;
    u32 scales = small[0] & 0x3f3f3f3fu, minima = small[1] & 0x3f3f3f3fu;
    if (pair >= 2) {
        scales = (small[2] & 0x0f0f0f0fu) | (small[0] >> 2 & 0x30303030u);
        minima = (small[2] >> 4 & 0x0f0f0f0fu) | (small[1] >> 2 & 0x30303030u);
    }
    const float scale = f32_of_f16((u16)head.v[0]);
    const float minimum = f32_of_f16((u16)(head.v[0] >> 16));
    UNROLL for (int half = 0; half < 2; half++) {
        u->scale[half] = scale * (float)(scales >> (shift + half * 8) & 255);
        u->offset[half] = -minimum * (float)(minima >> (shift + half * 8) & 255);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        u->code[0][i] = codes.v[i] & 0x0f0f0f0fu;
        u->code[1][i] = codes.v[i] >> 4 & 0x0f0f0f0fu;
    }
}

/* Eight lanes share 256 numbers: 128 bytes with the low 4 bits of codes, 64 with the high 2 bits,
 * 16 scales of 8 bits, and an f16 factor. */
FUNC void take_q6_K(struct unit *u, const u8 *row, int lane)
{
    row += lane / 8 * 210;
    const int half_block = lane % 8 / 4, piece = lane % 4;
    const i8 *scales = (const i8 *)row + 192 + half_block * 8 + piece;
    const float factor = half_at(row + 208);
    u32 low[4], high[4];
    take(low, row + half_block * 64 + piece * 16);
    take(high, row + 128 + half_block * 32 + piece % 2 * 16);
    UNROLL for (int i = 0; i < 4; i++) {
        const u32 top = high[i] >> (piece / 2 * 2);
        u->code[0][i] = (low[i] & 0x0f0f0f0fu) | (top & 0x03030303u) << 4;
        u->code[1][i] = (low[i] >> 4 & 0x0f0f0f0fu) | (top & 0x30303030u);
    }
    UNROLL for (int half = 0; half < 2; half++) {
        u->scale[half] = factor * (float)scales[half * 4];
        u->offset[half] = -32.0f * u->scale[half];
    }
}

template <int TYPE> FUNC void take_unit(struct unit *u, const u8 *row, int lane)
{
    if (TYPE == STORAGE_Q8_0)
        take_q8_0(u, row, lane);
    else if (TYPE == STORAGE_Q4_0)
        take_q4_0(u, row, lane);
    else if (TYPE == STORAGE_Q4_K)
        take_q4_K(u, row, lane);
    else
        take_q6_K(u, row, lane);
}

/* ---- products of a step ---- */

/* The sum of 16 codes times 16 integers: exact, but for one rounding. */
FUNC float dot_half(const u32 *code, const struct quad *x)
{
    int low = 0, middle = 0, high = 0;
    UNROLL for (int i = 0; i < 4; i++) {
        low = dot4(code[i], x[0].v[i], low);
        middle = dot4(code[i], x[1].v[i], middle);
        high = dot4(code[i], x[2].v[i], high);
    }
    return (float)high * 65536.0f + (float)(middle * 256 + low);
}

template <int TYPE>
FUNC void add_units(float *sum, u8 *x, int step, u8 *const *row, int units, int lane)
{
    struct unit unit[GEMV_ROWS];
    if (step * 32 + lane >= units)
        return;
    UNROLL for (int r = 0; r < GEMV_ROWS; r++)
        take_unit<TYPE>(&unit[r], row[r], lane);
    const struct quad scales = *(const struct quad *)scales_of(x, step * 32 + lane, 0);
    UNROLL for (int half = 0; half < 2; half++) {
        struct quad planes[3];
        UNROLL for (int i = 0; i < 3; i++)
            planes[i] = *(const struct quad *)(plane_of(x, step, half, i) + lane * HALF);
        const float scale = f32_of_bits(scales.v[half * 2]);
        UNROLL for (int r = 0; r < GEMV_ROWS; r++) {
            const float dot = dot_half(unit[r].code[half], planes) * scale;
            sum[r] += unit[r].scale[half] * dot;
            if (TYPE != STORAGE_Q8_0)
                sum[r] += unit[r].offset[half] * f32_of_bits(scales.v[half * 2 + 1]);
        }
    }
}

/* Of f16 and bf16, a lane has eight neighbours at a time; a is in shared memory as floats, first
 * the first four of the eight of each lane, then the others. */
FUNC float *floats_of(u8 *x, int k)
{
    return (float *)x + (k / 256 * 2 + k / 4 % 2) * 128 + k / 8 % 32 * 4 + k % 4;
}

template <int TYPE> FUNC float number_of(u32 pair, int which)
{
    const u16 bits = (u16)(which ? pair >> 16 : pair);
    return TYPE == STORAGE_F16 ? f32_of_f16(bits) : f32_of_bf16(bits);
}

template <int TYPE>
FUNC void add_floats(float *sum, u8 *x, int step, u8 *const *row, i64 numbers, int lane)
{
    UNROLL for (int part = 0; part < GEMV_STEP_NUMBERS(TYPE); part += 256) {
        const int in = part + lane * 8, k = step * GEMV_STEP_NUMBERS(TYPE) + in;
        if (k >= numbers)
            return;
        const struct quad a[2] = { *(const struct quad *)floats_of(x, k),
                                   *(const struct quad *)floats_of(x, k + 4) };
        UNROLL for (int r = 0; r < GEMV_ROWS; r++) {
            const struct quad b = *(const struct quad *)(row[r] + in * 2);
            UNROLL for (int i = 0; i < 8; i++)
                sum[r] += f32_of_bits(a[i / 4].v[i % 4]) *
                          number_of<TYPE>(b.v[i / 2], i % 2);
        }
    }
}

/* ---- the ring ---- */

/* Where a warp is: rows from `row` on, a step of them, and the slots that it is in. Of rows behind
 * the last one nothing is copied, and the products of what is in their slots are dropped. */
struct cursor {
    i64 row;
    int step, slot;
};

FUNC void advance(struct cursor *at, int steps)
{
    if (++at->slot == GEMV_STAGES)
        at->slot = 0;
    if (++at->step == steps) {
        at->step = 0;
        at->row += GEMV_ROWS;
    }
}

/* A warp's rows of b. */
struct run {
    GLOBAL const u8 *b;
    i64 stride, bytes, end; /* of a row; the row behind the last one */
    u8 *ring;
    int steps;
};

FUNC GLOBAL const u8 *bytes_at(struct run run, struct cursor at, int r, int step_bytes)
{
    return run.b + (at.row + r) * run.stride + (i64)at.step * step_bytes;
}

template <int TYPE> FUNC u8 *slot_at(struct run run, struct cursor at, int r)
{
    return run.ring + (at.slot * GEMV_ROWS + r) * GEMV_SLOT_BYTES(TYPE);
}

template <int TYPE> FUNC void fetch(struct run run, struct cursor at, int lane)
{
    const i64 left = run.bytes - (i64)at.step * GEMV_STEP_BYTES(TYPE);
    const int bytes = left < GEMV_STEP_BYTES(TYPE) ? (int)left : GEMV_STEP_BYTES(TYPE);
    for (int r = 0; r < GEMV_ROWS && at.row + r < run.end; r++)
        copy_begin(slot_at<TYPE>(run, at, r), bytes_at(run, at, r, GEMV_STEP_BYTES(TYPE)),
                   bytes, lane);
    copies_commit();
}

/* ---- the kernel ---- */

FUNC float float_at(GLOBAL const u8 *row, int type, i64 i)
{
    return type == STORAGE_F32   ? load_f32(row, i)
           : type == STORAGE_F16 ? load_f16(row, i)
                                 : load_bf16(row, i);
}

template <int TYPE> FUNC float number_at(GLOBAL const u8 *row, i64 i)
{
    float v;
    load_few(&v, row, TYPE, i, 1);
    return v;
}

/* Some numbers of a, every so many, as they are stored: all are on their way before one is used. */
enum { AT_ONCE = 8 };

FUNC void load_raw(u32 *raw, GLOBAL const u8 *a, struct matmul_args s, int first, int step)
{
    UNROLL for (int i = 0; i < AT_ONCE; i++) {
        const int k = first + i * step;
        raw[i] = 0;
        if (k < s.k && s.a_type == STORAGE_F32)
            raw[i] = ((GLOBAL const u32 *)a)[k];
        else if (k < s.k)
            raw[i] = ((GLOBAL const u16 *)a)[k];
    }
}

FUNC float float_of(u32 raw, int type)
{
    return type == STORAGE_F32   ? f32_of_bits(raw)
           : type == STORAGE_F16 ? f32_of_f16((u16)raw)
                                 : f32_of_bf16((u16)raw);
}

/* Loads a into shared memory. False if it has numbers that are not finite, which integers
 * cannot express. */
template <int TYPE> FUNC bool stage(u8 *x, GLOBAL const u8 *a, struct matmul_args s)
{
    SHARED int odd;
    const int lid = local_id(), step = local_count();
    if (lid == 0)
        odd = 0;
    BARRIER();
    for (int first = lid; first < s.k; first += AT_ONCE * step) {
        u32 raw[AT_ONCE];
        load_raw(raw, a, s, first, step);
        UNROLL for (int i = 0; i < AT_ONCE; i++) {
            const int k = first + i * step;
            if (k >= s.k)
                break;
            const float v = float_of(raw[i], s.a_type);
            if (GEMV_IS_FLOAT(TYPE))
                *floats_of(x, k) = v;
            else if (!stage_run<TYPE>(x, v, k))
                odd = 1;
        }
    }
    BARRIER();
    return !odd;
}

FUNC void finish(GLOBAL u8 *c, GLOBAL const u8 *bias, struct matmul_args s, i64 row, float sum)
{
    if (s.bias_type)
        sum += float_at(bias + s.bias_offset, s.bias_type, row);
    if (s.c_type == STORAGE_F32)
        store_f32(c, row, sum);
    else if (s.c_type == STORAGE_F16)
        store_f16(c, row, sum);
    else
        store_bf16(c, row, sum);
}

/* The plain way. */
template <int TYPE>
FUNC float dot_floats(GLOBAL const u8 *a, GLOBAL const u8 *b, struct matmul_args s, int lane)
{
    float sum = 0.0f;
    for (i64 k = lane; k < s.k; k += 32)
        sum += float_at(a, s.a_type, k) * number_at<TYPE>(b, k);
    return warp_sum(sum);
}

template <int TYPE>
FUNC void gemv(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
               struct matmul_args s)
{
    extern SHARED struct quad memory[];
    const int lane = local_id() % 32, warp = local_id() / 32, warps = local_count() / 32;
    const i64 all = (i64)group_count() * warps, me = (i64)warp * group_count() + group_id();
    u8 *x = (u8 *)memory + warps * GEMV_RING_BYTES(TYPE);
    const struct run run = {
        .b = b + s.b.offset,
        .stride = s.b.stride[2],
        .bytes = GEMV_IS_FLOAT(TYPE) ? s.k * 2 : s.k * GEMV_STEP_BYTES(TYPE) / 1024,
        .end = s.n * (me + 1) / all,
        .ring = (u8 *)memory + warp * GEMV_RING_BYTES(TYPE),
        .steps = (int)((s.k + GEMV_STEP_NUMBERS(TYPE) - 1) / GEMV_STEP_NUMBERS(TYPE)),
    };
    struct cursor at = { s.n * me / all, 0, 0 }, ahead = at;
    float sum[GEMV_ROWS] = { 0.0f };

    for (int i = 0; i < GEMV_STAGES - 1; i++, advance(&ahead, run.steps))
        fetch<TYPE>(run, ahead, lane);
    a += s.a.offset;
    c += s.c.offset;
    if (!stage<TYPE>(x, a, s)) {
        for (i64 row = at.row; row < run.end; row++) {
            const float dot = dot_floats<TYPE>(a, run.b + row * run.stride, s, lane);
            if (lane == 0)
                finish(c, bias, s, row, dot);
        }
        at.row = run.end;
    }
    for (; at.row < run.end; advance(&at, run.steps), advance(&ahead, run.steps)) {
        u8 *row[GEMV_ROWS];
        fetch<TYPE>(run, ahead, lane);
        copies_wait();
        warp_barrier();
        UNROLL for (int r = 0; r < GEMV_ROWS; r++)
            row[r] = slot_at<TYPE>(run, at, r) +
                     (u64)bytes_at(run, at, r, GEMV_STEP_BYTES(TYPE)) % 16;
        if (GEMV_IS_FLOAT(TYPE))
            add_floats<TYPE>(sum, x, at.step, row, s.k, lane);
        else
            add_units<TYPE>(sum, x, at.step, row, (int)(s.k / BLOCK), lane);
        warp_barrier();
        if (at.step < run.steps - 1)
            continue;
        UNROLL for (int r = 0; r < GEMV_ROWS; r++) {
            const float dot = warp_sum(sum[r]);
            if (lane == 0 && at.row + r < run.end)
                finish(c, bias, s, at.row + r, dot);
            sum[r] = 0.0f;
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}

#define GEMV(name, TYPE)                                                                   \
    KERNEL(name)                                                                           \
    (GLOBAL u8 * c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,         \
     ARGS(struct matmul_args) s)                                                           \
    {                                                                                      \
        gemv<TYPE>(c, a, b, bias, s);                                                      \
    }
GEMV(gemv_f16, STORAGE_F16)
GEMV(gemv_bf16, STORAGE_BF16)
GEMV(gemv_q8_0, STORAGE_Q8_0)
GEMV(gemv_q4_0, STORAGE_Q4_0)
GEMV(gemv_q4_K, STORAGE_Q4_K)
GEMV(gemv_q6_K, STORAGE_Q6_K)
