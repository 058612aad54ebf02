/* SPDX-License-Identifier: MIT */
/* prelude.h - what every kernel may use, on top of one dialect and args.h.
 *
 * Arithmetic is float; only loads and stores know storage types. A row is a pointer to
 * bytes: load(X, row, i) reads element i where the type X is a compile-time choice,
 * load_piece() where it is a tag that arrives with the arguments, asked once for many
 * elements. Build-time knobs:
 *   GROUP  work-items per group, a power of two, at least 32; 1 in plain C
 *   X      storage of a row op's activations: f32 (default), f16, bf16
 *   W      storage of its weight or mask: X (default) or f32 */
#ifndef KERNELS_PRELUDE_H
#define KERNELS_PRELUDE_H

#ifndef GROUP
#define GROUP 256
#endif
#ifndef X
#define X f32
#endif
#ifndef W
#define W X
#endif

/* PIECE: neighbouring elements that one work-item takes at a time, a vector's worth
 * where it is alone, one where its neighbours in the group read the neighbours in
 * memory. LANES: work-items that share a row where a group has several rows. */
#if GROUP == 1
#define PIECE 32
#define LANES 1
#else
#define PIECE 1
#define LANES 32
#endif

/* VEC floats that arithmetic treats as one, where the dialect has them. */
#ifndef VEC
#define VEC 1
typedef float vec;
#define load_vec(p)     (*(p))
#define store_vec(p, v) (*(p) = (v))
#define vec_zero        0.0f
#define vec_sum(v)      (v)
#endif

/* One number that no loop converts many of. */
#ifndef f32_of_one_f16
#define f32_of_one_f16 f32_of_f16
#endif

#define NEG_INFINITY f32_of_bits(0xff800000u)

/* ---- floats, one at a time ---- */

FUNC float f32_of_bf16(u16 h)
{
    return f32_of_bits((u32)h << 16);
}

FUNC u16 bf16_of_f32(float f)
{
    const u32 u = bits_of_f32(f);
    const u32 rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    return (u16)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
}

FUNC float load_f32(GLOBAL const u8 *row, i64 i)
{
    return ((GLOBAL const float *)row)[i];
}

FUNC float load_f16(GLOBAL const u8 *row, i64 i)
{
    return f32_of_f16(((GLOBAL const u16 *)row)[i]);
}

FUNC float load_bf16(GLOBAL const u8 *row, i64 i)
{
    return f32_of_bf16(((GLOBAL const u16 *)row)[i]);
}

FUNC void store_f32(GLOBAL u8 *row, i64 i, float v)
{
    ((GLOBAL float *)row)[i] = v;
}

FUNC void store_f16(GLOBAL u8 *row, i64 i, float v)
{
    ((GLOBAL u16 *)row)[i] = f16_of_f32(v);
}

FUNC void store_bf16(GLOBAL u8 *row, i64 i, float v)
{
    ((GLOBAL u16 *)row)[i] = bf16_of_f32(v);
}

#define PASTE(a, b)            a##b
#define LOAD(type)             PASTE(load_, type)
#define STORE(type)            PASTE(store_, type)
#define load(type, row, i)     LOAD(type)(row, i)
#define store(type, row, i, v) STORE(type)(row, i, v)

/* ---- mathematics: the same result on every device ---- */

FUNC float abs_f32(float x)
{
    return f32_of_bits(bits_of_f32(x) & 0x7fffffffu);
}

FUNC float max_f32(float a, float b)
{
    return a > b ? a : b;
}

FUNC float sign_from(float size, float x)
{
    return f32_of_bits((bits_of_f32(size) & 0x7fffffffu) | (bits_of_f32(x) & 0x80000000u));
}

/* e^x, within 2 ulp: 2^n e^r with |r| <= ln 2 / 2, a polynomial for e^r, and 2^n applied
 * in two steps so that results may be subnormal. Beyond +-104 all is 0 or infinite.
 * Selects, not branches: loops over it vectorise. */
FUNC float exp_f32(float x)
{
    const u32 size = bits_of_f32(x) & 0x7fffffffu;
    const float c = sign_from(f32_of_bits(size < 0x42d00000u ? size : 0x42d00000u), x);
    const float t = c * 1.44269504f;
    const int n = (int)(t + sign_from(0.5f, t));
    const float whole = (float)n;
    const float r = c - whole * 0.693145752f - whole * 1.42860677e-6f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const int step = n >> 1;
    const float y = p * f32_of_bits((u32)(step + 127) << 23);
    const float z = y * f32_of_bits((u32)(n - step + 127) << 23);
    return f32_of_bits(bits_of_f32(z) | (size > 0x7f800000u ? 0x7fc00000u : 0u));
}

/* ln x for normal x > 0: x = 2^n m with m in [sqrt(1/2), sqrt(2)), and a polynomial in
 * m - 1. */
FUNC float log_f32(float x)
{
    const u32 u = bits_of_f32(x) - 0x3f3504f3u;
    const float n = (float)((int)(u >> 23 & 0x1ffu) - (u >> 31 ? 512 : 0));
    const float f = f32_of_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    p = p * f * f * f - 0.5f * f * f + n * -2.12194440e-4f;
    return p + f + n * 0.693359375f;
}

/* tanh x: a polynomial near zero, where 1 - 2 / (e^2x + 1) would cancel. */
FUNC float tanh_f32(float x)
{
    const float a = abs_f32(x), s = x * x;
    float p = -5.70498872745e-3f;
    p = p * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    p = p * s * x + x;
    const float above = 1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f);
    return a < 0.625f ? p : x < 0.0f ? -above : above;
}

/* Sum and maximum of n values, a power of two of them, which are used up: by halves, as
 * vectors can. A NaN is never the maximum. */
FUNC float sum_of(PRIVATE float *v, int n)
{
    for (int span = n / 2; span > 0; span /= 2)
        for (int i = 0; i < span; i++)
            v[i] += v[i + span];
    return v[0];
}

FUNC float max_of(PRIVATE float *v, int n)
{
    for (int span = n / 2; span > 0; span /= 2)
        for (int i = 0; i < span; i++)
            v[i] = max_f32(v[i + span], v[i]);
    return v[0];
}

/* ---- where rows lie ---- */

/* The outer indices of row `r`, and the first byte of an operand there. */
struct index {
    i64 i0, i1, i2;
};

FUNC struct index index_of(i64 r, i64 n1, i64 n2)
{
    struct index at;
    at.i2 = r % n2;
    at.i1 = r / n2 % n1;
    at.i0 = r / n2 / n1;
    return at;
}

FUNC i64 row_at(struct place p, struct index at)
{
    return p.offset + at.i0 * p.stride[0] + at.i1 * p.stride[1] + at.i2 * p.stride[2];
}

/* ---- many elements, whatever their type ---- */

#define BLOCK      32 /* elements that share a scale in q8_0 and q4_0 */
#define Q8_0_BYTES 34 /* f16 scale, 32 bytes */
#define Q4_0_BYTES                                                                         \
    18 /* f16 scale, 16 bytes: low nibbles are elements 0..15, high ones 16..31 */

FUNC float load_scale(GLOBAL const u8 *block)
{
    return f32_of_one_f16(*(GLOBAL const u16 *)block);
}

FUNC void load_q8_0(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    GLOBAL const u8 *block = row + first / BLOCK * Q8_0_BYTES;
    GLOBAL const u8 *q = block + 2 + first % BLOCK;
    const float d = load_scale(block);
    for (int i = 0; i < n; i++)
        to[i] = d * (float)(i8)q[i];
}

FUNC void load_q4_0(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    GLOBAL const u8 *block = row + first / BLOCK * Q4_0_BYTES;
    const int start = (int)(first % BLOCK), middle = BLOCK / 2;
    const float d = load_scale(block);
    for (int i = 0; i < n && start + i < middle; i++)
        to[i] = d * (float)((block[2 + start + i] & 15) - 8);
    for (int i = start < middle ? middle - start : 0; i < n; i++)
        to[i] = d * (float)((block[2 + start + i - middle] >> 4) - 8);
}

FUNC void load_f32s(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = load_f32(row, first + i);
}

FUNC void load_f16s(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = load_f16(row, first + i);
}

FUNC void load_bf16s(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = load_bf16(row, first + i);
}

#define LOADS(L) L(F32, f32s) L(F16, f16s) L(BF16, bf16s) L(Q8_0, q8_0) L(Q4_0, q4_0)

FUNC void load_few(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first, int n)
{
    switch (type) {
#define L(NAME, name)                                                                      \
    case STORAGE_##NAME:                                                                   \
        load_##name(to, row, first, n);                                                    \
        break;
        LOADS(L)
#undef L
    }
}

/* to[0..n) = elements first.. of a row, as float. Of a block type they lie within one
 * block. */
FUNC void load_piece(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first, int n)
{
    if (n == BLOCK)
        load_few(to, row, type, first, BLOCK); /* loops of known length, unrolled */
    else
        load_few(to, row, type, first, n);
}

/* `count` whole pieces, from one to the next `step` elements: the type is asked once. */
FUNC void load_pieces(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first,
                      int count, int step)
{
    switch (type) {
#define L(NAME, name)                                                                      \
    case STORAGE_##NAME:                                                                   \
        for (int p = 0; p < count; p++)                                                    \
            load_##name(to + p * PIECE, row, first + (i64)p * step, PIECE);                \
        break;
        LOADS(L)
#undef L
    }
}

FUNC float load_any(GLOBAL const u8 *row, int type, i64 i)
{
    float v[1] = { 0.0f };
    load_piece(v, row, type, i, 1);
    return v[0];
}

/* Half away from zero, as roundf does; a NaN, which only an infinite block has, becomes
 * 0. */
FUNC int round_q8(float x)
{
    const float t = x == x ? x : 0.0f;
    const int i = (int)t;
    const float rest = t - (float)i;
    return i + (rest >= 0.5f) - (rest <= -0.5f);
}

/* d = max |x| / 127, q = round(x / d). */
FUNC void store_q8_0(GLOBAL u8 *block, PRIVATE const float *x)
{
    u32 top = 0;
    for (int i = 0; i < BLOCK; i++) {
        const u32 u = bits_of_f32(x[i]) & 0x7fffffffu;
        top = u > top ? u : top;
    }
    const float d = f32_of_bits(top) / 127.0f;
    const float id = d != 0.0f ? 1.0f / d : 0.0f;
    store_f16(block, 0, d);
    for (int i = 0; i < BLOCK; i++)
        block[2 + i] = (u8)round_q8(mul_exact(x[i], id));
}

FUNC int round_q4(float x)
{
    const int q = (int)((x == x ? x : 0.0f) + 8.5f);
    return q < 15 ? q : 15;
}

/* d = m / -8 with m the first x of largest magnitude, q = min(15, x / d + 8 rounded). */
FUNC void store_q4_0(GLOBAL u8 *block, PRIVATE const float *x)
{
    float m = 0.0f;
    for (int i = 0; i < BLOCK; i++)
        m = abs_f32(x[i]) > abs_f32(m) ? x[i] : m;
    const float d = m / -8.0f;
    const float id = d != 0.0f ? 1.0f / d : 0.0f;
    store_f16(block, 0, d);
    for (int i = 0; i < BLOCK / 2; i++) {
        const int low = round_q4(mul_exact(x[i], id));
        const int high = round_q4(mul_exact(x[i + BLOCK / 2], id));
        block[2 + i] = (u8)(low | high << 4);
    }
}

/* Elements first.. of a row of floats = from[0..n). */
FUNC void store_piece(GLOBAL u8 *row, int type, i64 first, PRIVATE const float *from, int n)
{
    switch (type) {
    case STORAGE_F32:
        for (int i = 0; i < n; i++)
            store_f32(row, first + i, from[i]);
        break;
    case STORAGE_F16:
        for (int i = 0; i < n; i++)
            store_f16(row, first + i, from[i]);
        break;
    case STORAGE_BF16:
        for (int i = 0; i < n; i++)
            store_bf16(row, first + i, from[i]);
        break;
    }
}

FUNC void store_any(GLOBAL u8 *row, int type, i64 i, float v)
{
    store_piece(row, type, i, &v, 1);
}

/* Elements first .. first + n of a row, from one type to another, by the whole group. A
 * block is made by one work-item. */
FUNC void convert_row(GLOBAL u8 *to, int to_type, GLOBAL const u8 *from, int from_type,
                      i64 first, i64 n, int lid)
{
    const int blocks = to_type == STORAGE_Q8_0 || to_type == STORAGE_Q4_0;
    const int piece = blocks ? BLOCK : PIECE;
    for (i64 i = (i64)lid * piece; i < n; i += GROUP * piece) {
        const int count = n - i < piece ? (int)(n - i) : piece;
        float v[BLOCK];
        load_piece(v, from, from_type, first + i, count);
        if (to_type == STORAGE_Q8_0)
            store_q8_0(to + (first + i) / BLOCK * Q8_0_BYTES, v);
        else if (to_type == STORAGE_Q4_0)
            store_q4_0(to + (first + i) / BLOCK * Q4_0_BYTES, v);
        else
            store_piece(to, to_type, first + i, v, count);
    }
}

/* A rows x cols corner of a stored matrix, as float, into a full x width tile of group
 * memory, zero beyond the corner: tile[y * step_y + x * step_x] = matrix[y, first + x].
 * width is a multiple of BLOCK. */
FUNC void load_tile(LOCAL float *tile, int step_y, int step_x, int full, int width,
                    GLOBAL const u8 *matrix, i64 stride, int type, i64 first, i64 rows,
                    i64 cols, int lid)
{
    for (int y = lid / LANES; y < full; y += GROUP / LANES)
        for (int x = lid % LANES * PIECE; x < width; x += LANES * PIECE) {
            float v[PIECE] = { 0.0f };
            const i64 left = y < rows ? cols - x : 0;
            if (left > 0)
                load_piece(v, matrix + y * stride, type, first + x,
                           left < PIECE ? (int)left : PIECE);
            for (int i = 0; i < PIECE; i++)
                tile[y * step_y + (x + i) * step_x] = v[i];
        }
}

/* ---- what a group finds out together ---- */

/* The sum of `v` over each aligned run of `width` work-items; all of the run get it. */
FUNC float run_sum(float v, LOCAL float *scratch, int lid, int width)
{
    scratch[lid] = v;
    BARRIER();
    for (int span = width / 2; span > 0; span /= 2) {
        if (lid % width < span)
            scratch[lid] += scratch[lid + span];
        BARRIER();
    }
    v = scratch[lid / width * width];
    BARRIER();
    return v;
}

FUNC float group_sum(float v, LOCAL float *scratch, int lid)
{
    return run_sum(v, scratch, lid, GROUP);
}

FUNC float group_max(float v, LOCAL float *scratch, int lid)
{
    scratch[lid] = v;
    BARRIER();
    for (int span = GROUP / 2; span > 0; span /= 2) {
        if (lid < span)
            scratch[lid] = max_f32(scratch[lid], scratch[lid + span]);
        BARRIER();
    }
    v = scratch[0];
    BARRIER();
    return v;
}

#endif
