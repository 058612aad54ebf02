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
 * the kernel before it leaves room on: then what is constant is copied ahead.
 * docs/cuda-kernels.md has what it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "matmul_gemv.h"

#include "device.h"

/* Each follows the one before. */
#include "gemv_ring.h"

#include "gemv_ahead.h"

#include "gemv_row.h"

#include "cell_words.h"

#include "gemv_codes.h"

#include "gemv_products.h"

/* ---- the kernel ---- */

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

/* Which sums a lane has in the end: of TOKENS * ROWS, neighbouring lanes have one. */
#define LANES_EACH(tokens, rows) (32 / ((tokens) * (rows)))

/* Lanes whose place differs in a bit share numbers: each gives half of them away, and adds what it
 * gets to the others. */
template <int KEPT> FUNC void add_halves(float *v, int bit, int lane)
{
    const bool upper = lane & bit;
    UNROLL for (int i = 0; i < KEPT; i++)
    {
        const float kept = upper ? v[i + KEPT] : v[i], given = upper ? v[i] : v[i + KEPT];
        v[i] = kept + from_lane(given, bit);
    }
}

/* The sums of COUNT numbers of all lanes, of which each lane has one. */
template <int COUNT> FUNC float sum_of_lanes(float *v, int lane)
{
    if (COUNT > 8)
        add_halves<8>(v, 256 / COUNT, lane);
    if (COUNT > 4)
        add_halves<4>(v, 128 / COUNT, lane);
    if (COUNT > 2)
        add_halves<2>(v, 64 / COUNT, lane);
    if (COUNT > 1)
        add_halves<1>(v, 32 / COUNT, lane);
    UNROLL for (int bit = 16 / COUNT; bit; bit /= 2) v[0] += from_lane(v[0], bit);
    return v[0];
}

/* Stores the dots of rows `row` .. with each row of a, of which each lane has its own. */
template <int TOKENS, int ROWS>
FUNC void finish(const struct gemv_args &s, const struct run &run, int row, float dot,
                 float residual, int lane)
{
    enum { EACH = LANES_EACH(TOKENS, ROWS) };
    const int token = lane / EACH / ROWS, own = row + lane / EACH % ROWS;
    const float up = from_lane(dot, EACH); /* of the next row, for an even one */
    float v = dot;
    if (lane % EACH || token >= s.tokens || own >= run.end)
        return;
    const struct source at = source_of(s, own);
    if (at.bias_type)
        v += float_at(at.bias, at.bias_type, at.index);
    if (s.residual)
        ((GLOBAL float *)s.residual)[at.index] = residual + v;
    if (at.c && (!s.gated || at.c != s.y))
        store_any((GLOBAL u8 *)at.c + token * s.c_stride, s.c_type, at.index, v);
    if (s.gated && own % 2 == 0) {
        const float gate = rounded(dot, s.c_type);
        store_any((GLOBAL u8 *)s.y, s.c_type, at.index,
                  gate / (1.0f + exp_f32(-gate)) * rounded(up, s.c_type));
    }
}

/* The plain way. It is rare: it should be small. `norm`: the weight of an rmsnorm of a, whose
 * `scale` is that of its row; or 0. */
template <int TYPE>
RARE float dot_floats(u64 a, int a_type, u64 b, int k, u64 norm, float scale, int lane)
{
    float sum = 0.0f, v;
    LOOP for (int i = lane; i < k; i += 32) {
        float x = float_at(a, a_type, i);
        if (norm)
            x = x * scale * float_at(norm, STORAGE_F32, i);
        load_few(&v, (GLOBAL const u8 *)b, TYPE, i, 1);
        sum += x * v;
    }
    return sum;
}

/* What all threads of a group wait for: the row of a, and whether all its numbers are finite; if a
 * is the rmsnorm of a row, what that row is multiplied with. */
struct meeting {
    u64 a_is_there;
    int infinite;
    float scale;
};

/* Waits for the copies of a warp that no product uses. */
FUNC void drain(const struct gemv_args &s, const struct run &run, const struct feed &next)
{
    LOOP for (int i = 0; i < s.stages - next.owed; i++)
        wait_for(run.arrived + (u32)i * 8, 0);
}

/* How far the first number of a row is from the begin of its slot. */
template <int TYPE> FUNC int before(const struct gemv_args &s, const struct run &run, int row)
{
    return is_aligned<TYPE>(s) || row >= run.end ? 0 : (int)(source_of(s, row).b % 16);
}

/* Adds the products of a pass: of rows `row` .., all steps. */
template <int TYPE, int PLANES, int TOKENS, int ROWS>
FUNC void add_pass(float (*sum)[ROWS], const struct gemv_args &s, const struct run &run,
                   int row, struct cursor *at, struct feed *next,
                   const struct rows_of_a &a, int lane)
{
    int skip[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++)
        skip[r] = before<TYPE>(s, run, row + r);
    LOOP for (int step = 0; step < run.steps; step++)
    {
        const u8 *from[ROWS];
        UNROLL for (int r = 0; r < ROWS; r++)
            from[r] = slot_of<TYPE, ROWS>(run, at->stage, r) + skip[r];
        wait_for(run.arrived + (u32)at->stage * 8, at->phase);
        if (GEMV_IS_FLOAT(TYPE))
            add_floats<TYPE, ROWS>(sum[0], a.first, step, from, s.k, lane);
        else
            add_units<TYPE, PLANES, TOKENS, ROWS>(sum, a, step, from, s.k / BLOCK, lane);
        warp_barrier();
        fetch_on<TYPE, ROWS>(s, run, next, lane);
        advance(at, s.stages);
    }
}

/* The same in floats. */
template <int TYPE, int TOKENS, int ROWS>
FUNC void add_pass_of_floats(float (*sum)[ROWS], const struct gemv_args &s,
                             const struct run &run, int row, const struct meeting *meeting,
                             int lane)
{
    const float scale = s.norm ? meeting->scale : 1.0f;
    UNROLL for (int t = 0; t < TOKENS; t++)
        UNROLL for (int r = 0; r < ROWS; r++)
            if (t < s.tokens && row + r < run.end)
                sum[t][r] = dot_floats<TYPE>(s.a + (u64)(t * s.a_stride), s.a_type,
                                             source_of(s, row + r).b, s.k, s.norm, scale,
                                             lane);
}

/* What is added to the product of a lane's row, where there is one row of a. */
template <int ROWS>
FUNC float residual_of(const struct gemv_args &s, const struct run &run, int row, int lane)
{
    const int own = row + lane / LANES_EACH(1, ROWS);
    return s.residual && own < run.end ? ((GLOBAL const float *)s.residual)[own] : 0.0f;
}

template <int TYPE, int PLANES, int TOKENS, int ROWS>
FUNC void multiply(const struct gemv_args &s, const struct run &run, struct feed next,
                   const struct rows_of_a &a, bool finite, const struct meeting *meeting,
                   int lane)
{
    struct cursor at = { 0, 0 };
    if (!finite)
        drain(s, run, next);
    LOOP for (int row = run.begin; row < run.end; row += run.stride)
    {
        float sum[TOKENS][ROWS] = { { 0.0f } }, all[TOKENS * ROWS];
        const float residual = residual_of<ROWS>(s, run, row, lane);
        if (finite)
            add_pass<TYPE, PLANES, TOKENS, ROWS>(sum, s, run, row, &at, &next, a, lane);
        else
            add_pass_of_floats<TYPE, TOKENS, ROWS>(sum, s, run, row, meeting, lane);
        UNROLL for (int i = 0; i < TOKENS * ROWS; i++) all[i] = sum[i / ROWS][i % ROWS];
        finish<TOKENS, ROWS>(s, run, row, sum_of_lanes<TOKENS * ROWS>(all, lane), residual,
                             lane);
    }
}

/* Some warps load a, while the others fill their rings. */
template <int TYPE, int PLANES>
FUNC void load_a(struct meeting *meeting, u8 *x, const struct gemv_args &s, struct crew crew)
{
    enum { AT_ONCE = GEMV_IS_FLOAT(TYPE) ? 8 : PLANES == ROUNDED ? 4 : 2 };
    bool finite;
    if (s.norm) {
        finite = stage_normed<TYPE, PLANES>(x, s, crew, &meeting->scale);
    } else {
        wait_for_previous();
        finite = stage<TYPE, PLANES, AT_ONCE>(x, s.a, s, crew);
    }
    if (!finite)
        meeting->infinite = 1;
    warp_barrier();
    if (crew.id % 32 == 0)
        arrive(shared_address(&meeting->a_is_there));
}

/* All warps load the rows of a. */
template <int TYPE, int PLANES, int TOKENS>
FUNC bool stage_all(const struct rows_of_a &a, const struct gemv_args &s)
{
    const int count = TOKENS == 1 ? 1 : a.count;
    bool finite = true;
    LOOP for (int t = 0; t < count; t++)
        finite &= stage<TYPE, PLANES, 2>(a.first + t * a.bytes, s.a + (u64)(t * s.a_stride), s,
                                         { local_id(), local_count() });
    return all_threads(finite);
}

/* Groups that share rows of b, and which of them this one is. */
struct sharers {
    int begin, end;
    int group, groups;
};

/* STAGERS: warps that load a, which are the last ones of the group; 0: all do. */
template <int TYPE, int PLANES, int TOKENS, int ROWS, int STAGERS>
FUNC void gemv(const struct gemv_args &s, const struct sharers &of)
{
    extern SHARED struct quad memory[];
    SHARED u64 arrived[GEMV_WARPS][GEMV_STAGES];
    SHARED struct meeting meeting;
    const int lane = local_id() % 32, warp = of_warp(local_id() / 32);
    const int warps = local_count() / 32 - STAGERS;
    const int ring = s.stages * GEMV_STAGE_BYTES(TYPE, ROWS);
    const u32 a_is_there = STAGERS ? shared_address(&meeting.a_is_there) : 0;
    const struct run run = {
        of.begin + (warp * of.groups + of.group) * ROWS,
        of.end,
        warps * of.groups * ROWS,
        (s.k + GEMV_STEP_NUMBERS(TYPE) - 1) / GEMV_STEP_NUMBERS(TYPE),
        (int)((i64)s.k * GEMV_STEP_BYTES(TYPE) / GEMV_STEP_NUMBERS(TYPE)),
        (u8 *)memory + warp * ring,
        shared_address(memory) + (u32)(warp * ring),
        shared_address(arrived) + (u32)(warp * GEMV_STAGES * 8),
    };
    const struct rows_of_a a = { (u8 *)memory + warps * ring, s.tokens,
                                 run.steps * GEMV_A_BYTES(TYPE, PLANES) };
    struct feed next = { run.begin, 0, 0, 0, 0, 0 };

    launch_next();
    if (lane == 0 && warp < warps)
        LOOP for (int i = 0; i < s.stages; i++)
            barrier_init(run.arrived + (u32)i * 8, ARRIVALS(ROWS));
    if (STAGERS && local_id() == 0) {
        barrier_init(a_is_there, STAGERS);
        meeting.infinite = 0;
    }
    barriers_ready();
    if (STAGERS)
        BARRIER();
    else
        warp_barrier();
    if (STAGERS && warp >= warps) {
        load_a<TYPE, PLANES>(&meeting, a.first, s, { local_id() - warps * 32, STAGERS * 32 });
        return;
    }
    if (!s.constant)
        wait_for_previous();
    fill<TYPE, ROWS>(s, run, &next, a_is_there, lane);
    bool finite;
    if (STAGERS) {
        if (ROWS == GEMV_ROWS && warp < AHEAD_WARPS && s.ahead_bytes)
            read_ahead(s.ahead[lane & 1], warp * group_count() + group_id(), s.ahead_bytes,
                       a_is_there, lane);
        wait_for(a_is_there, 0);
        finite = !meeting.infinite;
    } else {
        wait_for_previous();
        finite = stage_all<TYPE, PLANES, TOKENS>(a, s);
    }
    multiply<TYPE, PLANES, TOKENS, ROWS>(s, run, next, a, finite, &meeting, lane);
}

/* Where a decoding step has been measured, 9.0. The hash of the sources counts it. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 900
#define STAGERS GEMV_STAGERS
#else
#define STAGERS 0
#endif

#define GEMV(name, TYPE, PLANES, TOKENS, ROWS, CREW, GROUPS)                               \
    extern "C" __attribute__((global, launch_bounds((GEMV_WARPS + (CREW)) * 32, GROUPS)))  \
    void name(ARGS(const struct gemv_args) s)                                              \
    {                                                                                      \
        gemv<TYPE, PLANES, TOKENS, ROWS, CREW>(s,                                          \
                                               { 0, s.rows, group_id(), group_count() });  \
    }
GEMV(gemv_f32, STORAGE_F32, EXACT, 1, GEMV_ROWS, STAGERS, 1)
GEMV(gemv_f16, STORAGE_F16, EXACT, 1, GEMV_ROWS, STAGERS, 1)
GEMV(gemv_bf16, STORAGE_BF16, EXACT, 1, GEMV_ROWS, STAGERS, 1)
/* Bounds that leave 64 registers a thread, with which all figures were measured. */
#define GEMV_BLOCKS(name, TYPE)                                                            \
    GEMV(gemv_##name, TYPE, EXACT, 1, GEMV_ROWS, STAGERS, STAGERS ? 1 : 2)                 \
    GEMV(gemv_int8_##name, TYPE, ROUNDED, 1, GEMV_ROWS, STAGERS, STAGERS ? 1 : 2)          \
    GEMV(gemv_int8_few_##name, TYPE, ROUNDED, GEMV_TOKENS, GEMV_ROWS, 0, 1)
GEMV_BLOCKS(q8_0, STORAGE_Q8_0)
GEMV_BLOCKS(q4_0, STORAGE_Q4_0)
GEMV_BLOCKS(q4_1, STORAGE_Q4_1)
GEMV_BLOCKS(q5_0, STORAGE_Q5_0)
GEMV_BLOCKS(q5_1, STORAGE_Q5_1)
GEMV_BLOCKS(q4_K, STORAGE_Q4_K)
GEMV_BLOCKS(q5_K, STORAGE_Q5_K)
GEMV_BLOCKS(q6_K, STORAGE_Q6_K)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 900
#define GEMV_TALL(name, TYPE)                                                              \
    GEMV(gemv_tall_##name, TYPE, ROUNDED, 1, GEMV_TALL_ROWS, STAGERS, 1)
GEMV(gemv_tall_f16, STORAGE_F16, EXACT, 1, GEMV_TALL_ROWS, STAGERS, 1)
GEMV(gemv_tall_bf16, STORAGE_BF16, EXACT, 1, GEMV_TALL_ROWS, STAGERS, 1)
GEMV_TALL(q8_0, STORAGE_Q8_0)
GEMV_TALL(q4_0, STORAGE_Q4_0)
GEMV_TALL(q4_1, STORAGE_Q4_1)
GEMV_TALL(q5_0, STORAGE_Q5_0)
GEMV_TALL(q5_1, STORAGE_Q5_1)
GEMV_TALL(q4_K, STORAGE_Q4_K)
GEMV_TALL(q6_K, STORAGE_Q6_K)
/* The first groups have the rows of all parts but the last, which is of q6_K. */
#define GEMV_MIXED(name, TYPE)                                                             \
    extern "C" __attribute__((global, launch_bounds((GEMV_WARPS + STAGERS) * 32, 1))) void \
    gemv_mixed_##name(ARGS(const struct gemv_args) s)                                      \
    {                                                                                      \
        const int rows = s.rows - s.part[s.parts - 1].rows, group = group_id();            \
        if (group < s.groups)                                                              \
            gemv<TYPE, ROUNDED, 1, GEMV_MIXED_ROWS(TYPE), STAGERS>(                        \
                s, { 0, rows, group, s.groups });                                          \
        else                                                                               \
            gemv<STORAGE_Q6_K, ROUNDED, 1, GEMV_ROWS, STAGERS>(                            \
                s, { rows, s.rows, group - s.groups, group_count() - s.groups });          \
    }
GEMV_MIXED(q4_K, STORAGE_Q4_K)
GEMV_MIXED(q5_K, STORAGE_Q5_K)
#endif
