/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for many rows of a: prefill. It aims at the matrix units of compute capability
 * 9.0 (wgmma), which multiply f16, bf16 or TF32 out of shared memory and add in f32. TF32 is f32
 * with 11 significant bits instead of 24. The matrix units just cut off the others, so that sums
 * would be too small: the copies round to the nearest before, because their maps say TF32.
 *
 * A group computes one tile of c after the other. One thread of its first warpgroup keeps a ring of
 * steps along k filled (TMA); each of the other warpgroups multiplies 64 rows of the tile. A warp
 * stores its part of c through shared memory (TMA, too), while the ring fills for the next tile.
 * Where c is smaller than a tile, copies fill with zeros what is outside of b, and write nothing
 * outside of c; rows outside of a are whatever was in shared memory.
 *
 * matmul_convert.cu converts other types first.
 *
 * docs/cuda-kernels.md has what it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"

#include "pairs.h"

#include "wgmma.h"

#include "boxes.h"

#include "matmul_wgmma.h"

#include "tiles.h"

/* ---- the machine: shared memory has addresses of 32 bits ---- */

FUNC void box_store(const struct tensor_map *map, int col, int row, u32 from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(col), "r"(row), "r"(from)
                 : "memory");
}

/* Waits until all but the last `left` stores of this thread have read shared memory. */
template <int left> FUNC void box_stores_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}

FUNC void box_stores_wait()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* ---- the matrix units ---- */

#define S4(i)  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define S16(i) S4(i), S4(i + 4), S4(i + 8), S4(i + 12)

/* sum = a . b^T + (add ? sum : 0), 64 rows, COLS columns and WGMMA_UNIT bytes along k, by the
 * descriptors of a and b in shared memory. */
template <int TYPE, int COLS> struct matrix_unit;

#define MATRIX_UNIT(TYPE, depth, type, flags, COLS, a_, b_, add_, registers, ...)          \
    template <> struct matrix_unit<STORAGE_##TYPE, COLS> {                                 \
        FUNC void multiply(float *sum, u64 a, u64 b, int add)                              \
        {                                                                                  \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #add_ ", 0;\n"                 \
                         "wgmma.mma_async.sync.aligned.m64n" #COLS "k" #depth ".f32."      \
                         #type "." #type " {" registers "}, %" #a_ ", %" #b_               \
                         ", p, " flags "; }"                                               \
                         : __VA_ARGS__                                                     \
                         : "l"(a), "l"(b), "r"(add));                                      \
        }                                                                                  \
    };
#define MATRIX_UNITS(...)                                                                  \
    MATRIX_UNIT(F16, 16, f16, "1, 1, 0, 0", __VA_ARGS__)                                   \
    MATRIX_UNIT(BF16, 16, bf16, "1, 1, 0, 0", __VA_ARGS__)                                 \
    MATRIX_UNIT(F32, 8, tf32, "1, 1", __VA_ARGS__)
/* clang-format off */
MATRIX_UNITS(32, 16, 17, 18, R0, S16(0))
MATRIX_UNITS(64, 32, 33, 34, R0 "," R1, S16(0), S16(16))
MATRIX_UNITS(128, 64, 65, 66, R0 "," R1 "," R2 "," R3, S16(0), S16(16), S16(32), S16(48))
MATRIX_UNITS(160, 80, 81, 82, R0 "," R1 "," R2 "," R3 "," R4,
             S16(0), S16(16), S16(32), S16(48), S16(64))
MATRIX_UNITS(192, 96, 97, 98, R0 "," R1 "," R2 "," R3 "," R4 "," R5,
             S16(0), S16(16), S16(32), S16(48), S16(64), S16(80))
MATRIX_UNITS(224, 112, 113, 114, R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6,
             S16(0), S16(16), S16(32), S16(48), S16(64), S16(80), S16(96))
MATRIX_UNITS(256, 128, 129, 130, R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6 "," R7,
             S16(0), S16(16), S16(32), S16(48), S16(64), S16(80), S16(96), S16(112))
/* clang-format on */

/* ---- the ring ---- */

/* What all of a group agree on. */
struct group {
    u32 ring, stores, full, empty; /* addresses in shared memory */
    int steps;                     /* along k */
    struct tiling tiles;           /* of c */
};

struct turn {
    int step, phase;
};

template <int STEPS> FUNC void next(struct turn *t)
{
    t->step++;
    if (t->step == STEPS) {
        t->step = 0;
        t->phase ^= 1;
    }
}

/* A tile that would reach beyond c begins sooner, where c has room for it: copies of what is outside
 * of a and b take longer, and what two tiles compute is the same, bit for bit. */
template <int ROWS, int COLS>
FUNC struct corner corner_inside(const struct wgmma_args *s, const struct group *g, int tile)
{
    struct corner at = corner_of<ROWS, COLS>(g->tiles, tile);
    if (at.row > s->m - ROWS && s->m > ROWS)
        at.row = s->m - ROWS;
    if (at.col > s->n - COLS && s->n > COLS)
        at.col = s->n - COLS;
    return at;
}

template <int TYPE, int ROWS, int COLS, int STEPS>
FUNC void load_tiles(const struct wgmma_args *s, const struct group *g)
{
    struct turn turn = { 0, 1 };
    for (int tile = group_id(); tile < g->tiles.down * g->tiles.across; tile += group_count()) {
        const struct corner at = corner_inside<ROWS, COLS>(s, g, tile);
        for (int i = 0; i < g->steps; i++) {
            const u32 a = g->ring + turn.step * WGMMA_STEP_BYTES(ROWS, COLS);
            const u32 full = g->full + turn.step * 8;
            wait_for(g->empty + turn.step * 8, turn.phase);
            expect_bytes(full, WGMMA_STEP_BYTES(s->a_rows, COLS));
            box_load(a, &s->a, i * WGMMA_STEP(TYPE), at.row, full);
            box_load(a + ROWS * WGMMA_ROW, &s->b, i * WGMMA_STEP(TYPE), at.col, full);
            next<STEPS>(&turn);
        }
    }
}

/* The products of one warpgroup, whose 64 rows begin at byte `offset` of a step. A step is free
 * when the products of the next one have begun. */
template <int TYPE, int ROWS, int COLS, int STEPS>
FUNC void multiply_tile(float *sum, const struct group *g, struct turn *turn, u32 offset,
                        bool arrives)
{
    int before = -1;
    for (int i = 0; i < g->steps; i++) {
        const u32 step = g->ring + turn->step * WGMMA_STEP_BYTES(ROWS, COLS);
        const u64 a = box_descriptor(step + offset);
        const u64 b = box_descriptor(step + ROWS * WGMMA_ROW);
        wait_for(g->full + turn->step * 8, turn->phase);
        products_begin();
        UNROLL for (int k = 0; k < WGMMA_ROW / WGMMA_UNIT; k++)
            matrix_unit<TYPE, COLS>::multiply(sum, a + k * WGMMA_UNIT / 16,
                                              b + k * WGMMA_UNIT / 16, (i | k) != 0);
        products_commit();
        products_wait<1>();
        if (before >= 0 && arrives)
            arrive(g->empty + before * 8);
        before = turn->step;
        next<STEPS>(turn);
    }
    products_wait<0>();
    if (arrives)
        arrive(g->empty + before * 8);
}

/* ---- storing c ---- */

/* A warp has 16 rows of c. Lane l has the columns 8 j + l % 4 * 2 and the next one, of row l / 4
 * in sum[4 j] and sum[4 j + 1], of the row 8 below in sum[4 j + 2] and sum[4 j + 3]. */

FUNC float scale_at(const struct wgmma_args *s, int row)
{
    return s->scale && row < s->m ? ((const float *)s->scale)[row] : 1.0f;
}

/* Adds the bias of 32 columns from `first` on: each lane loads one. */
FUNC void add_bias(const struct wgmma_args *s, float *v, int first, int lane)
{
    float mine = 0.0f;
    if (first + lane < s->n)
        load_floats(&mine, (const u8 *)s->bias, s->bias_type, first + lane, 1);
    UNROLL for (int j = 0; j < 4; j++)
        UNROLL for (int right = 0; right < 2; right++) {
            const float bias = of_lane(mine, j * 8 + lane % 4 * 2 + right);
            v[4 * j + right] += bias;
            v[4 * j + 2 + right] += bias;
        }
}

/* 16 x 32 numbers in rows of 64 bytes, swizzled by 64 bytes. */
template <int TYPE> FUNC void place_halves(u32 to, const float *v, int lane)
{
    const int row = lane % 16, right = lane / 16;
    UNROLL for (int j = 0; j < 4; j += 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                         to + row * 64 + (((j + right) ^ (row / 2 & 3)) * 16)),
                     "r"(pair_of<TYPE>(v[4 * j], v[4 * j + 1])),
                     "r"(pair_of<TYPE>(v[4 * j + 2], v[4 * j + 3])),
                     "r"(pair_of<TYPE>(v[4 * j + 4], v[4 * j + 5])),
                     "r"(pair_of<TYPE>(v[4 * j + 6], v[4 * j + 7]))
                     : "memory");
}

/* 16 x 32 numbers in rows of 128 bytes, swizzled by 128 bytes. */
FUNC void place_floats(u32 to, const float *v, int lane)
{
    UNROLL for (int i = 0; i < 8; i++) {
        const int row = lane / 4 + i % 2 * 8, unit = i / 2 * 2 + lane % 4 / 2;
        asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(
                         to + row * 128 + ((unit ^ (row & 7)) * 16) + lane % 2 * 8),
                     "f"(v[2 * i]), "f"(v[2 * i + 1])
                     : "memory");
    }
}

FUNC void place(u32 to, const float *v, int type, int lane)
{
    if (type == STORAGE_F16)
        place_halves<STORAGE_F16>(to, v, lane);
    else if (type == STORAGE_BF16)
        place_halves<STORAGE_BF16>(to, v, lane);
    else
        place_floats(to, v, lane);
}

/* Stores a warp's rows of a tile. `stores` has two places, used in turn: `*used` counts. */
template <int COLS>
FUNC void store_rows(const struct wgmma_args *s, const float *sum, struct corner at, u32 stores,
                     int *used)
{
    const int lane = local_id() % 32, row = at.row + lane / 4;
    const float scale[2] = { scale_at(s, row), scale_at(s, row + 8) };
    UNROLL for (int c = 0; c < COLS / WGMMA_STORE_COLS; c++) {
        const u32 to = stores + *used % 2 * WGMMA_STORE_BYTES;
        const int first = at.col + c * WGMMA_STORE_COLS;
        float v[16];
        UNROLL for (int i = 0; i < 16; i++)
            v[i] = sum[c * 16 + i] * scale[i / 2 % 2];
        if (s->bias)
            add_bias(s, v, first, lane);
        if (lane == 0)
            box_stores_read<1>();
        warp_barrier();
        place(to, v, s->c_type, lane);
        fence_async();
        warp_barrier();
        if (lane == 0)
            box_store(&s->c, first, at.row, to);
        ++*used;
    }
}

template <int TYPE, int ROWS, int COLS, int STEPS>
FUNC void compute_tiles(const struct wgmma_args *s, const struct group *g)
{
    const int thread = local_id() - 128, warp = thread / 32, warpgroup = thread / 128;
    const u32 stores = g->stores + warp * 2 * WGMMA_STORE_BYTES;
    struct turn turn = { 0, 0 };
    float sum[COLS / 2];
    int used = 0;
    for (int tile = group_id(); tile < g->tiles.down * g->tiles.across; tile += group_count()) {
        struct corner at = corner_inside<ROWS, COLS>(s, g, tile);
        multiply_tile<TYPE, ROWS, COLS, STEPS>(sum, g, &turn, warpgroup * 64 * WGMMA_ROW,
                                               thread % 128 == 0);
        at.row += warp * WGMMA_STORE_ROWS;
        store_rows<COLS>(s, sum, at, stores, &used);
    }
    if (thread % 32 == 0)
        box_stores_wait();
}

template <int TYPE, int ROWS, int COLS, int STEPS> FUNC void matmul(const struct wgmma_args *s)
{
    extern SHARED __attribute__((aligned(1024))) u8 shared[];
    struct group g;
    g.ring = shared_address(shared);
    g.stores = g.ring + STEPS * WGMMA_STEP_BYTES(ROWS, COLS);
    g.full = g.stores + ROWS / 16 * 2 * WGMMA_STORE_BYTES;
    g.empty = g.full + STEPS * 8;
    g.steps = (s->k + WGMMA_STEP(TYPE) - 1) / WGMMA_STEP(TYPE);
    g.tiles = tiling_of<ROWS, COLS>(s->m, s->n, s->band);
    if (local_id() == 0) {
        map_prefetch(&s->a);
        map_prefetch(&s->b);
        for (int i = 0; i < STEPS; i++) {
            barrier_init(g.full + i * 8, 1);
            barrier_init(g.empty + i * 8, ROWS / 64);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        fence_async();
    }
    BARRIER();
    take_turn();
    if (local_id() < 128) {
        if (ROWS == 128)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (local_id() == 0)
            load_tiles<TYPE, ROWS, COLS, STEPS>(s, &g);
    } else {
        if (ROWS == 128)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        compute_tiles<TYPE, ROWS, COLS, STEPS>(s, &g);
    }
}

#define BY_VALUE const __attribute__((grid_constant)) /* has an address, for the copies */
#define KERNEL_OF(TYPE, type, rows, cols, steps)                                           \
    KERNEL(wgmma_##type##_##rows##x##cols)                                                 \
    __attribute__((launch_bounds(WGMMA_THREADS(rows), 1)))(BY_VALUE struct wgmma_args s)   \
    {                                                                                      \
        matmul<STORAGE_##TYPE, rows, cols, steps>(&s);                                     \
    }
#define X(rows, cols, steps)                                                               \
    KERNEL_OF(F16, f16, rows, cols, steps)                                                 \
    KERNEL_OF(BF16, bf16, rows, cols, steps)                                               \
    KERNEL_OF(F32, tf32, rows, cols, steps)
WGMMA_TILES(X)
#undef X
