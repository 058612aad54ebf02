/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for 17 to 2048 rows of a and blocks of b as GGML stores them: prompts. It
 * aims at the matrix units of compute capability 9.0 (wgmma), which take one operand from
 * registers: there a warpgroup makes f16 of 64 rows of b, while the products of those before
 * run. So they compute c^T = b . a^T, with rows of a, in f16, from shared memory.
 *
 * Two groups are a pair, a cluster: they have 128 rows of b each and the same rows of a, of
 * which each loads half, for both. All that is to be computed, tiles of 256 rows of b by some of
 * a, each as so many cells of 256 numbers along k, is divided equally: a pair has some cells of
 * one tile, those of others, some of a last one. Groups that have parts of a tile leave their
 * sums in memory, and each warp of the last one to finish adds those of its rows, always in the
 * same order.
 *
 * Two warps keep rings of cells of b and of steps of a filled (TMA); the other eight multiply.
 * docs/cuda-kernels.md has what it reaches on an H100. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"

#include "pairs.h"

#include "wgmma.h"

#include "boxes.h"

#include "matmul_blocks.h"

#include "cell_words.h"

#include "block_halves.h"

/* ---- the matrix units ---- */

#define S4(i)  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define S16(i) S4(i), S4(i + 4), S4(i + 8), S4(i + 12)

/* sum = a . b^T + (add ? sum : 0), 64 rows of a in registers, TOKENS of b in shared memory, 16 of
 * k. */
template <int TOKENS> struct matrix_unit;

#define MATRIX_UNIT(TOKENS, a0, a1, a2, a3, b_, add_, registers, ...)                      \
    template <> struct matrix_unit<TOKENS> {                                               \
        FUNC void multiply(float *sum, const u32 *a, u64 b, int add)                       \
        {                                                                                  \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #add_ ", 0;\n"                 \
                         "wgmma.mma_async.sync.aligned.m64n" #TOKENS                       \
                         "k16.f32.f16.f16 {" registers "}, {%" #a0 ",%" #a1 ",%" #a2       \
                         ",%" #a3 "}, %" #b_ ", p, 1, 1, 0; }"                             \
                         : __VA_ARGS__                                                     \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));  \
        }                                                                                  \
    };
/* clang-format off */
MATRIX_UNIT(64, 32, 33, 34, 35, 36, 37, R0 "," R1, S16(0), S16(16))
MATRIX_UNIT(128, 64, 65, 66, 67, 68, 69, R0 "," R1 "," R2 "," R3,
            S16(0), S16(16), S16(32), S16(48))
MATRIX_UNIT(256, 128, 129, 130, 131, 132, 133,
            R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6 "," R7,
            S16(0), S16(16), S16(32), S16(48), S16(64), S16(80), S16(96), S16(112))
/* clang-format on */

/* ---- what a group has ---- */

struct group {
    u32 steps, full_cells, empty_cells, full_steps, empty_steps; /* in shared memory */
    const u8 *cells;
    int pair, rank;        /* which pair, and which of the two */
    int part, first_token; /* the pair's part of all; its first row of a */
    int begin, end;        /* its cells */
};

/* Cells of a tile: first .. last - 1. */
struct segment {
    int tile, first, last;
};

FUNC struct segment segment_at(const struct blocks_args *s, const struct group *g, int at)
{
    const int tile = at / s->cells, first = at - tile * s->cells;
    const int left = g->end - at, rest = s->cells - first;
    return { tile, first, first + (left < rest ? left : rest) };
}

FUNC i64 cells_of_all(const struct blocks_args *s)
{
    return (i64)((s->n + BLOCKS_TILE - 1) / BLOCKS_TILE) * s->cells;
}

FUNC int begin_of(const struct blocks_args *s, int part)
{
    return (int)(cells_of_all(s) * part / s->parts);
}

/* The part that has a cell. */
FUNC int part_of(const struct blocks_args *s, int cell)
{
    return (int)((((i64)cell + 1) * s->parts - 1) / cells_of_all(s));
}

/* Of b, which a group has of a tile. */
FUNC int first_row_of(const struct group *g, int tile)
{
    return (tile * BLOCKS_PAIR + g->rank) * BLOCKS_ROWS;
}

/* Tiles that would reach beyond the last row of a begin sooner, where there are so many: copies of
 * what is outside take longer. What two groups compute is the same, bit for bit. */
template <int TOKENS> FUNC int first_token_of(const struct blocks_args *s, int tile)
{
    const int token = tile * TOKENS;
    return token > s->m - TOKENS && s->m > TOKENS ? s->m - TOKENS : token;
}

struct turn {
    int place, phase;
};

template <int PLACES> FUNC void next(struct turn *t)
{
    t->place++;
    if (t->place == PLACES) {
        t->place = 0;
        t->phase ^= 1;
    }
}

/* ---- the other group of a pair ---- */

FUNC int rank_in_pair()
{
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

FUNC void pair_barrier()
{
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::
                     : "memory");
}

/* Arrives at a barrier of both groups. What it makes free was read by the matrix units. */
FUNC void arrive_at_both(u32 barrier)
{
    UNROLL for (int rank = 0; rank < BLOCKS_PAIR; rank++) asm volatile(
        "{ .reg .b32 at; mapa.shared::cluster.u32 at, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [at]; }" ::"r"(barrier),
        "r"(rank) : "memory");
}

/* box_load() to the same place in both groups; each has a barrier for it. */
FUNC void box_load_both(u32 to, const struct tensor_map *map, int col, int row, u32 barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
        "l"(map), "r"(col), "r"(row), "r"(barrier), "h"((u16)3)
        : "memory");
}

/* ---- loading ---- */

/* The map has rows of b as words. A box begins at a multiple of 16 bytes: the copy engine takes no
 * other column. */
template <int TYPE, int CELLS>
FUNC void load_cells(const struct blocks_args *s, const struct group *g)
{
    struct turn turn = { 0, 1 };
    if (!s->constant)
        wait_for_previous();
    for (int at = g->begin; at < g->end; at++) {
        const int tile = at / s->cells, cell = at - tile * s->cells;
        const u32 full = g->full_cells + turn.place * 8;
        wait_for(g->empty_cells + turn.place * 8, turn.phase);
        expect_bytes(full, BLOCKS_CELL_BYTES(TYPE));
        box_load(shared_address(g->cells) + turn.place * BLOCKS_CELL_BYTES(TYPE), &s->b,
                 cell * CELL_ROW_BYTES(TYPE) / 16 * 4, first_row_of(g, tile), full);
        next<CELLS>(&turn);
    }
}

template <int TOKENS, int STEPS>
FUNC void load_steps(const struct blocks_args *s, const struct group *g)
{
    const int first = g->rank * s->a_rows;
    struct turn turn = { 0, 1 };
    wait_for_previous();
    for (int at = g->begin; at < g->end; at++) {
        const int cell = at % s->cells;
        for (int i = 0; i < BLOCKS_STEPS_OF_CELL; i++) {
            const u32 full = g->full_steps + turn.place * 8;
            wait_for(g->empty_steps + turn.place * 8, turn.phase);
            expect_bytes(full, BLOCKS_PAIR * s->a_rows * BLOCKS_STEP * 2);
            box_load_both(g->steps + turn.place * BLOCKS_STEP_BYTES(TOKENS) +
                              first * BLOCKS_STEP * 2,
                          &s->a, cell * BLOCKS_NUMBERS + i * BLOCKS_STEP,
                          g->first_token + first, full);
            next<STEPS>(&turn);
        }
    }
}

/* ---- products ---- */

/* Operands of a step: 16 numbers of rows l / 4 and l / 4 + 8 each. */
struct operands {
    u32 a[4][4];
};

template <int TYPE> FUNC void unpack(struct operands *to, const u8 *upper, int pair, int t)
{
    UNROLL for (int lower = 0; lower < 2; lower++)
    {
        struct halves h;
        halves_of<TYPE>(&h, upper + lower * 8 * BLOCKS_ROW_APART(TYPE), pair, t);
        UNROLL for (int i = 0; i < 4; i++) UNROLL for (int k = 0; k < 2; k++)
            to->a[i][lower + k * 2] = h.v[i / 2][i % 2][k];
    }
}

/* Where a warpgroup is in both rings. */
struct rings {
    struct turn cell, panel; /* the steps of a cell */
};

/* The products of a segment. A step is free when the products of the next one have begun. */
template <int TYPE, int TOKENS, int STEPS, int CELLS>
FUNC void multiply_cells(float *sum, const struct group *g, struct rings *at,
                         const struct segment &now)
{
    const int thread = local_id(), lane = thread % 32;
    const u8 *rows = g->cells + (thread / 32 * 16 + lane / 4) * BLOCKS_ROW_APART(TYPE);
    const bool leads = thread % 128 == 0;
    struct operands operands[2];
    u32 before = 0; /* the barrier of the step that is free next */
    LOOP for (int cell = now.first; cell < now.last; cell++)
    {
        const u32 panel = at->panel.place * BLOCKS_STEPS_OF_CELL;
        const u32 full = g->full_steps + panel * 8, empty = g->empty_steps + panel * 8;
        const u32 steps = g->steps + panel * BLOCKS_STEP_BYTES(TOKENS);
        const u8 *row = rows + at->cell.place * BLOCKS_CELL_BYTES(TYPE) +
                        cell * CELL_ROW_BYTES(TYPE) % 16;
        wait_for(g->full_cells + at->cell.place * 8, at->cell.phase);
        UNROLL for (int pair = 0; pair < BLOCKS_STEPS_OF_CELL; pair++)
        {
            const struct operands &o = operands[pair % 2];
            const u64 b = box_descriptor(steps + pair * BLOCKS_STEP_BYTES(TOKENS));
            unpack<TYPE>(&operands[pair % 2], row, pair, lane % 4);
            if (pair == BLOCKS_STEPS_OF_CELL - 1) {
                warp_barrier();
                if (lane == 0)
                    arrive(g->empty_cells + at->cell.place * 8);
            }
            wait_for(full + pair * 8, at->panel.phase);
            products_begin();
            UNROLL for (int k = 0; k < 4; k++) matrix_unit<TOKENS>::multiply(
                sum, o.a[k], b + 2 * k, (cell - now.first | pair | k) != 0);
            products_commit();
            products_wait<1>();
            if (before && leads)
                arrive_at_both(before);
            before = empty + pair * 8;
        }
        next<CELLS>(&at->cell);
        next<STEPS / BLOCKS_STEPS_OF_CELL>(&at->panel);
    }
    products_wait<0>();
    if (leads)
        arrive_at_both(before);
}

/* ---- sums of several groups ---- */

/* Where a warp leaves its sums: a lane has every 32nd quad. A part has two places: for cells at the
 * end of a tile and for those at its beginning. */
template <int TOKENS>
FUNC u64 sums_of(const struct blocks_args *s, const struct group *g, int part, bool begins)
{
    const int group = (part * s->across + g->pair % s->across) * BLOCKS_PAIR + g->rank;
    return s->sums +
           (u64)((group * 2 + begins) * BLOCKS_WARPS + local_id() / 32) *
               (BLOCKS_SUMS_BYTES(TOKENS) / BLOCKS_WARPS) +
           local_id() % 32 * 16;
}

FUNC struct quad load_sums(u64 from)
{
    struct quad v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.v[0]), "=r"(v.v[1]), "=r"(v.v[2]), "=r"(v.v[3])
                 : "l"(from)
                 : "memory");
    return v;
}

FUNC void fence_device()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

FUNC u32 count(u64 counter, u32 by)
{
    u32 before;
    asm volatile("atom.global.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(by)
                 : "memory");
    return before;
}

/* Counts a warp whose sums of a tile are in memory; whether it is the last one of `parts`. A word
 * has a byte for each of four warps, and is 0 again after the last. */
FUNC bool is_last(const struct blocks_args *s, const struct group *g, int part, int parts)
{
    const int group = (part * s->across + g->pair % s->across) * BLOCKS_PAIR + g->rank;
    const int warp = local_id() / 32;
    const u64 word = s->counters + (group * (BLOCKS_WARPS / 4) + warp / 4) * 4;
    const int shift = warp % 4 * 8;
    u32 last = 0;
    warp_barrier();
    if (local_id() % 32 == 0) {
        fence_device();
        last = (count(word, 1u << shift) >> shift & 255) == (u32)parts - 1;
        if (last) {
            count(word, 0u - ((u32)parts << shift));
            fence_device();
        }
    }
    last = bits_of_f32(of_lane(f32_of_bits(last), 0));
    return last != 0;
}

/* Adds up the sums of all groups that have cells of a tile; false: another group will. */
template <int TOKENS>
FUNC bool complete(const struct blocks_args *s, const struct group *g,
                   const struct segment &of, float *sum)
{
    const int first = part_of(s, of.tile * s->cells);
    const int last = part_of(s, of.tile * s->cells + s->cells - 1);
    u64 at = sums_of<TOKENS>(s, g, g->part, of.first == 0);
    if (first == last)
        return true;
    UNROLL for (int i = 0; i < TOKENS / 8; i++)
    {
        struct quad v;
        UNROLL for (int j = 0; j < 4; j++) v.v[j] = bits_of_f32(sum[4 * i + j]);
        store_quad(at + i * 512, v);
    }
    if (!is_last(s, g, first, last - first + 1))
        return false;
    UNROLL for (int i = 0; i < TOKENS / 2; i++) sum[i] = 0.0f;
    LOOP for (int part = first; part <= last; part++)
    {
        at = sums_of<TOKENS>(s, g, part, part == first);
        UNROLL for (int i = 0; i < TOKENS / 8; i++)
        {
            const struct quad v = load_sums(at + i * 512);
            UNROLL for (int j = 0; j < 4; j++) sum[4 * i + j] += f32_of_bits(v.v[j]);
        }
    }
    return true;
}

/* ---- storing c ---- */

/* A warp has 16 columns of c. Lane l has column l / 4 of rows 8 j + l % 4 * 2 and the next one in
 * sum[4 j] and sum[4 j + 1], column l / 4 + 8 in sum[4 j + 2] and sum[4 j + 3]. */

FUNC float bias_at(const struct blocks_args *s, int col)
{
    float v = 0.0f;
    if (s->bias && col < s->n)
        load_floats(&v, (const u8 *)s->bias, s->bias_type, col, 1);
    return v;
}

/* What a lane stores to: its first column in its first row, and how many of its rows are inside of
 * c. */
struct corner {
    u64 at;
    i64 stride;
    int rows;
    bool inside[2]; /* its columns */
};

FUNC void store_floats(const struct corner *c, int j, const float (*v)[2])
{
    UNROLL for (int i = 0; i < 2; i++)
    {
        const u64 row = c->at + (8 * j + i) * c->stride;
        const bool inside = 8 * j + i < c->rows;
        UNROLL for (int right = 0; right < 2; right++)
        {
            if (inside && c->inside[right])
                *(float *)(row + right * 32) = v[right][i];
        }
    }
}

/* Of two rows and a column that each lane has, an even lane stores two columns of the first row, an
 * odd one of the second: its own and that of its neighbour, four lanes away. */
FUNC void store_halves(const struct corner *c, int j, const float (*v)[2], bool is_f16,
                       bool odd)
{
    UNROLL for (int right = 0; right < 2; right++)
    {
        const float mine = odd ? v[right][1] : v[right][0];
        const float other = from_lane(odd ? v[right][0] : v[right][1], 4);
        const float low = odd ? other : mine, high = odd ? mine : other;
        const u32 f16 = pair_of<STORAGE_F16>(low, high);
        const u32 bf16 = pair_of<STORAGE_BF16>(low, high);
        if (8 * j < c->rows && c->inside[right])
            *(u32 *)(c->at + 8 * j * c->stride + right * 16) = is_f16 ? f16 : bf16;
    }
}

template <int TOKENS>
FUNC void store_tile(const struct blocks_args *s, const struct group *g, int tile,
                     const float *sum)
{
    const int lane = local_id() % 32, row = g->first_token + lane % 4 * 2;
    const int col = first_row_of(g, tile) + local_id() / 32 * 16 + lane / 4;
    const float bias[2] = { bias_at(s, col), bias_at(s, col + 8) };
    const bool is_f32 = s->c_type == STORAGE_F32, is_f16 = s->c_type == STORAGE_F16;
    const bool odd = !is_f32 && lane / 4 % 2;
    const struct corner c = { s->c + (row + odd) * s->c_stride +
                                  (col - odd) * (is_f32 ? 4 : 2),
                              s->c_stride,
                              s->m - row - odd,
                              { col < s->n, col + 8 < s->n } };
    float scales[TOKENS / 32]; /* lane l has those of rows l, l + 32 and so on */
    UNROLL for (int i = 0; i < TOKENS / 32; i++)
    {
        const int at = g->first_token + i * 32 + lane;
        scales[i] = at < s->m ? ((const float *)s->scale)[at] : 0.0f;
    }
    UNROLL for (int j = 0; j < TOKENS / 8; j++)
    {
        float v[2][2];
        UNROLL for (int i = 0; i < 2; i++)
        {
            const float by = of_lane(scales[j / 4], j % 4 * 8 + lane % 4 * 2 + i);
            UNROLL for (int right = 0; right < 2; right++)
                v[right][i] = sum[4 * j + right * 2 + i] * by + bias[right];
        }
        if (is_f32)
            store_floats(&c, j, v);
        else
            store_halves(&c, j, v, is_f16, odd);
    }
}

template <int TYPE, int TOKENS, int STEPS, int CELLS>
FUNC void compute(const struct blocks_args *s, const struct group *g)
{
    struct rings at = { { 0, 0 }, { 0, 0 } };
    float sum[TOKENS / 2];
    LOOP for (int cell = g->begin; cell < g->end;)
    {
        const struct segment now = segment_at(s, g, cell);
        multiply_cells<TYPE, TOKENS, STEPS, CELLS>(sum, g, &at, now);
        if (cell == g->begin)
            wait_for_previous();
        if (complete<TOKENS>(s, g, now, sum))
            store_tile<TOKENS>(s, g, now.tile, sum);
        cell += now.last - now.first;
    }
}

template <int TYPE, int TOKENS, int STEPS> FUNC void matmul(const struct blocks_args *s)
{
    enum { CELLS = BLOCKS_CELLS(TYPE, TOKENS, STEPS) };
    extern SHARED __attribute__((aligned(1024))) u8 shared[];
    struct group g;
    g.steps = shared_address(shared);
    g.cells = shared + STEPS * BLOCKS_STEP_BYTES(TOKENS);
    g.full_cells = shared_address(g.cells) + CELLS * BLOCKS_CELL_BYTES(TYPE);
    g.empty_cells = g.full_cells + CELLS * 8;
    g.full_steps = g.empty_cells + CELLS * 8;
    g.empty_steps = g.full_steps + STEPS * 8;
    g.rank = rank_in_pair();
    g.pair = group_id() / BLOCKS_PAIR;
    g.part = g.pair / s->across;
    g.first_token = first_token_of<TOKENS>(s, g.pair % s->across);
    g.begin = begin_of(s, g.part);
    g.end = begin_of(s, g.part + 1);
    if (local_id() == 0) {
        map_prefetch(&s->a);
        map_prefetch(&s->b);
        for (int i = 0; i < CELLS; i++) {
            barrier_init(g.full_cells + i * 8, 1);
            barrier_init(g.empty_cells + i * 8, BLOCKS_WARPS);
        }
        for (int i = 0; i < STEPS; i++) {
            barrier_init(g.full_steps + i * 8, 1);
            barrier_init(g.empty_steps + i * 8, BLOCKS_PAIR * BLOCKS_WARPS / 4);
        }
        barriers_ready();
    }
    pair_barrier();
    launch_next();
    if (local_id() < BLOCKS_WARPS * 32) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        compute<TYPE, TOKENS, STEPS, CELLS>(s, &g);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (local_id() == BLOCKS_WARPS * 32)
            load_cells<TYPE, CELLS>(s, &g);
        else if (local_id() == BLOCKS_WARPS * 32 + 32)
            load_steps<TOKENS, STEPS>(s, &g);
        warp_barrier();
    }
    pair_barrier();
}

#define BY_VALUE const __attribute__((grid_constant)) /* has an address, for the copies */
#define KERNEL_OF(TYPE, type, tokens)                                                      \
    KERNEL(blocks_##type##_##tokens)                                                       \
    __attribute__((cluster_dims(2, 1, 1), launch_bounds(BLOCKS_THREADS, 1))) (             \
        BY_VALUE struct blocks_args s)                                                     \
    {                                                                                      \
        matmul<STORAGE_##TYPE, tokens, BLOCKS_STEPS(tokens)>(&s);                          \
    }
#define X(TYPE, type)                                                                      \
    KERNEL_OF(TYPE, type, 64)                                                              \
    KERNEL_OF(TYPE, type, 128)                                                             \
    KERNEL_OF(TYPE, type, 256)
BLOCKS_TYPES(X)
#undef X
