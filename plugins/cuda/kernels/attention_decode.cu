/* SPDX-License-Identifier: MIT */
/* y = softmax(scale q k^T - slope distance, masked) . v for a few queries: decoding. It streams k
 * and v once; what limits it is the memory's bandwidth.
 *
 * A group has up to DECODE_ROWS rows that read one head of k and v (a row is a query of a head),
 * and one split of the keys that they see. Each of its warps takes DECODE_KEYS keys at a time,
 * which it copies ahead, from device memory to a ring of its own in shared memory (cp.async), so
 * there is no barrier in the loop. Splits leave partial results, which attention_merge adds up.
 * Lengths are read here: the splits share the keys that there are, and those without any exit.
 *
 * Both products run on tensor cores, in TF32: a number of 24 bits is the sum of two of 11 bits, up
 * to 2^-22 of it, so products of such sums are as exact as f32. f16 and bf16 need only one. The high
 * and the low parts of q lie in the two halves of a tile of 16 rows, so that one instruction
 * multiplies both. Codes of q8_0 are exact, too; their scales are factors of sums and of p.
 *
 * In a fragment, a lane has the column lane % 4 of the row lane / 4. Which numbers of a head
 * these are is free, as long as both factors agree, so lanes read neighbours, 16 bytes at a time.
 *
 * Needs compute capability 8.0. docs/cuda.md has what it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "attention.h"
#include "attention_decode.h"
#include "device.h"

/* ---- the machine ---- */

struct place3 {
    int x, y, z;
};

FUNC struct place3 group_place()
{
    struct place3 at;
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(at.x));
    asm("mov.u32 %0, %%ctaid.y;" : "=r"(at.y));
    asm("mov.u32 %0, %%ctaid.z;" : "=r"(at.z));
    return at;
}

FUNC bool any_lane(bool is)
{
    int any;
    asm volatile(
        "{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.any.pred p, p, 0xffffffff; "
        "selp.s32 %0, 1, 0, p; }"
        : "=r"(any)
        : "r"((int)is));
    return any != 0;
}

/* 2^x */
FUNC float exp2_f32(float x)
{
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

FUNC void copy_16(u8 *to, GLOBAL const u8 *from)
{
    u32 at;
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }"
        : "=r"(at)
        : "l"(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from)
                 : "memory");
}

FUNC void copies_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for all but the last PENDING commits. */
template <int PENDING> FUNC void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* c += a . b: 16 x 8 numbers from 16 x 8 and 8 x 8. A lane has the rows lane / 4 and lane / 4 + 8
 * of a and c, its column is lane % 4 and lane % 4 + 4 of a, 2 (lane % 4) and the next one of c; of b
 * it has the rows lane % 4 and lane % 4 + 4 of column lane / 4. */
FUNC void multiply(float *c, struct quad a, u32 b0, u32 b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
}

/* A number is high + low, each with 11 bits; the product ignores what high has beyond. */
FUNC u32 high_of(float v)
{
    return bits_of_f32(v) & 0xffffe000u;
}

FUNC u32 low_of(float v)
{
    return bits_of_f32(v - f32_of_bits(high_of(v)));
}

/* ---- numbers ---- */

/* The first part, of numbers that may need no other. */
template <int TYPE> FUNC u32 part_of(float v)
{
    return TYPE == STORAGE_F32 ? high_of(v) : bits_of_f32(v);
}

FUNC int bytes_of(int type, int numbers)
{
    return type == STORAGE_F32    ? numbers * 4
           : type == STORAGE_Q8_0 ? numbers / BLOCK * Q8_0_BYTES
                                  : numbers * 2;
}

/* A row of blocks, which begins at an even address. Four codes at a multiple of 4 bytes from there,
 * or at 2 more, are in two words from from[0] or from[1] on, behind so many bits. */
struct codes {
    const u8 *from[2];
    u32 before[2];
};

FUNC struct codes codes_of(const u8 *row)
{
    const int odd = (int)((u64)row % 4);
    struct codes c;
    c.from[0] = row - odd;
    c.from[1] = row + (odd ? 0 : -2);
    c.before[0] = (u32)odd * 8;
    c.before[1] = odd ? 0 : 16;
    return c;
}

/* Four codes with a sign as floats: a byte is the end of a float of 2^23. */
FUNC void load_codes(float *to, const struct codes &c, int at)
{
    const u32 *words = (const u32 *)(c.from[at / 2 % 2] + at);
    u32 codes;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;"
        : "=r"(codes)
        : "r"(words[0]), "r"(words[1]), "r"(c.before[at / 2 % 2]));
    codes ^= 0x80808080u;
    UNROLL for (int i = 0; i < 4; i++)
    {
        u32 bits;
        asm("prmt.b32 %0, %1, 0x4b000000, %2;" : "=r"(bits) : "r"(codes), "r"(0x7440 + i));
        to[i] = f32_of_bits(bits) - 8388736.0f;
    }
}

FUNC float scale_at(const u8 *block)
{
    return f32_of_f16(*(const u16 *)block);
}

/* Eight neighbours in a row of floats, from a multiple of eight on. */
template <int TYPE> FUNC void load_eight(float *to, const u8 *row, int first)
{
    if (TYPE == STORAGE_F32) {
        const struct quad *from = (const struct quad *)(row + first * 4);
        UNROLL for (int i = 0; i < 8; i++) to[i] = f32_of_bits(from[i / 4].v[i % 4]);
    } else {
        const struct quad from = *(const struct quad *)(row + first * 2);
        UNROLL for (int i = 0; i < 8; i++)
        {
            const u16 bits = (u16)(from.v[i / 2] >> i % 2 * 16);
            to[i] = TYPE == STORAGE_F16 ? f32_of_f16(bits) : f32_of_bf16(bits);
        }
    }
}

/* A number as it is stored, so that many are on their way before one is converted. */
FUNC u32 raw_at(GLOBAL const u8 *row, int type, int i)
{
    return type == STORAGE_F32 ? ((GLOBAL const u32 *)row)[i]
                               : ((GLOBAL const u16 *)row)[i];
}

FUNC float float_of(u32 raw, int type)
{
    return type == STORAGE_F32   ? f32_of_bits(raw)
           : type == STORAGE_F16 ? f32_of_f16((u16)raw)
                                 : f32_of_bf16((u16)raw);
}

/* ---- rows and keys ---- */

/* DECODE_ROWS rows of a head of k and v, or fewer at the end. */
struct run {
    i64 batch;
    int kv_head, first_row, rows, length;
};

/* A row: the query of a head. */
struct row {
    int query, head, position;
    struct span seen;
};

/* The number-th run of a batch; its length is still to be read. */
FUNC struct run run_of(const struct decode_args &s, int number, i64 batch)
{
    const int all = (int)s.a.queries * s.heads_each;
    struct run run;
    run.batch = batch;
    run.kv_head = (int)((u32)number / (u32)s.runs);
    run.first_row = (number - run.kv_head * s.runs) * DECODE_ROWS;
    run.rows = all - run.first_row < DECODE_ROWS ? all - run.first_row : DECODE_ROWS;
    run.length = 0;
    return run;
}

/* A row of a run; behind the last one, a row that sees nothing. */
FUNC struct row row_of(const struct decode_args &s, struct run run, int number)
{
    const int row = run.first_row + number;
    struct row r;
    r.query = (int)((u32)row / (u32)s.heads_each);
    r.head = run.kv_head * s.heads_each + row - r.query * s.heads_each;
    r.position = position_of(s.a, run.length, r.query);
    r.seen = seen_by(s.a, run.length, r.query);
    if (number >= run.rows)
        r.seen.end = r.seen.first;
    return r;
}

/* All keys that rows of a run see. */
FUNC struct span keys_of(const struct decode_args &s, struct run run)
{
    struct span span;
    span.first = row_of(s, run, 0).seen.first;
    span.end = row_of(s, run, run.rows - 1).seen.end;
    span.end = span.end < span.first ? span.first : span.end;
    return span;
}

/* The keys of each split, but perhaps the last that has any: whole rounds of a group. */
FUNC int split_keys(const struct decode_args &s, struct span all)
{
    const u32 each = (u32)(all.end - all.first + s.splits - 1) / (u32)s.splits;
    return (int)(each + DECODE_ROUND - 1) / DECODE_ROUND * DECODE_ROUND;
}

/* The records of a run's split. */
FUNC float *records_of(const struct decode_args &s, struct run run, int split, int dim)
{
    const i64 number = (run.batch * s.a.kv_heads + run.kv_head) * s.runs +
                       run.first_row / DECODE_ROWS;
    return (float *)s.partial +
           (number * s.splits + split) * DECODE_ROWS * DECODE_RECORD(dim);
}

/* ---- q ---- */

/* What a work-item loads of q. */
template <int DIM> struct part_of_q {
    u32 raw[DECODE_ROWS * DIM / (DECODE_WARPS * 32)];
};

template <int DIM>
FUNC void load_q(struct part_of_q<DIM> &part, const struct decode_args &s, struct run run)
{
    UNROLL for (int i = 0; i < DECODE_ROWS * DIM / (DECODE_WARPS * 32); i++)
    {
        const int n = i * DECODE_WARPS * 32 + local_id(), row = n / DIM, d = n % DIM;
        const struct row r = row_of(s, run, row);
        GLOBAL const u8 *from = (GLOBAL const u8 *)s.q + run.batch * s.a.q.stride[0] +
                                r.query * s.a.q.stride[1] + r.head * s.a.q.stride[2];
        part.raw[i] = 0;
        if (row < run.rows && d < s.a.head_dim)
            part.raw[i] = raw_at(from, s.a.q_type, d);
    }
}

/* Puts scale q into shared memory as the first factors of q k^T: of a row, a lane has 16 neighbours of
 * each 64, or 8 of each block, and a step of the product takes two of them. */
template <int TYPE, int DIM>
FUNC void stage_q(struct quad *query, const struct part_of_q<DIM> &part,
                  const struct decode_args &s)
{
    UNROLL for (int i = 0; i < DECODE_ROWS * DIM / (DECODE_WARPS * 32); i++)
    {
        const int n = i * DECODE_WARPS * 32 + local_id(), row = n / DIM, d = n % DIM;
        const float v = s.a.scale * float_of(part.raw[i], s.a.q_type);
        const int each = TYPE == STORAGE_Q8_0 ? 8 : 16;
        const int step = d / (each * 4) * (each / 2) + d % each / 2;
        struct quad *to = query + step * 32 + row * 4 + d / each % 4;
        to->v[d % 2 * 2] = high_of(v);
        to->v[d % 2 * 2 + 1] = low_of(v);
    }
}

/* ---- the ring ---- */

/* A head of k or of v. */
struct cache {
    GLOBAL const u8 *from;
    i64 stride;
    int bytes; /* of a key */
};

/* How far behind a multiple of 16 a key begins. */
template <int TYPE> FUNC int before_of(GLOBAL const u8 *from)
{
    return TYPE == STORAGE_Q8_0 ? (int)((u64)from % 16) : 0;
}

/* Begins to copy DECODE_KEYS keys, so far as there are any. SPREAD lanes share one. */
template <int TYPE, int DIM>
FUNC void fetch_keys(u8 *to, struct cache c, struct span keys, int lane)
{
    enum {
        PIECES = (DECODE_ROW(TYPE, DIM) + 15) / 16,
        SPREAD = PIECES > 16  ? 32
                 : PIECES > 8 ? 16
                              : 8,
        AT_ONCE = 32 / SPREAD,
        PITCH = DECODE_PITCH(TYPE, DIM)
    };
    const int n = lane % SPREAD * 16;
    GLOBAL const u8 *from = c.from + (keys.first + lane / SPREAD) * c.stride + n;
    const i64 step = c.stride * AT_ONCE;
    keys.first += lane / SPREAD;
    to += lane / SPREAD * PITCH + n;
    UNROLL for (int i = 0; i < DECODE_KEYS / AT_ONCE; i++)
    {
        const int before = before_of<TYPE>(from);
        if (keys.first + i * AT_ONCE < keys.end && n < before + c.bytes)
            copy_16(to + i * AT_ONCE * PITCH, from - before);
        from += step;
    }
}

template <int TYPE, int DIM>
FUNC void fetch(u8 *slot, struct cache k, struct cache v, struct span keys, int lane)
{
    fetch_keys<TYPE, DIM>(slot, k, keys, lane);
    fetch_keys<TYPE, DIM>(slot + DECODE_STEP(TYPE, DIM) / 2, v, keys, lane);
    copies_commit();
}

/* Where row `row` of a slot's part lies, which has key `key`. */
template <int TYPE, int DIM>
FUNC const u8 *row_in(const u8 *part, struct cache c, int row, int key)
{
    return part + row * DECODE_PITCH(TYPE, DIM) + before_of<TYPE>(c.from + key * c.stride);
}

/* ---- a step ---- */

/* What a lane keeps: of row lane / 4, which one it is, the largest score so far, its own part of the
 * sum of exponentials relative to that, and the factor of distances; of rows 2 (lane % 4) and the
 * next one, two neighbours of each 16 values. */
template <int DIM> struct kept {
    struct row row;
    float slope, top, sum;
    float y[DIM / 16][4];
};

/* What the lanes of a step read. */
struct step {
    const u8 *k, *v, *zeros;
    const struct quad *query;
    int key, lane; /* the first key */
};

/* score[i] = q . k of the keys 2 (lane % 4) + i % 2 + i / 2 * 8. */
template <int TYPE, int DIM>
FUNC void dots(float *score, struct step at, struct cache k, int head_dim)
{
    const int in = at.lane % 4 * 16;
    float sum[2][2][4] = { { { 0.0f } } };
    const u8 *row[2];
    UNROLL for (int j = 0; j < 2; j++) row[j] =
        row_in<TYPE, DIM>(at.k, k, j * 8 + at.lane / 4, at.key + j * 8 + at.lane / 4);
    UNROLL for (int c = 0; c < DIM / 32; c++)
    {
        const int d = c / 2 * 64 + in + c % 2 * 8;
        float b[2][8];
        UNROLL for (int j = 0; j < 2; j++)
            load_eight<TYPE>(b[j], d < head_dim ? row[j] : at.zeros, d);
        UNROLL for (int i = 0; i < 4; i++)
        {
            const struct quad a = at.query[(c * 4 + i) * 32 + at.lane];
            UNROLL for (int j = 0; j < 2; j++)
            {
                const float *two = b[j] + i * 2;
                multiply(sum[j][i % 2], a, part_of<TYPE>(two[0]), part_of<TYPE>(two[1]));
                if (TYPE == STORAGE_F32)
                    multiply(sum[j][1 - i % 2], a, low_of(two[0]), low_of(two[1]));
            }
        }
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const float *even = sum[i / 2][0] + i % 2, *odd = sum[i / 2][1] + i % 2;
        score[i] = (even[0] + odd[0]) + (even[2] + odd[2]);
    }
}

/* The same with blocks: codes are exact in TF32, and the sum of a block is multiplied by its
 * scale. */
template <int DIM>
FUNC void dots_of_blocks(float *score, struct step at, struct cache k, int head_dim)
{
    const u8 *scales[4];
    struct codes row[2];
    UNROLL for (int j = 0; j < 2; j++)
    {
        const int n = j * 8 + at.lane / 4;
        row[j] =
            codes_of(row_in<STORAGE_Q8_0, DIM>(at.k, k, n, at.key + n) + at.lane % 4 * 8);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const int n = at.lane % 4 * 2 + i % 2 + i / 2 * 8;
        scales[i] = row_in<STORAGE_Q8_0, DIM>(at.k, k, n, at.key + n);
        score[i] = 0.0f;
    }
    UNROLL for (int c = 0; c < DIM / BLOCK; c++)
    {
        float sum[2][4] = { { 0.0f } }, b[2][8];
        if (c * BLOCK >= head_dim)
            break;
        UNROLL for (int j = 0; j < 2; j++) UNROLL for (int i = 0; i < 8; i += 4)
            load_codes(b[j] + i, row[j], c * Q8_0_BYTES + 2 + i);
        UNROLL for (int i = 0; i < 4; i++)
        {
            const struct quad a = at.query[(c * 4 + i) * 32 + at.lane];
            UNROLL for (int j = 0; j < 2; j++)
                multiply(sum[j], a, bits_of_f32(b[j][i * 2]), bits_of_f32(b[j][i * 2 + 1]));
        }
        UNROLL for (int i = 0; i < 4; i++)
            score[i] += scale_at(scales[i] + c * Q8_0_BYTES) *
                        (sum[i / 2][i % 2] + sum[i / 2][i % 2 + 2]);
    }
}

static __attribute__((device, noinline)) float soft(float score, float cap)
{
    return cap * tanh_f32(score / cap);
}

/* Turns products into scores: -inf if the row does not see a key. */
FUNC void scores(float *score, const struct row &row, float slope, int key,
                 const struct decode_args &s)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        const int at = key + i % 2 + i / 2 * 8, ahead = at - row.position;
        if (s.a.softcap > 0.0f)
            score[i] = soft(score[i], s.a.softcap);
        if (s.a.has_slopes)
            score[i] -= slope * (float)(ahead < 0 ? -ahead : ahead);
        if (at < row.seen.first || at >= row.seen.end)
            score[i] = NEG_INFINITY;
    }
}

/* Turns scores into exponentials relative to the largest score so far. */
template <int DIM> FUNC void exponentials(float *score, struct kept<DIM> &my, int lane)
{
    float top = my.top;
    UNROLL for (int i = 0; i < 4; i++) top = max_f32(score[i], top);
    top = max_f32(of_lane(top, lane ^ 1), top);
    top = max_f32(of_lane(top, lane ^ 2), top);
    const float from = top == NEG_INFINITY ? 0.0f : top;
    if (any_lane(top != my.top)) {
        const float shrink = exp2_f32((my.top - from) * LOG2_E);
        const float even = of_lane(shrink, lane % 4 * 8);
        const float odd = of_lane(shrink, lane % 4 * 8 + 4);
        UNROLL for (int m = 0; m < DIM / 16; m++) UNROLL for (int i = 0; i < 4; i++)
            my.y[m][i] *= i % 2 ? odd : even;
        my.sum *= shrink;
        my.top = top;
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        score[i] = exp2_f32((score[i] - from) * LOG2_E);
        my.sum += score[i];
    }
}

/* Where the values of keys 2 (lane % 4) + i % 2 + i / 2 * 8 lie; of those that are not seen, zeros,
 * because zero times what lies there need not be zero. */
template <int TYPE, int DIM>
FUNC void find_values(const u8 **row, struct step at, struct cache v, struct span seen)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        const int n = at.lane % 4 * 2 + i % 2 + i / 2 * 8, key = at.key + n;
        row[i] = key >= seen.first && key < seen.end ? row_in<TYPE, DIM>(at.v, v, n, key)
                                                     : at.zeros;
    }
}

/* y += p . v of two keys. */
template <int TYPE>
FUNC void add_values(float *y, const float *v0, const float *v1, const float *p)
{
    const struct quad high = { { part_of<TYPE>(v0[0]), part_of<TYPE>(v0[1]),
                                 part_of<TYPE>(v1[0]), part_of<TYPE>(v1[1]) } };
    multiply(y, high, high_of(p[0]), high_of(p[1]));
    multiply(y, high, low_of(p[0]), low_of(p[1]));
    if (TYPE == STORAGE_F32) {
        const struct quad low = { { low_of(v0[0]), low_of(v0[1]), low_of(v1[0]),
                                    low_of(v1[1]) } };
        multiply(y, low, high_of(p[0]), high_of(p[1]));
    }
}

/* y += p . v: of each 64 values, a lane has 8 neighbours. */
template <int TYPE, int DIM>
FUNC void weigh(struct kept<DIM> &my, const float *p, struct step at, struct cache v,
                struct span seen)
{
    const u8 *row[4];
    find_values<TYPE, DIM>(row, at, v, seen);
    UNROLL for (int c = 0; c < DIM / 64; c++) UNROLL for (int half = 0; half < 4; half += 2)
    {
        float a[2][8];
        UNROLL for (int i = 0; i < 2; i++)
            load_eight<TYPE>(a[i], row[half + i], c * 64 + at.lane / 4 * 8);
        UNROLL for (int m = 0; m < 4; m++)
            add_values<TYPE>(my.y[c * 4 + m], a[0] + m * 2, a[1] + m * 2, p + half);
    }
}

/* The same with blocks: of each, a lane has 4 neighbours, and p is multiplied by the scale. */
template <int DIM>
FUNC void weigh_blocks(struct kept<DIM> &my, const float *p, struct step at, struct cache v,
                       struct span seen)
{
    const u8 *row[4];
    struct codes codes[4];
    find_values<STORAGE_Q8_0, DIM>(row, at, v, seen);
    UNROLL for (int i = 0; i < 4; i++) codes[i] = codes_of(row[i] + at.lane / 4 * 4);
    UNROLL for (int c = 0; c < DIM / BLOCK; c++)
    {
        float a[4][4], own[4];
        UNROLL for (int i = 0; i < 4; i++)
        {
            load_codes(a[i], codes[i], c * Q8_0_BYTES + 2);
            own[i] = p[i] * scale_at(row[i] + c * Q8_0_BYTES);
        }
        UNROLL for (int half = 0; half < 4; half += 2) UNROLL for (int m = 0; m < 2; m++)
            add_values<STORAGE_Q8_0>(my.y[c * 2 + m], a[half] + m * 2, a[half + 1] + m * 2,
                                     own + half);
    }
}

/* Which value y[m][i] of a lane is. */
template <int TYPE> FUNC int value_of(int lane, int m, int i)
{
    return TYPE == STORAGE_Q8_0 ? m / 2 * 32 + lane / 4 * 4 + m % 2 * 2 + i / 2
                                : m / 4 * 64 + lane / 4 * 8 + m % 4 * 2 + i / 2;
}

/* Where queries do not see the same keys: for one query after the other. */
template <int TYPE, int DIM>
FUNC void take_step(struct kept<DIM> &my, struct step at, struct cache k, struct cache v,
                    const struct decode_args &s, struct run run)
{
    const struct row first = row_of(s, run, 0), last = row_of(s, run, run.rows - 1);
    const bool alike = at.key >= last.seen.first && at.key + DECODE_KEYS <= first.seen.end;
    float p[4];
    if (TYPE == STORAGE_Q8_0)
        dots_of_blocks<DIM>(p, at, k, s.a.head_dim);
    else
        dots<TYPE, DIM>(p, at, k, s.a.head_dim);
    scores(p, my.row, my.slope, at.key + at.lane % 4 * 2, s);
    exponentials(p, my, at.lane);
    LOOP for (int query = alike ? last.query : first.query; query <= last.query; query++)
    {
        float own[4];
        UNROLL for (int i = 0; i < 4; i++) own[i] = alike || my.row.query == query ? p[i]
                                                                                   : 0.0f;
        const struct span seen = seen_by(s.a, run.length, query);
        if (TYPE == STORAGE_Q8_0)
            weigh_blocks(my, own, at, v, seen);
        else
            weigh<TYPE>(my, own, at, v, seen);
    }
}

/* A warp's part of a split: every DECODE_ROUND keys, a step. */
template <int TYPE, int DIM>
FUNC void take_keys(struct kept<DIM> &my, u8 *memory, const struct decode_args &s,
                    struct run run, struct span keys, const struct part_of_q<DIM> &q)
{
    enum { STAGES = DECODE_STAGES(TYPE, DIM), STEP = DECODE_STEP(TYPE, DIM) };
    const int lane = local_id() % 32, warp = local_id() / 32;
    u8 *zeros = memory + DECODE_Q(DIM);
    u8 *ring = zeros + DECODE_PITCH(TYPE, DIM) + warp * STAGES * STEP;
    const struct cache k = { (GLOBAL const u8 *)s.k + run.batch * s.a.k.stride[0] +
                                 run.kv_head * s.a.k.stride[2],
                             s.a.k.stride[1], bytes_of(TYPE, s.a.head_dim) };
    const struct cache v = { (GLOBAL const u8 *)s.v + run.batch * s.a.v.stride[0] +
                                 run.kv_head * s.a.v.stride[2],
                             s.a.v.stride[1], bytes_of(TYPE, s.a.value_dim) };
    struct span ahead = { keys.first + warp * DECODE_KEYS, keys.end };
    struct step at = { .zeros = zeros,
                       .query = (const struct quad *)memory,
                       .key = ahead.first,
                       .lane = lane };

    LOOP for (int i = 0; i < STAGES - 1; i++, ahead.first += DECODE_ROUND)
        fetch<TYPE, DIM>(ring + i * STEP, k, v, ahead, lane);
    LOOP for (int i = local_id(); i < DECODE_PITCH(TYPE, DIM); i += DECODE_WARPS * 32)
        zeros[i] = 0;
    stage_q<TYPE>((struct quad *)memory, q, s);
    BARRIER();
    for (int slot = 0; at.key < keys.end;
         at.key += DECODE_ROUND, ahead.first += DECODE_ROUND) {
        const int next = slot ? slot - 1 : STAGES - 1;
        fetch<TYPE, DIM>(ring + next * STEP, k, v, ahead, lane);
        copies_wait<STAGES - 1>();
        warp_barrier();
        at.k = ring + slot * STEP;
        at.v = at.k + STEP / 2;
        take_step<TYPE>(my, at, k, v, s, run);
        warp_barrier();
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    copies_wait<0>();
    BARRIER();
}

/* ---- results ---- */

/* Several partial results of a row, of which some may be of no key. */
struct sums {
    float top, sum;
};

/* The factor of a part relative to the largest score of all. */
FUNC float factor_of(float top, float all)
{
    return exp2_f32((top - (all == NEG_INFINITY ? 0.0f : all)) * LOG2_E);
}

FUNC void store_y(const struct decode_args &s, const struct row &r, i64 batch, int d,
                  const float *v, struct sums all)
{
    GLOBAL u8 *y = (GLOBAL u8 *)s.y + batch * s.a.y.stride[0] + r.query * s.a.y.stride[1] +
                   r.head * s.a.y.stride[2];
    float sum = all.sum, top = all.top;
    if (s.a.has_sinks) {
        const float sink = ((GLOBAL const float *)s.sinks)[r.head];
        top = max_f32(sink, all.top);
        sum = sum * factor_of(all.top, top);
        if (sink != NEG_INFINITY)
            sum += factor_of(sink, top);
    }
    const float scale = (sum == 0.0f ? 0.0f : 1.0f / sum) * factor_of(all.top, top);
    for (int i = 0; i < 4 && d + i < s.a.value_dim; i++) {
        if (s.a.y_type == STORAGE_F32)
            store_f32(y, d + i, v[i] * scale);
        else if (s.a.y_type == STORAGE_F16)
            store_f16(y, d + i, v[i] * scale);
        else
            store_bf16(y, d + i, v[i] * scale);
    }
}

/* Partial values of rows, and what they are relative to. */
template <int DIM, int PARTS, int ROWS> struct parts {
    float y[PARTS][ROWS][DIM];
    struct sums sums[PARTS][ROWS];
};

/* Adds all parts of four values of a row. */
template <int DIM, int PARTS, int ROWS>
FUNC struct sums add_parts(float *v, const struct parts<DIM, PARTS, ROWS> *parts, int row,
                           int d)
{
    struct sums all = { NEG_INFINITY, 0.0f };
    UNROLL for (int n = 0; n < PARTS; n++)
        all.top = max_f32(parts->sums[n][row].top, all.top);
    UNROLL for (int n = 0; n < PARTS; n++)
    {
        const float factor = factor_of(parts->sums[n][row].top, all.top);
        all.sum += parts->sums[n][row].sum * factor;
        UNROLL for (int i = 0; i < 4; i++) v[i] += parts->y[n][row][d + i] * factor;
    }
    return all;
}

template <int DIM> struct warps {
    struct parts<DIM, DECODE_WARPS, DECODE_ROWS> parts;
};

template <int TYPE, int DIM> FUNC void leave(struct warps<DIM> *to, struct kept<DIM> &my)
{
    const int lane = local_id() % 32, warp = local_id() / 32;
    my.sum += of_lane(my.sum, lane ^ 1);
    my.sum += of_lane(my.sum, lane ^ 2);
    if (lane % 4 == 0)
        to->parts.sums[warp][lane / 4] = { my.top, my.sum };
    UNROLL for (int m = 0; m < DIM / 16; m++) UNROLL for (int i = 0; i < 4; i++)
    {
        const int d = value_of<TYPE>(lane, m, i);
        to->parts.y[warp][lane % 4 * 2 + i % 2][d] = my.y[m][i];
    }
}

template <int DIM>
FUNC void finish(const struct warps<DIM> *warps, const struct decode_args &s,
                 struct run run, int split)
{
    LOOP for (int i = local_id() * 4; i < run.rows * DIM; i += DECODE_WARPS * 32 * 4)
    {
        const int row = i / DIM, d = i % DIM;
        float v[4] = { 0.0f };
        const struct sums all = add_parts(v, &warps->parts, row, d);
        float *record = records_of(s, run, split, DIM) + row * DECODE_RECORD(DIM);
        if (s.splits == 1) {
            store_y(s, row_of(s, run, row), run.batch, d, v, all);
            continue;
        }
        UNROLL for (int n = 0; n < 4; n++) record[d + n] = v[n];
        if (d == 0) {
            record[DIM] = all.top;
            record[DIM + 1] = all.sum;
        }
    }
}

/* A group: a split, a run of rows, a batch. */
template <int TYPE, int DIM> FUNC void decode(const struct decode_args &s)
{
    extern SHARED struct quad memory[];
    const struct place3 at = group_place();
    struct run run = run_of(s, at.y, at.z);
    struct part_of_q<DIM> q;
    take_turn();
    run.length = length_of(s.a, s.lengths, at.z);
    load_q(q, s, run);
    struct span keys = keys_of(s, run);
    const int each = split_keys(s, keys);
    struct kept<DIM> my = {
        row_of(s, run, local_id() % 32 / 4), 0.0f, NEG_INFINITY, 0.0f
    };
    if (s.splits > 1 && at.x * (i64)each >= keys.end - keys.first)
        return;
    keys.first += at.x * each;
    keys.end = keys.end - keys.first < each ? keys.end : keys.first + each;
    if (s.a.has_slopes && local_id() % 32 / 4 < run.rows)
        my.slope = ((GLOBAL const float *)s.slopes)[my.row.head];
    take_keys<TYPE>(my, (u8 *)memory, s, run, keys, q);
    leave<TYPE>((struct warps<DIM> *)memory, my);
    BARRIER();
    finish((const struct warps<DIM> *)memory, s, run, at.x);
}

/* ---- the splits ---- */

/* Adds some splits' records of four values of a row to what there is: so many at a time, all of
 * which are on their way before one is used. */
FUNC void add_records(float *v, struct sums &all, const float *records, int dim, int d,
                      struct span splits, int every)
{
    enum { AT_ONCE = 8 };
    const int step = DECODE_ROWS * DECODE_RECORD(dim);
    struct sums sums[AT_ONCE];
    struct quad parts[AT_ONCE];
    float top = all.top;
    UNROLL for (int i = 0; i < AT_ONCE; i++)
    {
        const float *record = records + (splits.first + i * every) * (i64)step;
        sums[i] = { NEG_INFINITY, 0.0f };
        parts[i] = { { 0 } };
        if (splits.first + i * every < splits.end) {
            sums[i] = { record[dim], record[dim + 1] };
            parts[i] = *(const struct quad *)(record + d);
        }
    }
    UNROLL for (int i = 0; i < AT_ONCE; i++) top = max_f32(sums[i].top, top);
    const float shrink = factor_of(all.top, top);
    all.sum *= shrink;
    UNROLL for (int n = 0; n < 4; n++) v[n] *= shrink;
    UNROLL for (int i = 0; i < AT_ONCE; i++)
    {
        const float factor = factor_of(sums[i].top, top);
        all.sum += sums[i].sum * factor;
        UNROLL for (int n = 0; n < 4; n++) v[n] += f32_of_bits(parts[i].v[n]) * factor;
    }
    all.top = top;
}

/* A group: a query of a head, and a batch. A work-item takes four values, of some splits. */
template <int DIM> FUNC void merge(const struct decode_args &s)
{
    enum { LANES = DIM / 4, SHARES = DECODE_MERGE / LANES };
    SHARED struct parts<DIM, SHARES, 1> shares;
    const int d = local_id() % LANES * 4, share = local_id() / LANES;
    const struct place3 at = group_place();
    const int query = (int)((u32)at.x / (u32)s.a.heads),
              head = at.x - query * (int)s.a.heads;
    const int kv_head = (int)((u32)head / (u32)s.heads_each);
    const int row = query * s.heads_each + head - kv_head * s.heads_each;
    struct run run = run_of(s, kv_head * s.runs + row / DECODE_ROWS, at.y);
    take_turn();
    run.length = length_of(s.a, s.lengths, at.y);
    const struct span keys = keys_of(s, run);
    const int each = split_keys(s, keys);
    struct span splits = { share, 0 };
    struct sums all = { NEG_INFINITY, 0.0f };
    float v[4] = { 0.0f };

    if (each)
        splits.end = (int)((u32)(keys.end - keys.first + each - 1) / (u32)each);
    LOOP for (; splits.first < splits.end; splits.first += SHARES * 8) add_records(
        v, all, records_of(s, run, 0, DIM) + row % DECODE_ROWS * DECODE_RECORD(DIM), DIM, d,
        splits, SHARES);
    shares.sums[share][0] = all;
    UNROLL for (int n = 0; n < 4; n++) shares.y[share][0][d + n] = v[n];
    BARRIER();
    if (share > 0)
        return;
    UNROLL for (int n = 0; n < 4; n++) v[n] = 0.0f;
    all = add_parts(v, &shares, 0, d);
    store_y(s, row_of(s, run, row % DECODE_ROWS), run.batch, d, v, all);
}

/* ---- the kernels ---- */

#define DECODE(name, TYPE, DIM)                                                            \
    KERNEL(name)(ARGS(struct decode_args) s)                                               \
    {                                                                                      \
        decode<TYPE, DIM>(s);                                                              \
    }
#define MERGE(name, DIM)                                                                   \
    KERNEL(name)(ARGS(struct decode_args) s)                                               \
    {                                                                                      \
        merge<DIM>(s);                                                                     \
    }
DECODE(decode_f32_64, STORAGE_F32, 64)
DECODE(decode_f32_128, STORAGE_F32, 128)
DECODE(decode_f16_64, STORAGE_F16, 64)
DECODE(decode_f16_128, STORAGE_F16, 128)
DECODE(decode_f16_256, STORAGE_F16, 256)
DECODE(decode_bf16_64, STORAGE_BF16, 64)
DECODE(decode_bf16_128, STORAGE_BF16, 128)
DECODE(decode_bf16_256, STORAGE_BF16, 256)
DECODE(decode_q8_0_64, STORAGE_Q8_0, 64)
DECODE(decode_q8_0_128, STORAGE_Q8_0, 128)
DECODE(decode_q8_0_256, STORAGE_Q8_0, 256)
MERGE(merge_64, 64)
MERGE(merge_128, 128)
MERGE(merge_256, 256)
