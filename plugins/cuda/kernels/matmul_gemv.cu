/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for one row of a, or a few: decoding. It streams b once, and reads GGML's
 * blocks as they are; what limits it is the memory's bandwidth. One launch may compute several
 * products of the same row, and silu(first) * second.
 *
 * Each warp has GEMV_ROWS rows of b at a time, and all groups together read one part of b after the
 * other: memory is slower where each reads a part of its own. Copies run some steps ahead, from
 * device memory to a ring of its own in shared memory, so there is no barrier in the loop. On
 * compute capability 9.0 one lane has the copy engine bring whole pieces of rows (cp.async.bulk),
 * before that all lanes copy 16 bytes each (cp.async); a barrier in shared memory (mbarrier) says
 * that a stage of the ring has arrived.
 *
 * Codes are multiplied as integers: a is kept in shared memory as numbers of 23 bits, in three
 * planes of bytes, relative to the largest of 32 neighbours. That is as exact as f32, and dp4a
 * takes four products at a time. Kernels named int8 keep one plane, numbers of 8 bits: a third of
 * the products. Where a has a NaN or an infinity, all is done in floats.
 *
 * There is never more than one group on a multiprocessor. A launch may begin early on those that
 * the kernel before it leaves room on: then what is constant is copied ahead. docs/cuda.md has what
 * it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "matmul_gemv.h"

#include "device.h"

/* ---- the ring ---- */

/* The first lane's: the compiler keeps what follows from it once for the warp. */
FUNC int of_warp(int v)
{
    int first;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(first) : "r"(v));
    return first;
}

/* A part of a row of b that is copied, whole pieces of 16 bytes. */
struct piece {
    u32 to; /* in shared memory */
    u64 from;
    int bytes;
};

/* Begins to copy a stage. */
#if __CUDA_ARCH__ >= 900
enum { ARRIVALS = 1 };

FUNC void copy_begin(const struct piece *piece, u32 arrived, int lane)
{
    int bytes = 0;
    if (lane != 0)
        return;
    UNROLL for (int r = 0; r < GEMV_ROWS; r++)
        bytes += piece[r].bytes;
    expect_bytes(arrived, (u32)bytes);
    UNROLL for (int r = 0; r < GEMV_ROWS; r++)
        if (r == 0 || piece[r].bytes)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];" ::"r"(piece[r].to),
                         "l"(piece[r].from), "r"(piece[r].bytes), "r"(arrived)
                         : "memory");
}
#else
enum { ARRIVALS = 32 };

FUNC void copy_begin(const struct piece *piece, u32 arrived, int lane)
{
    UNROLL for (int r = 0; r < GEMV_ROWS; r++) {
        for (int i = lane * 16; i < piece[r].bytes; i += 32 * 16)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(piece[r].to + (u32)i),
                         "l"(piece[r].from + (u64)i)
                         : "memory");
    }
    arrive_after_copies(arrived);
}
#endif

/* Where row `row` of all parts is. */
struct source {
    u64 b, bias, c;
    int bias_type, index; /* in its part */
};

FUNC struct source source_of(const struct gemv_args &s, int row)
{
    const struct gemv_part *p = &s.part[0];
    int index = row;
    if (s.gated) {
        index = row / 2;
        p = row % 2 ? &s.part[1] : p;
    } else if (row >= s.part[0].rows && s.parts > 1) {
        index -= s.part[0].rows;
        p = &s.part[1];
        if (index >= s.part[1].rows && s.parts > 2) {
            index -= s.part[1].rows;
            p = &s.part[2];
        }
    }
    const struct source r = { p->b + (u64)(index * p->stride), p->bias, p->c, p->bias_type,
                           index };
    return r;
}

/* A warp's rows of b, GEMV_ROWS of each `stride`, and its ring. */
struct run {
    int begin, end, stride; /* the row behind the last one of b */
    int steps, bytes;       /* of a row */
    u8 *ring;
    u32 ring_at, arrived; /* its address; the barriers of its stages */
};

/* The stage that a warp is in, and the phase of its barrier. */
struct cursor {
    int stage;
    u32 phase;
};

FUNC void advance(struct cursor *at, int stages)
{
    if (++at->stage == stages) {
        at->stage = 0;
        at->phase ^= 1;
    }
}

template <int TYPE> FUNC u8 *slot_of(const struct run &run, int stage, int r)
{
    return run.ring + stage * GEMV_STAGE_BYTES(TYPE) + r * GEMV_SLOT_BYTES(TYPE);
}

/* What is copied next: a step of rows `row` .. Of rows behind the last one nothing is copied, and
 * the products of what is in their slots are dropped. */
struct feed {
    int row, step, stage;
    u64 from[GEMV_ROWS];                   /* where their copies begin */
    int bytes[GEMV_ROWS], most[GEMV_ROWS]; /* all; at a time */
};

/* Copies are of whole pieces of 16 bytes, so up to 15 bytes on either side are not used. */
template <int TYPE>
FUNC void begin_rows(const struct gemv_args &s, const struct run &run, struct feed *next)
{
    UNROLL for (int r = 0; r < GEMV_ROWS; r++) {
        next->bytes[r] = 0;
        if (next->row + r < run.end) {
            const u64 from = source_of(s, next->row + r).b;
            const int skipped = (int)from & 15;
            next->from[r] = from - (u64)skipped;
            next->bytes[r] = (skipped + run.bytes + 15) & ~15;
            next->most[r] = GEMV_STEP_BYTES(TYPE) + (skipped ? 16 : 0);
        }
    }
}

template <int TYPE>
FUNC void fetch(const struct gemv_args &s, const struct run &run, struct feed *next, int lane)
{
    struct piece piece[GEMV_ROWS];
    if (next->row >= run.end)
        return;
    if (next->step == 0)
        begin_rows<TYPE>(s, run, next);
    UNROLL for (int r = 0; r < GEMV_ROWS; r++) {
        const int first = next->step * GEMV_STEP_BYTES(TYPE), left = next->bytes[r] - first;
        piece[r].to = run.ring_at + (u32)(next->stage * GEMV_STAGE_BYTES(TYPE) +
                                          r * GEMV_SLOT_BYTES(TYPE));
        piece[r].from = next->from[r] + (u64)first;
        piece[r].bytes = left <= 0 ? 0 : left < next->most[r] ? left : next->most[r];
    }
    copy_begin(piece, run.arrived + (u32)next->stage * 8, lane);
    if (++next->stage == s.stages)
        next->stage = 0;
    if (++next->step == run.steps) {
        next->step = 0;
        next->row += run.stride;
    }
}

/* ---- a as integers ---- */

enum { HALF = 16, PLANE = 32 * HALF };

/* Two lanes' worth of words of these types have no bank in common, if a lane has two neighbouring
 * units. */
#define IS_PAIRED(type)   ((type) == STORAGE_Q4_0 || (type) == STORAGE_Q5_0)
/* A lane has 64 neighbours, 32 with one scale and 32 with another, as the first and the second
 * halves of two units. */
#define IS_WIDE(type)     ((type) == STORAGE_Q4_K || (type) == STORAGE_Q5_K)
/* The halves of a unit differ in scale. */
#define HAS_SHARES(type)  (IS_WIDE(type) || (type) == STORAGE_Q6_K)
#define HAS_OFFSETS(type) ((type) != STORAGE_Q8_0 && (type) != STORAGE_Q4_0)

/* Where element k of a row has its code: which unit, which half of it, which place there. In
 * SUPER numbers of q4_K and q5_K, a byte has codes of k and k + 32; in those of q6_K, of k and
 * k + 64. */
struct spot {
    int unit, half, place;
};

template <int TYPE> FUNC struct spot spot_of(int k)
{
    struct spot s = { k / BLOCK, k / HALF % 2, k % HALF };
    const int in = k % SUPER;
    if (IS_WIDE(TYPE)) {
        s.unit = k / (8 * SUPER) * 64 + in / HALF % 2 * 32 + k / SUPER % 8 * 4 + in / 64;
        s.half = in / 32 % 2;
    }
    if (TYPE == STORAGE_Q6_K) {
        s.unit = k / SUPER * 8 + in / 128 * 4 + in / 32 % 2 * 2 + in / HALF % 2;
        s.half = in / 64 % 2;
    }
    if (IS_PAIRED(TYPE))
        s.unit = s.unit / 64 * 64 + s.unit % 2 * 32 + s.unit % 64 / 2;
    return s;
}

/* In shared memory, for each 32 units: the planes of their first halves, those of the second ones;
 * then two floats for each half: its scale, and the sum of its numbers, or of 32 where units are
 * wide. */
template <int PLANES> FUNC u8 *plane_of(u8 *x, int unit, int half, int plane)
{
    return x + unit / 32 * (PLANES * 1024 + 512) + (half * PLANES + plane) * PLANE +
           unit % 32 * HALF;
}

template <int PLANES> FUNC u8 *scales_of(u8 *x, int unit)
{
    return plane_of<PLANES>(x, unit, 2, 0);
}

/* Four integers of at most 23 bits as digits of 8 bits: plane[i] has digit i of each. */
FUNC void split(u32 *plane, const int *code)
{
    u32 digits[4];
    UNROLL for (int i = 0; i < 4; i++)
        digits[i] = ((u32)code[i] + 0x808080u) ^ 0x808080u;
    const u32 low01 = permute(digits[0], digits[1], 0x5140);
    const u32 low23 = permute(digits[2], digits[3], 0x5140);
    plane[0] = permute(low01, low23, 0x5410);
    plane[1] = permute(low01, low23, 0x7632);
    plane[2] = permute(permute(digits[0], digits[1], 0x0062),
                       permute(digits[2], digits[3], 0x0062), 0x5410);
}

/* Four integers of 8 bits. */
FUNC u32 pack(const int *code)
{
    return permute(permute((u32)code[0], (u32)code[1], 0x0040),
                   permute((u32)code[2], (u32)code[3], 0x0040), 0x5410);
}

/* What makes 32 neighbours integers, of which the largest has the bits `most`: EXACT below 2^22
 * times a power of two, ROUNDED up to 127 times a scale that is not subnormal. */
template <int PLANES> FUNC void scale_for(u32 most, float *scale, float *inverse)
{
    enum { BITS = PLANES * 8 - 3, LEAST = 8 << 23, MOST_CODE = 127 };
    if (PLANES == ROUNDED) {
        const float largest = f32_of_bits(max_u32(most, LEAST));
        *scale = largest * (1.0f / MOST_CODE);
        *inverse = divide_near(MOST_CODE, largest);
        return;
    }
    const u32 exponent = most >> 23 > 27 ? most >> 23 : 27;
    *scale = f32_of_bits((exponent - BITS) << 23);
    *inverse = f32_of_bits((254 + BITS - exponent) << 23);
}

/* Four neighbours of 32, which eight lanes have. Returns whether all 32 are finite. */
template <int TYPE, int PLANES>
FUNC bool stage_four(u8 *x, const struct quad v, int k, bool is_there)
{
    u32 most = 0, plane[PLANES];
    int code[4], sum = 0;
    float scale, inverse;
    UNROLL for (int i = 0; i < 4; i++)
        most = max_u32(most, v.v[i] & 0x7fffffffu);
    UNROLL for (int distance = 1; distance < 8; distance *= 2)
        most = max_u32(most, from_lane(most, distance));
    scale_for<PLANES>(most, &scale, &inverse);
    UNROLL for (int i = 0; i < 4; i++) {
        code[i] = nearest_int(f32_of_bits(v.v[i]) * inverse);
        sum += code[i];
    }
    UNROLL for (int distance = 1; distance < (IS_WIDE(TYPE) ? 8 : 4); distance *= 2)
        sum += (int)from_lane((u32)sum, distance);
    if (PLANES == EXACT)
        split(plane, code);
    else
        plane[0] = pack(code);
    if (is_there) {
        const struct spot at = spot_of<TYPE>(k);
        UNROLL for (int i = 0; i < PLANES; i++) *
            (u32 *)(plane_of<PLANES>(x, at.unit, at.half, i) + at.place) = plane[i];
        float *to = (float *)scales_of<PLANES>(x, at.unit) + at.half * 2;
        if (at.place == 0) {
            to[0] = scale;
            to[1] = (float)sum * scale;
        }
    }
    return most < 0x7f800000u;
}

/* ---- codes ---- */

/* Two times 16 codes of a row. A number is code * scale + offset, of types with shares code *
 * share * scale + offset. */
struct unit {
    u32 code[2][4];
    int share[2];
    float scale, offset[2];
};

FUNC float half_of(u32 word)
{
    return f32_of_f16((u16)word);
}

/* `count` words from an even address on. */
FUNC void take(u32 *to, const u8 *from, int count)
{
    const u32 *words = (const u32 *)(from - (u64)from % 4);
    const u32 bytes = (u64)from % 4 ? 0x5432 : 0x3210;
    u32 word = words[0];
    UNROLL for (int i = 0; i < count; i++) {
        const u32 next = words[i + 1];
        to[i] = permute(word, next, bytes);
        word = next;
    }
}

/* The low and the high halves of bytes. */
FUNC void halve(struct unit *u, const u32 *codes)
{
    UNROLL for (int i = 0; i < 4; i++) {
        u->code[0][i] = codes[i] & 0x0f0f0f0fu;
        u->code[1][i] = codes[i] >> 4 & 0x0f0f0f0fu;
    }
}

/* Codes of 5 bits, whose fifth bits are in one word. */
FUNC void add_fifths(struct unit *u, u32 fifths)
{
    UNROLL for (int i = 0; i < 8; i++)
        u->code[i / 4][i % 4] |=
            ((fifths >> (i * 4) & 15) * 0x00204081u & 0x01010101u) << 4;
}

FUNC void take_q8_0(struct unit *u, const u8 *row, int lane)
{
    u32 words[8];
    row += lane * 34;
    take(words, row + 2, 8);
    UNROLL for (int i = 0; i < 8; i++)
        u->code[i / 4][i % 4] = words[i];
    u->scale = f32_of_f16(*(const u16 *)row);
}

/* Two blocks of 18 bytes are nine words; so it is for 22 bytes. */
template <int WORDS> FUNC u32 take_of_pair(u32 *words, const u8 *row, int lane, int which)
{
    const u32 *pair = (const u32 *)row + lane * (2 * WORDS + 1);
    if (which == 0) {
        UNROLL for (int i = 0; i < WORDS; i++)
            words[i] = permute(pair[i], pair[i + 1], 0x5432);
        return pair[0];
    }
    UNROLL for (int i = 0; i < WORDS; i++)
        words[i] = pair[WORDS + 1 + i];
    return pair[WORDS] >> 16;
}

/* Codes less 8, times 16: so they are signed bytes. */
FUNC void take_q4_0(struct unit *u, const u8 *row, int lane, int which)
{
    u32 codes[4];
    u->scale = half_of(take_of_pair<4>(codes, row, lane, which)) * 0.0625f;
    UNROLL for (int i = 0; i < 4; i++) {
        u->code[0][i] = (codes[i] << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
        u->code[1][i] = (codes[i] & 0xf0f0f0f0u) ^ 0x80808080u;
    }
}

FUNC void take_q5_0(struct unit *u, const u8 *row, int lane, int which)
{
    u32 words[5];
    u->scale = half_of(take_of_pair<5>(words, row, lane, which));
    u->offset[0] = u->offset[1] = -16.0f * u->scale;
    halve(u, words + 1);
    add_fifths(u, words[0]);
}

FUNC void take_q4_1(struct unit *u, const u8 *row, int lane)
{
    const u32 *words = (const u32 *)(row + lane * 20);
    u->scale = half_of(words[0]);
    u->offset[0] = u->offset[1] = half_of(words[0] >> 16);
    halve(u, words + 1);
}

FUNC void take_q5_1(struct unit *u, const u8 *row, int lane)
{
    const u32 *words = (const u32 *)(row + lane * 24);
    u->scale = half_of(words[0]);
    u->offset[0] = u->offset[1] = half_of(words[0] >> 16);
    halve(u, words + 2);
    add_fifths(u, words[1]);
}

/* Four lanes share 256 numbers: two f16 factors, 8 scales and 8 minima of 6 bits in 12 bytes.
 * Here the block begins at a multiple of 16. */
FUNC void take_shares(struct unit *u, const u8 *block, int lane)
{
    const int shift = lane % 2 * 16;
    const u32 late = (u32)((int)((u32)lane << 30) >> 31); /* all bits, of the last two */
    const u32 high = 0x3030u & late, low = 0x3f3fu & ~high;
    const struct quad head = *(const struct quad *)block;
    const u32 *small = head.v + 1;
    const u32 scales = (((small[0] & ~late) | (small[2] & late)) >> shift & low) |
                       (small[0] >> (shift + 2) & high);
    const u32 minima = (((small[1] & ~late) | (small[2] >> 4 & late)) >> shift & low) |
                       (small[1] >> (shift + 2) & high);
    u->scale = half_of(head.v[0]);
    const float minimum = -half_of(head.v[0] >> 16);
    UNROLL for (int half = 0; half < 2; half++) {
        u->share[half] = (int)(scales >> (half * 8) & 255);
        u->offset[half] = minimum * (float)(minima >> (half * 8) & 255);
    }
}

/* Then 128 bytes of codes. What both units of a lane share is in the first one. */
FUNC void take_q4_K(struct unit *u, const u8 *row, int lane, int which)
{
    row += lane / 4 * 144;
    const struct quad codes = *(const struct quad *)(row + 16 + lane % 4 * 32 + which * 16);
    halve(u, codes.v);
    if (which == 0)
        take_shares(u, row, lane);
}

/* Then 32 bytes with fifth bits, and 128 bytes of codes. */
FUNC void take_q5_K(struct unit *u, const u8 *row, int lane, int which)
{
    row += lane / 4 * 176;
    const struct quad fifths = *(const struct quad *)(row + 16 + which * 16);
    const struct quad codes = *(const struct quad *)(row + 48 + lane % 4 * 32 + which * 16);
    halve(u, codes.v);
    UNROLL for (int i = 0; i < 4; i++) {
        const u32 two = fifths.v[i] >> (lane % 4 * 2);
        u->code[0][i] |= (two & 0x01010101u) << 4;
        u->code[1][i] |= (two & 0x02020202u) << 3;
    }
    if (which == 0)
        take_shares(u, row, lane);
}

/* Eight lanes share 256 numbers: 128 bytes with the low 4 bits of codes, 64 with the high 2 bits,
 * 16 scales of 8 bits, and an f16 factor. */
FUNC void take_q6_K(struct unit *u, const u8 *row, int lane)
{
    row += lane / 8 * 210;
    const int half_block = lane % 8 / 4, piece = lane % 4;
    const i8 *shares = (const i8 *)row + 192 + half_block * 8 + piece;
    u32 low[4], high[4];
    take(low, row + half_block * 64 + piece * 16, 4);
    take(high, row + 128 + half_block * 32 + piece % 2 * 16, 4);
    UNROLL for (int i = 0; i < 4; i++) {
        const u32 top = high[i] >> (piece / 2 * 2);
        u->code[0][i] = (low[i] & 0x0f0f0f0fu) | (top & 0x03030303u) << 4;
        u->code[1][i] = (low[i] >> 4 & 0x0f0f0f0fu) | (top & 0x30303030u);
    }
    u->scale = f32_of_f16(*(const u16 *)(row + 208));
    UNROLL for (int half = 0; half < 2; half++) {
        u->share[half] = shares[half * 4];
        u->offset[half] = -32.0f * u->scale * (float)u->share[half];
    }
}

/* The unit that a lane has as its first or second one, as spot_of() numbers them. */
template <int TYPE> FUNC void take_unit(struct unit *u, const u8 *row, int lane, int which)
{
    if (!IS_PAIRED(TYPE) && !IS_WIDE(TYPE))
        row += which * (GEMV_STEP_BYTES(TYPE) / GEMV_UNITS(TYPE));
    if (TYPE == STORAGE_Q8_0)
        take_q8_0(u, row, lane);
    else if (TYPE == STORAGE_Q4_0)
        take_q4_0(u, row, lane, which);
    else if (TYPE == STORAGE_Q4_1)
        take_q4_1(u, row, lane);
    else if (TYPE == STORAGE_Q5_0)
        take_q5_0(u, row, lane, which);
    else if (TYPE == STORAGE_Q5_1)
        take_q5_1(u, row, lane);
    else if (TYPE == STORAGE_Q4_K)
        take_q4_K(u, row, lane, which);
    else if (TYPE == STORAGE_Q5_K)
        take_q5_K(u, row, lane, which);
    else
        take_q6_K(u, row, lane);
}

/* ---- products of a step ---- */

/* Rows of a in shared memory. */
struct rows_of_a {
    u8 *first;
    int count, bytes; /* from row to row */
};

/* dot += 16 codes times 16 integers, for each plane: exact. */
template <int PLANES> FUNC void dot_half(int *dot, const u32 *code, const struct quad *x)
{
    UNROLL for (int i = 0; i < 4; i++)
        UNROLL for (int p = 0; p < PLANES; p++)
            dot[p] = dot4(code[i], x[p].v[i], dot[p]);
}

/* What the dots of the planes are together, times a share; only the last plane's are rounded by
 * themselves. The sums below fit 32 bits but those of q6_K, whose shares have a sign. */
template <int TYPE, int PLANES> FUNC float joined(const int *dot, int share)
{
    if (PLANES == ROUNDED)
        return (float)(dot[0] * share);
    const float factor = TYPE == STORAGE_Q6_K ? (float)share : 1.0f;
    const int times = TYPE == STORAGE_Q4_K || TYPE == STORAGE_Q5_K ? share : 1;
    return factor * ((float)(dot[2] * times) * 65536.0f +
                     (float)((dot[1] * 256 + dot[0]) * times));
}

/* What dots are worth. */
template <int TYPE, int PLANES>
FUNC float value_of(const struct unit &u, const int (*dot)[PLANES], const float *scales)
{
    float sum = 0.0f;
    if (HAS_SHARES(TYPE)) {
        UNROLL for (int half = 0; half < 2; half++)
            sum += joined<TYPE, PLANES>(dot[half], u.share[half]) * scales[half * 2];
    } else {
        sum = joined<TYPE, PLANES>(dot[0], 1) * scales[0];
    }
    sum *= u.scale;
    if (HAS_OFFSETS(TYPE))
        UNROLL for (int half = 0; half < 2; half++)
            sum += u.offset[half] * scales[half * 2 + 1];
    return sum;
}

template <int PLANES> FUNC void load_planes(struct quad (*planes)[PLANES], u8 *x, int unit)
{
    UNROLL for (int half = 0; half < 2; half++)
        UNROLL for (int i = 0; i < PLANES; i++)
            planes[half][i] = *(const struct quad *)plane_of<PLANES>(x, unit, half, i);
}

/* Adds the products of unit `unit` of the rows, a lane's first or second one of the step, or of
 * both where they are wide, and of each row of a. */
template <int TYPE, int PLANES, int TOKENS>
FUNC void add_unit(float (*sum)[GEMV_ROWS], const struct rows_of_a &a, int unit, int which,
                   const u8 *const *row, int lane)
{
    enum { UNITS = IS_WIDE(TYPE) ? 2 : 1 };
    struct unit u[UNITS][GEMV_ROWS];
    UNROLL for (int i = 0; i < UNITS; i++)
        UNROLL for (int r = 0; r < GEMV_ROWS; r++)
            take_unit<TYPE>(&u[i][r], row[r], lane, which + i);
    UNROLL for (int t = 0; t < TOKENS; t++) {
        int dot[GEMV_ROWS][2][PLANES] = { { { 0 } } };
        float scales[4];
        u8 *x = a.first + t * a.bytes;
        if (TOKENS > 1 && t >= a.count)
            break;
        UNROLL for (int i = 0; i < UNITS; i++) {
            struct quad planes[2][PLANES];
            load_planes<PLANES>(planes, x, unit + i * 32);
            UNROLL for (int r = 0; r < GEMV_ROWS; r++)
                UNROLL for (int half = 0; half < 2; half++)
                    dot_half<PLANES>(dot[r][HAS_SHARES(TYPE) ? half : 0], u[i][r].code[half],
                                     planes[half]);
        }
        const u8 *from = scales_of<PLANES>(x, unit);
        scales[0] = *(const float *)from;
        if (TYPE != STORAGE_Q8_0 && TYPE != STORAGE_Q4_0)
            *(struct quad *)scales = *(const struct quad *)from;
        UNROLL for (int r = 0; r < GEMV_ROWS; r++)
            sum[t][r] += value_of<TYPE, PLANES>(u[0][r], dot[r], scales);
    }
}

/* A step that is whole has no branch, so that the work of its units overlaps. */
template <int TYPE, int PLANES, int TOKENS>
FUNC void add_units(float (*sum)[GEMV_ROWS], const struct rows_of_a &a, int step,
                    const u8 *const *row, int units, int lane)
{
    const int first = step * GEMV_UNITS(TYPE) * 32;
    const bool whole = first + GEMV_UNITS(TYPE) * 32 <= units;
    UNROLL for (int which = 0; which < GEMV_UNITS(TYPE); which += IS_WIDE(TYPE) ? 2 : 1) {
        const int unit = first + which * 32 + lane;
        if (whole || (IS_PAIRED(TYPE) || IS_WIDE(TYPE) ? first + lane * 2 : unit) < units)
            add_unit<TYPE, PLANES, TOKENS>(sum, a, unit, which, row, lane);
    }
}

/* Of floats, a lane has a quad of neighbours at a time, 4 or 8 of them; a is in shared memory as
 * floats: of each lane of 32 the first four, then the others. */
template <int TYPE> FUNC float *floats_of(u8 *x, int k)
{
    if (TYPE == STORAGE_F32)
        return (float *)x + k;
    return (float *)x + (k / 256 * 2 + k / 4 % 2) * 128 + k / 8 % 32 * 4 + k % 4;
}

template <int TYPE> FUNC float number_of(const struct quad &b, int i)
{
    if (TYPE == STORAGE_F32)
        return f32_of_bits(b.v[i]);
    const u16 bits = (u16)(b.v[i / 2] >> (i % 2 * 16));
    return TYPE == STORAGE_F16 ? f32_of_f16(bits) : f32_of_bf16(bits);
}

template <int TYPE>
FUNC void add_quads(float *sum, u8 *x, int k, const u8 *const *row, int in)
{
    enum { WIDTH = TYPE == STORAGE_F32 ? 4 : 8 };
    struct quad a[WIDTH / 4];
        UNROLL for (int i = 0; i < WIDTH; i += 4)
            a[i / 4] = *(const struct quad *)floats_of<TYPE>(x, k + i);
        UNROLL for (int r = 0; r < GEMV_ROWS; r++) {
            const struct quad b = *(const struct quad *)(row[r] + in * (16 / WIDTH));
            UNROLL for (int i = 0; i < WIDTH; i++)
                sum[r] += f32_of_bits(a[i / 4].v[i % 4]) * number_of<TYPE>(b, i);
        }
}

template <int TYPE>
FUNC void add_floats(float *sum, u8 *x, int step, const u8 *const *row, int numbers,
                     int lane)
{
    enum { WIDTH = TYPE == STORAGE_F32 ? 4 : 8, NUMBERS = GEMV_STEP_NUMBERS(TYPE) };
    const int first = step * NUMBERS;
    const bool whole = first + NUMBERS <= numbers;
    UNROLL for (int part = 0; part < NUMBERS; part += 32 * WIDTH)
    {
        const int in = part + lane * WIDTH;
        if (whole || first + in < numbers)
            add_quads<TYPE>(sum, x, first + in, row, in);
    }
}

/* ---- the kernel ---- */

/* Four numbers of a row of floats that begins at an address, as f32. */
FUNC struct quad load_four(u64 row, int type, int i)
{
    struct quad v;
    if (type == STORAGE_F32)
        return load_quad(row + (u64)i * 4);
    load_two(v.v, row + (u64)i * 2);
    const u32 word[2] = { v.v[0], v.v[1] };
    UNROLL for (int j = 0; j < 4; j++) {
        const u16 bits = (u16)(word[j / 2] >> (j % 2 * 16));
        v.v[j] = bits_of_f32(type == STORAGE_F16 ? f32_of_f16(bits) : f32_of_bf16(bits));
    }
    return v;
}

/* Loads a row of a into shared memory. False if it has numbers that are not finite, which integers
 * cannot express. Some loads are on their way before one is used. */
template <int TYPE, int PLANES> FUNC bool stage(u8 *x, u64 from, const struct gemv_args &s)
{
    enum { AT_ONCE = 2 };
    const int all = local_count() * 4;
    bool finite = true;
    LOOP for (int first = local_id() / 32 * 128; first < s.k; first += AT_ONCE * all) {
        struct quad v[AT_ONCE];
        UNROLL for (int i = 0; i < AT_ONCE; i++) {
            const int k = first + i * all + local_id() % 32 * 4;
            v[i] = { { 0 } };
            if (k < s.k)
                v[i] = load_four(from, s.a_type, k);
        }
        UNROLL for (int i = 0; i < AT_ONCE; i++) {
            const int k = first + i * all + local_id() % 32 * 4;
            if (!GEMV_IS_FLOAT(TYPE) && first + i * all < s.k)
                finite &= stage_four<TYPE, PLANES>(x, v[i], k, k < s.k);
            if (GEMV_IS_FLOAT(TYPE) && k < s.k)
                *(struct quad *)floats_of<TYPE>(x, k) = v[i];
        }
    }
    return finite;
}

template <int TYPE, int PLANES, int TOKENS>
FUNC bool stage_all(const struct rows_of_a &a, const struct gemv_args &s)
{
    const int count = TOKENS == 1 ? 1 : a.count;
    bool finite = true;
    LOOP for (int t = 0; t < count; t++)
        finite &= stage<TYPE, PLANES>(a.first + t * a.bytes, s.a + (u64)(t * s.a_stride), s);
    return all_threads(finite);
}

FUNC float float_at(u64 row, int type, int i)
{
    float v;
    load_floats(&v, (GLOBAL const u8 *)row, type, i, 1);
    return v;
}

/* As it is stored. */
FUNC float rounded(float v, int type)
{
    return type == STORAGE_F32   ? v
           : type == STORAGE_F16 ? f32_of_f16(f16_of_f32(v))
                                 : f32_of_bf16(bf16_of_f32(v));
}

/* Stores the dots of rows `row` .. with each row of a; every lane has all, and stores one. */
template <int TOKENS>
FUNC void finish(const struct gemv_args &s, const struct run &run, int row,
                 const float (*dot)[GEMV_ROWS], int lane)
{
    const int token = lane / GEMV_ROWS, own = row + lane % GEMV_ROWS;
    float v = dot[0][0];
    if (token >= s.tokens || own >= run.end)
        return;
    UNROLL for (int i = 1; i < TOKENS * GEMV_ROWS; i++)
        v = lane == i ? dot[i / GEMV_ROWS][i % GEMV_ROWS] : v;
    const struct source at = source_of(s, own);
    if (at.bias_type)
        v += float_at(at.bias, at.bias_type, at.index);
    if (!s.gated || at.c != s.y)
        store_any((GLOBAL u8 *)at.c + token * s.c_stride, s.c_type, at.index, v);
    if (!s.gated || lane % 2)
        return;
    UNROLL for (int r = 0; r < GEMV_ROWS; r += 2) {
        const float gate = rounded(dot[0][r], s.c_type), up = rounded(dot[0][r + 1], s.c_type);
        if (lane == r)
            store_any((GLOBAL u8 *)s.y, s.c_type, (row + r) / 2,
                      gate / (1.0f + exp_f32(-gate)) * up);
    }
}

/* The plain way. It is rare: it should be small. */
template <int TYPE> RARE float dot_floats(u64 a, int a_type, u64 b, int k, int lane)
{
    float sum = 0.0f, v;
    LOOP for (int i = lane; i < k; i += 32) {
        load_few(&v, (GLOBAL const u8 *)b, TYPE, i, 1);
        sum += float_at(a, a_type, i) * v;
    }
    return sum;
}

/* Waits for the copies of a warp that no product uses. */
FUNC void drain(const struct gemv_args &s, const struct run &run)
{
    const int passes = (run.end - run.begin + run.stride - 1) / run.stride;
    LOOP for (int i = 0; i < s.stages && i < passes * run.steps; i++)
        wait_for(run.arrived + (u32)i * 8, 0);
}

/* How far the first number of a row is from the begin of its slot. */
template <int TYPE> FUNC int before(const struct gemv_args &s, const struct run &run, int row)
{
    const bool is_aligned = GEMV_IS_FLOAT(TYPE) || TYPE == STORAGE_Q4_K || TYPE == STORAGE_Q5_K;
    return is_aligned || row >= run.end ? 0 : (int)(source_of(s, row).b % 16);
}

/* Adds the products of a pass: of rows `row` .., all steps. */
template <int TYPE, int PLANES, int TOKENS>
FUNC void add_pass(float (*sum)[GEMV_ROWS], const struct gemv_args &s, const struct run &run,
                   int row, struct cursor *at, struct feed *next, const struct rows_of_a &a,
                   int lane)
{
    int skip[GEMV_ROWS];
    UNROLL for (int r = 0; r < GEMV_ROWS; r++)
        skip[r] = before<TYPE>(s, run, row + r);
    LOOP for (int step = 0; step < run.steps; step++)
    {
        const u8 *from[GEMV_ROWS];
        UNROLL for (int r = 0; r < GEMV_ROWS; r++)
            from[r] = slot_of<TYPE>(run, at->stage, r) + skip[r];
        wait_for(run.arrived + (u32)at->stage * 8, at->phase);
        if (GEMV_IS_FLOAT(TYPE))
            add_floats<TYPE>(sum[0], a.first, step, from, s.k, lane);
        else
            add_units<TYPE, PLANES, TOKENS>(sum, a, step, from, s.k / BLOCK, lane);
        warp_barrier();
        fetch<TYPE>(s, run, next, lane);
        advance(at, s.stages);
    }
}

/* The same in floats. */
template <int TYPE, int TOKENS>
FUNC void add_pass_of_floats(float (*sum)[GEMV_ROWS], const struct gemv_args &s,
                             const struct run &run, int row, int lane)
{
    UNROLL for (int t = 0; t < TOKENS; t++)
        UNROLL for (int r = 0; r < GEMV_ROWS; r++)
            if (t < s.tokens && row + r < run.end)
                sum[t][r] = dot_floats<TYPE>(s.a + (u64)(t * s.a_stride), s.a_type,
                                             source_of(s, row + r).b, s.k, lane);
}

template <int TYPE, int PLANES, int TOKENS>
FUNC void multiply(const struct gemv_args &s, const struct run &run, struct feed next,
                   const struct rows_of_a &a, int lane)
{
    struct cursor at = { 0, 0 };
    const bool finite = stage_all<TYPE, PLANES, TOKENS>(a, s);
    if (!finite)
        drain(s, run);
    LOOP for (int row = run.begin; row < run.end; row += run.stride)
    {
        float sum[TOKENS][GEMV_ROWS] = { { 0.0f } };
        if (finite)
            add_pass<TYPE, PLANES, TOKENS>(sum, s, run, row, &at, &next, a, lane);
        else
            add_pass_of_floats<TYPE, TOKENS>(sum, s, run, row, lane);
        UNROLL for (int t = 0; t < TOKENS; t++)
            UNROLL for (int r = 0; r < GEMV_ROWS; r++)
                sum[t][r] = warp_sum(sum[t][r]);
        finish<TOKENS>(s, run, row, sum, lane);
    }
}

/* Copies as far ahead as the ring has room. */
template <int TYPE>
FUNC void fill(const struct gemv_args &s, const struct run &run, struct feed *next, int lane)
{
    LOOP for (int i = 0; i < s.stages; i++)
        fetch<TYPE>(s, run, next, lane);
}

template <int TYPE, int PLANES, int TOKENS> FUNC void gemv(const struct gemv_args &s)
{
    extern SHARED struct quad memory[];
    SHARED u64 arrived[GEMV_WARPS][GEMV_STAGES];
    const int lane = local_id() % 32, warp = of_warp(local_id() / 32);
    const int warps = local_count() / 32;
    const int ring = s.stages * GEMV_STAGE_BYTES(TYPE);
    const struct run run = {
        (warp * group_count() + group_id()) * GEMV_ROWS,
        s.rows,
        warps * group_count() * GEMV_ROWS,
        (s.k + GEMV_STEP_NUMBERS(TYPE) - 1) / GEMV_STEP_NUMBERS(TYPE),
        (int)((i64)s.k * GEMV_STEP_BYTES(TYPE) / GEMV_STEP_NUMBERS(TYPE)),
        (u8 *)memory + warp * ring,
        shared_address(memory) + (u32)(warp * ring),
        shared_address(arrived) + (u32)(warp * GEMV_STAGES * 8),
    };
    const struct rows_of_a a = { (u8 *)memory + warps * ring, s.tokens,
                                 run.steps * GEMV_A_BYTES(TYPE, PLANES) };
    struct feed next = { run.begin, 0, 0, { 0 }, { 0 }, { 0 } };

    launch_next();
    if (lane == 0)
        LOOP for (int i = 0; i < s.stages; i++)
            barrier_init(run.arrived + (u32)i * 8, ARRIVALS);
    barriers_ready();
    warp_barrier();
    if (!s.constant)
        wait_for_previous();
    fill<TYPE>(s, run, &next, lane);
    wait_for_previous();
    multiply<TYPE, PLANES, TOKENS>(s, run, next, a, lane);
}

#define GEMV(name, TYPE, PLANES, TOKENS, WARPS, GROUPS)                                    \
    extern "C" __attribute__((global, launch_bounds(WARPS * 32, GROUPS))) void name(       \
        ARGS(const struct gemv_args) s)                                                    \
    {                                                                                      \
        gemv<TYPE, PLANES, TOKENS>(s);                                                     \
    }
GEMV(gemv_f32, STORAGE_F32, EXACT, 1, GEMV_WARPS, 1)
GEMV(gemv_f16, STORAGE_F16, EXACT, 1, GEMV_WARPS, 1)
GEMV(gemv_bf16, STORAGE_BF16, EXACT, 1, GEMV_WARPS, 1)
/* Bounds as for two groups: 64 registers a thread, with which all figures were measured. */
#define GEMV_BLOCKS(name, TYPE)                                                            \
    GEMV(gemv_##name, TYPE, EXACT, 1, GEMV_WARPS, 2)                                       \
    GEMV(gemv_int8_##name, TYPE, ROUNDED, 1, GEMV_WARPS, 2)                                \
    GEMV(gemv_int8_few_##name, TYPE, ROUNDED, GEMV_TOKENS, GEMV_WARPS, 1)
GEMV_BLOCKS(q8_0, STORAGE_Q8_0)
GEMV_BLOCKS(q4_0, STORAGE_Q4_0)
GEMV_BLOCKS(q4_1, STORAGE_Q4_1)
GEMV_BLOCKS(q5_0, STORAGE_Q5_0)
GEMV_BLOCKS(q5_1, STORAGE_Q5_1)
GEMV_BLOCKS(q4_K, STORAGE_Q4_K)
GEMV_BLOCKS(q5_K, STORAGE_Q5_K)
GEMV_BLOCKS(q6_K, STORAGE_Q6_K)
