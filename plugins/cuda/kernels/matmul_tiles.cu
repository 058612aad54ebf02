/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for some rows of a that are rounded to 8 bits, and blocks of b as GGML stores
 * them: tiles of 16 rows of b on the matrix units (mma.sync of 8 bits).
 *
 * One launch rounds a, 32 neighbours to a scale, and stores it in the order in which the matrix
 * units want it. In the next one, each group has some tiles. Its warps share a tile along k: each
 * has 256 numbers of the 16 rows, a cell, which come through a ring of its own in shared memory.
 * The codes of 32 numbers are multiplied at a time; integer sums are scaled and added up in f32,
 * then those of all warps. Of a, a part along k is in shared memory, and all tiles of the group are
 * multiplied with it before the next part.
 *
 * A result that is not finite is computed again in floats. docs/cuda-kernels.md has what it reaches. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "matmul_gemv.h"

#include "matmul_tiles.h"

#include "device.h"

/* Each follows the one before. */
#include "gemv_ring.h"

#include "gemv_row.h"

#include "cell_words.h"

#include "tile_codes.h"

/* 1.5 * 2^23: integers that are added to its bits are the fraction of a float, exact to 22 bits. */
#define MAGIC 0x4b400000

/* ---- rounding a ---- */

/* Eight of 32 neighbours: their codes; the scale and the sum of all 32. */
struct rounded {
    u32 word[2];
    float scale, sum;
};

/* As stage_eight() does it: four lanes have 32 neighbours. */
FUNC struct rounded round_eight(const struct quad *v)
{
    struct rounded r;
    u32 most = 0;
    float inverse;
    UNROLL for (int i = 0; i < 8; i++)
        most = max_u32(most, v[i / 4].v[i % 4] & 0x7fffffffu);
    UNROLL for (int distance = 1; distance < 4; distance *= 2)
        most = max_u32(most, from_lane(most, distance));
    scale_for<ROUNDED>(most, &r.scale, &inverse);
    UNROLL for (int i = 0; i < 2; i++)
    {
        int code[4];
        UNROLL for (int j = 0; j < 4; j++) code[j] = (int)bits_of_f32(
            mul_exact(f32_of_bits(v[i].v[j]), inverse) + f32_of_bits(MAGIC));
        r.word[i] = pack(code);
    }
    int sum = dot4(r.word[0], 0x01010101u, dot4(r.word[1], 0x01010101u, 0));
    UNROLL for (int distance = 1; distance < 4; distance *= 2)
        sum += (int)from_lane((u32)sum, distance);
    r.sum = (float)sum * r.scale;
    return r;
}

FUNC void store_word(u64 to, u32 v)
{
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}

/* Of each two runs of 32 numbers, lane g * 4 + t of the products has words t and 4 + t of token g,
 * and the scales of tokens 2 * t and 2 * t + 1. */
FUNC void store_eight(const struct rounded &r, u64 eight, int token, int k)
{
    const int run = k / 32 % 8, first = k % 32 / 4, lane = token % 8 * 4 + first % 4;
    const u64 to = eight + (u64)((run / 2 * 32 + lane) * 16 + run % 2 * 8 + first / 4 * 4);
    const u64 scale =
        eight + TILES_CODES +
        (u64)(run / 2 * 64 + token % 8 / 2 * 16 + run % 2 * 8 + token % 2 * 4);
    store_word(to, r.word[0]);
    store_word(to + 16, r.word[1]);
    if (first == 0) {
        store_word(scale, bits_of_f32(r.scale));
        store_word(scale + TILES_SCALES, bits_of_f32(r.sum));
    }
}

/* Each thread has eight neighbours; rows behind the last one are zeros. */
extern "C" __attribute__((global)) void tiles_round(ARGS(const struct tiles_args) s)
{
    const int i = group_id() * TILES_ROUNDERS + local_id();
    const int token = i / (s.k / 8), k = i % (s.k / 8) * 8;
    const int number = k / TILES_NUMBERS * s.eights + token / 8;
    struct quad v[2] = { { { 0 } }, { { 0 } } };
    take_turn();
    if (token < s.tokens)
        UNROLL for (int q = 0; q < 2; q++)
            v[q] = load_four(s.a + (u64)(token * s.a_stride), s.a_type, k + q * 4);
    store_eight(round_eight(v), s.x + (u64)number * TILES_EIGHT_BYTES, token, k);
}

/* ---- products of a cell ---- */

/* d = a . b of 16 rows and 8 tokens. */
FUNC void multiply_32(float *d, const u32 (*a)[2], const u32 *b)
{
    int v[4];
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%10,%10,%10,%10};"
        : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
        : "r"(a[0][0]), "r"(a[1][0]), "r"(a[0][1]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]),
          "r"(MAGIC));
    UNROLL for (int i = 0; i < 4; i++) d[i] = f32_of_bits((u32)v[i]) - f32_of_bits(MAGIC);
}

/* The same of 16 numbers of each row. */
FUNC void multiply_16(float *d, u32 upper, u32 lower, u32 b)
{
    int v[4];
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%7,%7,%7,%7};"
        : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
        : "r"(upper), "r"(lower), "r"(b), "r"(MAGIC));
    UNROLL for (int i = 0; i < 4; i++) d[i] = f32_of_bits((u32)v[i]) - f32_of_bits(MAGIC);
}

/* Adds the products of run `run` of a pair: of rows g and g + 8, tokens 2 * t and 2 * t + 1 of
 * eight. `x`: a lane's words of two runs of a; `scales`, `sums`: of its tokens. */
template <int TYPE>
FUNC void add_run(float *sum, const struct codes *row, int run, const u32 *x,
                  const u32 *scales, const u32 *sums)
{
    const u32 a[2][2] = { { row[0].code[run][0], row[0].code[run][1] },
                          { row[1].code[run][0], row[1].code[run][1] } };
    float d[4], e[4];
    if (HAS_HALVES(TYPE)) {
        multiply_16(d, a[0][0], a[1][0], x[run * 2]);
        multiply_16(e, a[0][1], a[1][1], x[run * 2 + 1]);
    } else {
        multiply_32(d, a, x + run * 2);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const struct codes &c = row[i / 2];
        const float scale = f32_of_bits(scales[run * 2 + i % 2]);
        if (HAS_HALVES(TYPE))
            sum[i] += (d[i] * c.scale[run][0] + e[i] * c.scale[run][1]) * scale;
        else
            sum[i] += d[i] * scale * c.scale[run][0];
        if (HAS_MINIMA(TYPE))
            sum[i] += c.offset[run] * f32_of_bits(sums[run * 2 + i % 2]);
    }
}

/* Adds the products of a cell: of the lane's two rows and all of a. */
template <int TYPE, int EIGHTS>
FUNC void add_cell(float (*sum)[4], const u8 *const *row, const u8 *x, int lane)
{
    UNROLL for (int pair = 0; pair < 4; pair++)
    {
        struct codes of[2];
        UNROLL for (int half = 0; half < 2; half++)
            take_pair<TYPE>(&of[half], row[half], pair, lane % 4);
        UNROLL for (int i = 0; i < EIGHTS; i++)
        {
            const u8 *eight = x + i * TILES_EIGHT_BYTES;
            const struct quad codes = ((const struct quad *)eight)[pair * 32 + lane];
            const struct quad *scales = (const struct quad *)(eight + TILES_CODES) +
                                        pair * 4 + lane % 4;
            const struct quad scale = scales[0];
            struct quad sums = scale; /* not used where there are no minima */
            if (HAS_MINIMA(TYPE))
                sums = scales[TILES_SCALES / 16];
            UNROLL for (int run = 0; run < 2; run++)
                add_run<TYPE>(sum[i], of, run, codes.v, scale.v, sums.v);
        }
    }
}

/* ---- what a warp copies and multiplies ---- */

/* When a warp has a cell. */
struct turn {
    int part, round;
};

/* What a warp has: one cell in each part and round. */
struct share {
    int cell, tile;    /* in a part, in a round */
    int parts, rounds; /* in which it has one */
    u32 ring, arrived; /* the address of its ring, the barriers of its stages */
};

template <int EIGHTS> FUNC struct share share_of(const struct tiles_args &s, int warp)
{
    enum { PART = TILES_PART(EIGHTS), AT_ONCE = TILES_AT_ONCE(EIGHTS) };
    const int cell = warp % PART, tile = warp / PART;
    const int tiles =
        ((s.rows + TILES_ROWS - 1) / TILES_ROWS - group_id() + group_count() - 1) /
        group_count();
    return { cell,
             tile,
             (s.k / TILES_NUMBERS - cell + PART - 1) / PART,
             (tiles - tile + AT_ONCE - 1) / AT_ONCE,
             0,
             0 };
}

/* The number of the tile of a round. */
template <int EIGHTS> FUNC int tile_of(int tile, int round)
{
    return (round * TILES_AT_ONCE(EIGHTS) + tile) * group_count() + group_id();
}

/* The address at which a cell begins in a row. */
template <int TYPE, int EIGHTS>
FUNC u64 begin_of(const struct tiles_args &s, const struct share &own, int row, int part)
{
    return s.b + (u64)(row * s.b_stride) +
           (u64)((part * TILES_PART(EIGHTS) + own.cell) * CELL_ROW_BYTES(TYPE));
}

/* How far that is from the begin of a piece of 16 bytes. */
template <int TYPE> FUNC int skipped(u64 begin)
{
    return TYPE == STORAGE_Q6_K ? (int)(begin % 16) : 0;
}

/* Begins to copy the first rows of a cell, whole pieces of 16 bytes: the copy engine where there is
 * one. */
#if __CUDA_ARCH__ >= 900
#define TILES_ARRIVALS 1

/* Whether it is this lane. The compiler knows that there is one: else it would ask all lanes for
 * their copies, one by one. */
FUNC bool is_elected()
{
    u32 is;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
                 : "=r"(is));
    return is != 0;
}

template <int TYPE> FUNC void copy_row(u32 to, u64 begin, u32 arrived)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(begin - (u64)skipped<TYPE>(begin)), "r"(TILES_ROW_PIECES(TYPE) * 16),
                 "r"(arrived), "l"(READ_ONCE)
                 : "memory");
}

/* Most often, all rows are there: then there is no branch between copies. */
template <int TYPE>
FUNC void copy_cell(u32 to, u64 begin, i64 stride, int rows, u32 arrived, int)
{
    if (!is_elected())
        return;
    expect_bytes(arrived, (u32)(rows * TILES_ROW_PIECES(TYPE) * 16));
    if (rows == TILES_ROWS)
        UNROLL for (int r = 0; r < TILES_ROWS; r++) copy_row<TYPE>(
            to + (u32)(r * TILES_ROW_APART(TYPE)), begin + (u64)(r * stride), arrived);
    else
        LOOP for (int r = 0; r < rows; r++) copy_row<TYPE>(
            to + (u32)(r * TILES_ROW_APART(TYPE)), begin + (u64)(r * stride), arrived);
}
#else
#define TILES_ARRIVALS 32

template <int TYPE>
FUNC void copy_cell(u32 to, u64 from, i64 stride, int rows, u32 arrived, int lane)
{
    LOOP for (int r = 0; r < rows; r++)
    {
        const u64 begin = from + (u64)(r * stride);
        if (lane < TILES_ROW_PIECES(TYPE))
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                             to + (u32)(r * TILES_ROW_APART(TYPE) + lane * 16)),
                         "l"(begin - (u64)skipped<TYPE>(begin) + (u64)(lane * 16))
                         : "memory");
    }
    arrive_after_copies(arrived);
}
#endif

/* Begins to copy the next cell to a stage. Rows behind the last one are not copied, their products
 * are dropped. */
template <int TYPE, int EIGHTS>
FUNC void fetch_cell(const struct tiles_args &s, const struct share &own, struct turn *next,
                     int stage, int lane)
{
    if (next->part >= own.parts || own.rounds <= 0)
        return;
    const int row = tile_of<EIGHTS>(own.tile, next->round) * TILES_ROWS;
    copy_cell<TYPE>(own.ring + (u32)(stage * TILES_STAGE_BYTES(TYPE)),
                    begin_of<TYPE, EIGHTS>(s, own, row, next->part), s.b_stride,
                    s.rows - row < TILES_ROWS ? s.rows - row : TILES_ROWS,
                    own.arrived + (u32)stage * 8, lane);
    if (++next->round == own.rounds) {
        next->round = 0;
        next->part++;
    }
}

/* ---- a in shared memory ---- */

/* What a thread copies of a part of a. */
template <int EIGHTS> struct portion {
    enum {
        THREADS = TILES_WARPS(EIGHTS) * 32,
        COUNT = TILES_PART_BYTES(EIGHTS) / 16 / THREADS
    };
    struct quad v[COUNT];
};

template <int EIGHTS>
FUNC void load_part(struct portion<EIGHTS> *p, const struct tiles_args &s, int part)
{
    typedef struct portion<EIGHTS> portion;
    UNROLL for (int i = 0; i < portion::COUNT; i++)
        p->v[i] = load_quad(s.x + (u64)part * TILES_PART_BYTES(EIGHTS) +
                            (u64)((i * portion::THREADS + local_id()) * 16));
}

template <int EIGHTS> FUNC void keep_part(const struct portion<EIGHTS> &p, u8 *x)
{
    typedef struct portion<EIGHTS> portion;
    UNROLL for (int i = 0; i < portion::COUNT;
                i++)((struct quad *)x)[i * portion::THREADS + local_id()] = p.v[i];
}

/* ---- results ---- */

FUNC float float_at(u64 row, int type, int i)
{
    float v;
    load_floats(&v, (GLOBAL const u8 *)row, type, i, 1);
    return v;
}

/* The plain way. It is rare: it should be small. */
template <int TYPE> RARE float dot_floats(u64 a, int a_type, u64 b, int k)
{
    float sum = 0.0f, v;
    LOOP for (int i = 0; i < k; i++)
    {
        load_few(&v, (GLOBAL const u8 *)b, TYPE, i, 1);
        sum += float_at(a, a_type, i) * v;
    }
    return sum;
}

template <int TYPE>
FUNC void store_result(const struct tiles_args &s, int row, int token, float v)
{
    if (row >= s.rows || token >= s.tokens)
        return;
    v *= CODE_UNIT(TYPE);
    if ((bits_of_f32(v) & 0x7f800000u) == 0x7f800000u)
        v = dot_floats<TYPE>(s.a + (u64)(token * s.a_stride), s.a_type,
                             s.b + (u64)(row * s.b_stride), s.k);
    if (s.bias_type)
        v += float_at(s.bias, s.bias_type, row);
    store_any((GLOBAL u8 *)s.c + token * s.c_stride, s.c_type, row, v);
}

/* A warp's sums of a cell: of each token, those of all rows. */
template <int EIGHTS> FUNC void put_partial(float *to, const float (*sum)[4], int lane)
{
    UNROLL for (int i = 0; i < EIGHTS; i++) UNROLL for (int j = 0; j < 4; j++)
        to[(i * 8 + lane % 4 * 2 + j % 2) * TILES_GAP + lane / 4 + j / 2 * 8] = sum[i][j];
}

/* Waits for the warps that share a tile. */
template <int EIGHTS> FUNC void meet(int tile)
{
    asm volatile("bar.sync %0, %1;" ::"r"(tile + 1), "n"(TILES_PART(EIGHTS) * 32)
                 : "memory");
}

/* Adds up what all warps have of a tile, and what earlier parts have: a thread some results. */
template <int TYPE, int EIGHTS>
FUNC void add_tile(const struct tiles_args &s, const float *partial, float *sums, int tile,
                   bool first, bool last)
{
    enum { PART = TILES_PART(EIGHTS) };
    LOOP for (int i = local_id() % (PART * 32); i < TILES_RESULTS(EIGHTS); i += PART * 32)
    {
        const int token = i / TILES_ROWS, row = i % TILES_ROWS;
        float v = first ? 0.0f : sums[i];
        UNROLL for (int cell = 0; cell < PART; cell++)
            v += partial[cell * TILES_PARTIAL(EIGHTS) + token * TILES_GAP + row];
        if (last)
            store_result<TYPE>(s, tile * TILES_ROWS + row, token, v);
        else
            sums[i] = v;
    }
}

/* ---- the kernel ---- */

/* Waits for a cell and multiplies it, then fetches another one to its place. */
template <int TYPE, int EIGHTS>
FUNC void multiply_cell(float (*sum)[4], const struct tiles_args &s,
                        const struct share &own, const u8 *stage, const u8 *x,
                        struct turn now, struct cursor *at, struct turn *next, int lane)
{
    const u8 *row[2];
    UNROLL for (int half = 0; half < 2; half++)
    {
        const int in = lane / 4 + half * 8;
        const int of_b = tile_of<EIGHTS>(own.tile, now.round) * TILES_ROWS + in;
        row[half] = stage + in * TILES_ROW_APART(TYPE) +
                    skipped<TYPE>(begin_of<TYPE, EIGHTS>(s, own, of_b, now.part));
    }
    wait_for(own.arrived + (u32)at->stage * 8, at->phase);
    add_cell<TYPE, EIGHTS>(sum, row, x + own.cell * TILES_CELL_BYTES(EIGHTS), lane);
    warp_barrier();
    fetch_cell<TYPE, EIGHTS>(s, own, next, at->stage, lane);
    advance(at, s.stages);
}

template <int TYPE, int EIGHTS> FUNC void multiply_tiles(const struct tiles_args &s)
{
    enum { PART = TILES_PART(EIGHTS), WARPS = TILES_WARPS(EIGHTS) };
    extern SHARED struct quad memory[];
    SHARED u64 arrived[WARPS][TILES_STAGES];
    const int lane = local_id() % 32, warp = of_warp(local_id() / 32);
    u8 *const x = (u8 *)memory, *const rings = x + TILES_FIXED_BYTES(EIGHTS);
    u8 *const ring = rings + warp * s.stages * TILES_STAGE_BYTES(TYPE);
    float *const sums = (float *)(rings + WARPS * s.stages * TILES_STAGE_BYTES(TYPE));
    float *const partial = (float *)(x + TILES_PART_BYTES(EIGHTS));
    const int parts = (s.k / TILES_NUMBERS + PART - 1) / PART;
    struct share own = share_of<EIGHTS>(s, warp);
    struct cursor at = { 0, 0 };
    struct turn next = { 0, 0 };
    struct portion<EIGHTS> ahead;

    launch_next();
    own.ring = shared_address(ring);
    own.arrived = shared_address(arrived[warp]);
    if (lane == 0)
        LOOP for (int i = 0; i < s.stages; i++)
            barrier_init(own.arrived + (u32)i * 8, TILES_ARRIVALS);
    barriers_ready();
    warp_barrier();
    if (!s.constant)
        wait_for_previous();
    LOOP for (int i = 0; i < s.stages; i++)
        fetch_cell<TYPE, EIGHTS>(s, own, &next, i, lane);
    wait_for_previous();
    load_part<EIGHTS>(&ahead, s, 0);
    LOOP for (int part = 0; part < parts; part++)
    {
        keep_part<EIGHTS>(ahead, x);
        BARRIER();
        if (part + 1 < parts)
            load_part<EIGHTS>(&ahead, s, part + 1);
        LOOP for (int round = 0; round < own.rounds; round++)
        {
            float sum[EIGHTS][4] = { { 0.0f } };
            if (part < own.parts)
                multiply_cell<TYPE, EIGHTS>(sum, s, own,
                                            ring + at.stage * TILES_STAGE_BYTES(TYPE), x,
                                            { part, round }, &at, &next, lane);
            put_partial<EIGHTS>(partial + warp * TILES_PARTIAL(EIGHTS), sum, lane);
            meet<EIGHTS>(own.tile);
            add_tile<TYPE, EIGHTS>(
                s, partial + own.tile * PART * TILES_PARTIAL(EIGHTS),
                sums + (round * TILES_AT_ONCE(EIGHTS) + own.tile) * TILES_RESULTS(EIGHTS),
                tile_of<EIGHTS>(own.tile, round), part == 0, part == parts - 1);
            meet<EIGHTS>(own.tile);
        }
        BARRIER();
    }
}

/* Bounds that leave registers of a multiprocessor to groups that round the next a. */
#define TILES_THREADS(eights) (TILES_WARPS(eights) * 32 + TILES_ROUNDERS / 2)

#define TILES(name, TYPE, EIGHTS)                                                          \
    extern "C" __attribute__((global, launch_bounds(TILES_THREADS(EIGHTS), 1))) void name( \
        ARGS(const struct tiles_args) s)                                                   \
    {                                                                                      \
        multiply_tiles<TYPE, EIGHTS>(s);                                                   \
    }
#define TILES_OF(name, TYPE)                                                               \
    TILES(tiles_8_##name, TYPE, 1)                                                         \
    TILES(tiles_16_##name, TYPE, 2)                                                        \
    TILES(tiles_32_##name, TYPE, 4)
TILES_OF(q8_0, STORAGE_Q8_0)
TILES_OF(q4_0, STORAGE_Q4_0)
TILES_OF(q4_1, STORAGE_Q4_1)
TILES_OF(q5_0, STORAGE_Q5_0)
TILES_OF(q5_1, STORAGE_Q5_1)
TILES_OF(q4_K, STORAGE_Q4_K)
TILES_OF(q5_K, STORAGE_Q5_K)
TILES_OF(q6_K, STORAGE_Q6_K)
