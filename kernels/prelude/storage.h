/* SPDX-License-Identifier: MIT */
/* prelude/storage.h - how numbers lie in memory. Arithmetic is float; only loads and stores
 * know storage types. A row is a pointer to bytes: load(ACT, row, i) reads element i where
 * the type ACT is a compile-time choice, load_piece() where it is a tag that arrives with
 * the arguments, tested once for many elements. Follows prelude/math.h. Build-time knobs:
 *   ACT  type of a row kernel's activations: f32 (default), f16, bf16
 *   WGT  type of its weight or mask: ACT (default) or f32 */
#ifndef PRELUDE_STORAGE_H
#define PRELUDE_STORAGE_H

#ifndef ACT
#define ACT f32
#endif
#ifndef WGT
#define WGT ACT
#endif

/* For a single number outside a loop. */
#ifndef f32_of_one_f16
#define f32_of_one_f16 f32_of_f16
#endif

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

/* ---- where rows lie ---- */

/* The outer indices of row `r`, and the first byte of an operand's row there. */
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

/* BLOCK elements share a scale. q8_0: the scale in f16, then 32 bytes. q4_0: the scale in f16,
 * then 16 bytes, whose low halves are elements 0..15 and whose high halves 16..31. */
#define BLOCK      32
#define Q8_0_BYTES 34
#define Q4_0_BYTES 18

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

/* Loads elements first .. first + n - 1 of a row as float. Those of a block type must be in
 * one block. */
FUNC void load_piece(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first, int n)
{
    if (n == BLOCK)
        load_few(to, row, type, first, BLOCK); /* loops of known length, unrolled */
    else
        load_few(to, row, type, first, n);
}

FUNC float load_any(GLOBAL const u8 *row, int type, i64 i)
{
    float v[1] = { 0.0f };
    load_piece(v, row, type, i, 1);
    return v[0];
}

/* Rounds half away from zero, as roundf() does. A NaN, which only an infinite block has,
 * becomes 0. */
FUNC int round_q8(float x)
{
    const float t = x == x ? x : 0.0f;
    const int i = (int)t;
    const float rest = t - (float)i;
    return i + (rest >= 0.5f) - (rest <= -0.5f);
}

/* 1 / d, or 0 if that is infinite: for a block of zeros, and for one whose scale d is so small
 * that it is 0 in f16. */
FUNC float inverse_of(float d)
{
    const float inverse = 1.0f / d;
    return abs_f32(inverse) < f32_of_bits(0x7f800000u) ? inverse : 0.0f;
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
    const float id = inverse_of(d);
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
    const float id = inverse_of(d);
    store_f16(block, 0, d);
    for (int i = 0; i < BLOCK / 2; i++) {
        const int low = round_q4(mul_exact(x[i], id));
        const int high = round_q4(mul_exact(x[i + BLOCK / 2], id));
        block[2 + i] = (u8)(low | high << 4);
    }
}

/* Stores from[0..n-1] as elements first .. first + n - 1 of a row of floats. */
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

#endif
