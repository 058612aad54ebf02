/* SPDX-License-Identifier: MIT */
/* prelude/storage.h - how numbers lie in memory. Arithmetic is float; only loads and stores
 * know storage types. A row is a pointer to bytes: load(ACT, row, i) reads element i where
 * the type ACT is a compile-time choice, load_piece() where it is a tag that arrives with
 * the arguments, tested once for many elements. Follows prelude/math.h. Build-time knobs:
 *   ACT  type of a row kernel's activations: f32 (default), f16, bf16
 *   WGT  type of its weight: ACT (default) or f32 */
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

/* There are less than 2^31 groups, so neither extent is larger than that; and a division of 32
 * bits takes a fraction of the time of one of 64. */
FUNC struct index index_of(int r, i64 n1, i64 n2)
{
#if GROUP == 1 /* even that takes 26 cycles, and usually there is nothing to divide */
    if ((u32)r < (u32)n2) {
        const struct index inner = { 0, 0, r };
        return inner;
    }
#endif
    const u32 outer = (u32)r / (u32)n2;
    struct index at;
    at.i2 = (u32)r % (u32)n2;
    at.i1 = outer % (u32)n1;
    at.i0 = outer / (u32)n1;
    return at;
}

FUNC i64 row_at(struct place p, struct index at)
{
    return p.offset + at.i0 * p.stride[0] + at.i1 * p.stride[1] + at.i2 * p.stride[2];
}

/* The same of an operand that repeats. */
FUNC i64 repeated_row_at(struct place p, struct extents e, struct index at)
{
    at.i0 = at.i0 < e.n[0] ? at.i0 : at.i0 % e.n[0];
    at.i1 = at.i1 < e.n[1] ? at.i1 : at.i1 % e.n[1];
    at.i2 = at.i2 < e.n[2] ? at.i2 : at.i2 % e.n[2];
    return row_at(p, at);
}

/* The row of a table that get_rows and set_rows find for row `at`. */
FUNC i64 row_number(GLOBAL const u8 *rows, ARGS(struct rows_args) a, struct index at)
{
    rows += repeated_row_at(a.rows, a.rows_extents, at);
    return a.rows_type == STORAGE_I64 ? *(GLOBAL const i64 *)rows
                                      : (i64) * (GLOBAL const int *)rows;
}

/* ---- many elements, whatever their type ---- */

/* Block types, bit-identical to GGML's. Elements come in runs of BLOCK, which the types of 32
 * elements per block call a block. A type is code times scale, or that plus or minus a minimum,
 * both f16. Of codes with 4 bits, byte i of a run has that of element i in its low half and that
 * of element i + 16 in its high half; fifth bits, if any, are the bits of a 32-bit number.
 *   q8_0  scale, then 32 bytes with a sign
 *   q4_0  scale, then 16 bytes: codes, less 8      q4_1  scale, minimum, 16 bytes
 *   q5_0  scale, fifth bits, 16 bytes: less 16     q5_1  scale, minimum, fifth bits, 16 bytes
 * The K types have SUPER elements per block. Two neighbouring runs share 32 bytes, the first the
 * low halves.
 *   q4_K  scale, minimum, 12 bytes with 6 bits for each run's share of both, then 128 bytes
 *   q5_K  the same with 32 bytes before the 128: bit r of byte i is the fifth of element i of run r
 *   q6_K  128 bytes with 4 bits, 64 bytes with 2 more, a share of the scale for every 16 elements
 *         in 16 bytes with a sign, then the scale; codes less 32
 * X(NAME, name, elements per block, bytes per block) */
#define BLOCK 32
#define SUPER 256
#define BLOCK_TYPES_32(X)                                                                  \
    X(Q8_0, q8_0, 32, 34)                                                                  \
    X(Q4_0, q4_0, 32, 18)                                                                  \
    X(Q4_1, q4_1, 32, 20)                                                                  \
    X(Q5_0, q5_0, 32, 22)                                                                  \
    X(Q5_1, q5_1, 32, 24)
#define BLOCK_TYPES_256(X)                                                                 \
    X(Q4_K, q4_K, 256, 144)                                                                \
    X(Q5_K, q5_K, 256, 176)                                                                \
    X(Q6_K, q6_K, 256, 210)
#define BLOCK_TYPES(X) BLOCK_TYPES_32(X) BLOCK_TYPES_256(X)

/* Q8_0_BYTES ...: bytes of a block. */
enum {
#define X(NAME, name, elements, bytes) NAME##_BYTES = bytes,
    BLOCK_TYPES(X)
#undef X
};

FUNC float load_scale(GLOBAL const u8 *block)
{
    return f32_of_one_f16(*(GLOBAL const u16 *)block);
}

/* The position of a piece in its run. A piece of BLOCK elements is the whole run: a constant,
 * for loops of known length. */
FUNC int start_in_run(i64 first, int n)
{
    return n == BLOCK ? 0 : (int)(first % BLOCK);
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

/* The float products of codes and scales below are exact: they have at most 24 bits. So each
 * element is rounded once, whether or not a product is fused with a sum. */

FUNC void load_q4_1(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    GLOBAL const u8 *block = row + first / BLOCK * Q4_1_BYTES;
    const int start = (int)(first % BLOCK), middle = BLOCK / 2;
    const float d = load_scale(block), m = load_scale(block + 2);
    for (int i = 0; i < n && start + i < middle; i++)
        to[i] = d * (float)(block[4 + start + i] & 15) + m;
    for (int i = start < middle ? middle - start : 0; i < n; i++)
        to[i] = d * (float)(block[4 + start + i - middle] >> 4) + m;
}

/* The 32 bits at `p`, which may be at an odd address. */
FUNC u32 load_bits(GLOBAL const u8 *p)
{
    return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

/* Codes of 5 bits: `low` has their halves, `high` their fifth bits. */
FUNC void load_fives(PRIVATE float *to, GLOBAL const u8 *low, u32 high, float d, int less,
                     float m, int start, int n)
{
    const int middle = BLOCK / 2;
    for (int i = 0; i < n && start + i < middle; i++) {
        const int fifth = (int)(high >> (start + i) & 1) << 4;
        to[i] = d * (float)((low[start + i] & 15) + fifth - less) + m;
    }
    for (int i = start < middle ? middle - start : 0; i < n; i++) {
        const int fifth = (int)(high >> (start + i) & 1) << 4;
        to[i] = d * (float)((low[start + i - middle] >> 4) + fifth - less) + m;
    }
}

FUNC void load_q5_0(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    GLOBAL const u8 *block = row + first / BLOCK * Q5_0_BYTES;
    /* -0 changes no sum, and no sign of a zero */
    load_fives(to, block + 6, load_bits(block + 2), load_scale(block), 16, -0.0f,
               (int)(first % BLOCK), n);
}

FUNC void load_q5_1(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    GLOBAL const u8 *block = row + first / BLOCK * Q5_1_BYTES;
    load_fives(to, block + 8, load_bits(block + 4), load_scale(block), 0,
               load_scale(block + 2), (int)(first % BLOCK), n);
}

/* The shares of run 0..7 of a q4_K or q5_K block in its scale and its minimum. */
FUNC float share_of_scale(GLOBAL const u8 *shares, int run)
{
    const int share = run < 4 ? shares[run] & 63
                              : (shares[run + 4] & 15) | (shares[run - 4] >> 6) << 4;
    return (float)share;
}

FUNC float share_of_minimum(GLOBAL const u8 *shares, int run)
{
    const int share = run < 4 ? shares[run + 4] & 63
                              : shares[run + 4] >> 4 | (shares[run] >> 6) << 4;
    return (float)share;
}

FUNC void load_q4_K(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    GLOBAL const u8 *block = row + first / SUPER * Q4_K_BYTES;
    const int run = (int)(first % SUPER) / BLOCK, start = start_in_run(first, n);
    GLOBAL const u8 *q = block + 16 + run / 2 * BLOCK + start;
    const float d = load_scale(block) * share_of_scale(block + 4, run);
    const float m = load_scale(block + 2) * share_of_minimum(block + 4, run);
    const int shift = run % 2 * 4;
    for (int i = 0; i < n; i++)
        to[i] = d * (float)(q[i] >> shift & 15) - m;
}

FUNC void load_q5_K(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    GLOBAL const u8 *block = row + first / SUPER * Q5_K_BYTES;
    const int run = (int)(first % SUPER) / BLOCK, start = start_in_run(first, n);
    GLOBAL const u8 *fifths = block + 16 + start, *q = block + 48 + run / 2 * BLOCK + start;
    const float d = load_scale(block) * share_of_scale(block + 4, run);
    const float m = load_scale(block + 2) * share_of_minimum(block + 4, run);
    const int shift = run % 2 * 4;
    for (int i = 0; i < n; i++)
        to[i] = d * (float)((q[i] >> shift & 15) + (fifths[i] >> run & 1) * 16) - m;
}

FUNC void load_q6_K(PRIVATE float *to, GLOBAL const u8 *row, i64 first, int n)
{
    GLOBAL const u8 *block = row + first / SUPER * Q6_K_BYTES;
    const int run = (int)(first % SUPER) / BLOCK, start = start_in_run(first, n);
    /* 128 elements, which are four runs, share 64 and 32 bytes */
    GLOBAL const u8 *low = block + run / 4 * 64 + run % 2 * BLOCK + start;
    GLOBAL const u8 *high = block + 128 + run / 4 * BLOCK + start;
    GLOBAL const u8 *shares = block + 192 + run * 2;
    const float d = load_scale(block + 208);
    const float d0 = d * (float)(i8)shares[0], d1 = d * (float)(i8)shares[1];
    const int shift = run % 4 / 2 * 4, more = run % 4 * 2, middle = BLOCK / 2;
    for (int i = 0; i < n; i++) {
        const int q = (low[i] >> shift & 15) + (high[i] >> more & 3) * 16 - 32;
        to[i] = (start + i < middle ? d0 : d1) * (float)q;
    }
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

/* All types that are loaded; for a float, a block is one element. */
#define LOADS(X) X(F32, f32s, 1, 4) X(F16, f16s, 1, 2) X(BF16, bf16s, 1, 2) BLOCK_TYPES(X)

/* Elements per block; 1 for every type that is not one of blocks. */
FUNC int elements_of(int type)
{
    switch (type) {
#define X(NAME, name, elements, bytes)                                                     \
    case STORAGE_##NAME:                                                                   \
        return elements;
        BLOCK_TYPES(X)
#undef X
    }
    return 1;
}

FUNC void load_few(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first, int n)
{
    switch (type) {
#define X(NAME, name, elements, bytes)                                                     \
    case STORAGE_##NAME:                                                                   \
        load_##name(to, row, first, n);                                                    \
        break;
        LOADS(X)
#undef X
    }
}

/* Loads elements first .. first + n - 1 of a row as float. Those of a block type must be in
 * one run: they may not cross a multiple of BLOCK. */
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

/* load_piece() for a row of floats. */
FUNC void load_floats(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first, int n)
{
    switch (type) {
    case STORAGE_F32:
        load_f32s(to, row, first, n);
        break;
    case STORAGE_F16:
        load_f16s(to, row, first, n);
        break;
    default: /* bf16 */
        load_bf16s(to, row, first, n);
        break;
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
