/* SPDX-License-Identifier: MIT */
/* y = softmax(scale q k^T, masked) . v for many queries: prefill. It aims at the matrix units of
 * compute capability 9.0 (wgmma), which multiply f16 or bf16 and add in f32.
 *
 * A group computes PREFILL_ROWS rows: queries of one head, or of several that read the same head of
 * k and v. One thread of its first warpgroup keeps two tiles of k and two of v on their way to
 * shared memory (TMA). Each of the other warpgroups has 64 rows: it multiplies the exponentials of
 * a tile, which stay in registers, by v while it turns the scores with the next tile into
 * exponentials. The matrix units read v from where it lies, columns first.
 *
 * Tiles come from the last one to the first, because the last ones are masked. Exponentials are
 * rounded to 16 bits. Numbers in a tile of v count in all rows of a group, if only as zero times
 * themselves: where they are not finite, so may be rows that do not see them.
 *
 * docs/cuda-kernels.md has what it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"

#include "pairs.h"

#include "wgmma.h"

#include "attention.h"
#include "attention_prefill.h"

/* ---- the machine: shared memory has addresses of 32 bits ---- */

FUNC int group_in(int axis)
{
    int i;
    if (axis == 0)
        asm("mov.u32 %0, %%ctaid.x;" : "=r"(i));
    else if (axis == 1)
        asm("mov.u32 %0, %%ctaid.y;" : "=r"(i));
    else
        asm("mov.u32 %0, %%ctaid.z;" : "=r"(i));
    return i;
}

FUNC float exp2_f32(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

FUNC float larger(float a, float b)
{
    float c;
    asm("max.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

/* A barrier of the two warpgroups that compute. */
FUNC void computing_barrier()
{
    asm volatile("bar.sync 1, 256;" ::: "memory");
}

/* Begins to copy a box to shared memory; its bytes count for `barrier`. */
FUNC void box_load(u32 to, const struct tensor_map *map, int number, int head, int token,
                   int batch, u32 barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
        "l"(map), "r"(number), "r"(head), "r"(token), "r"(batch), "r"(barrier)
        : "memory");
}

/* ---- the matrix units ---- */

#define S4(how, i)  how(c[i]), how(c[i + 1]), how(c[i + 2]), how(c[i + 3])
#define S16(how, i) S4(how, i), S4(how, i + 4), S4(how, i + 8), S4(how, i + 12)
#define S64(how)    S16(how, 0), S16(how, 16), S16(how, 32), S16(how, 48)
#define SET(c)      "=f"(c)
#define ADD(c)      "+f"(c)

/* Products of 64 rows: scores with PREFILL_KEYS keys from 16 numbers of heads, where the first sets
 * and the others add; values of heads of 64 or 128 from 16 keys, with the exponentials p. */
template <int TYPE> struct matrix_unit;

#define MATRIX_UNIT(TYPE, type)                                                            \
    template <> struct matrix_unit<STORAGE_##TYPE> {                                       \
        FUNC void first(float *c, u64 q, u64 k)                                            \
        {                                                                                  \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 0;\n"                          \
                         "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type      \
                         " {" R0 "," R1 "," R2 "," R3 "}, %64, %65, p, 1, 1, 0, 0; }"      \
                         : S64(SET)                                                        \
                         : "l"(q), "l"(k));                                                \
        }                                                                                  \
        FUNC void next(float *c, u64 q, u64 k)                                             \
        {                                                                                  \
            asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type      \
                         " {" R0 "," R1 "," R2 "," R3 "}, %64, %65, 1, 1, 1, 0, 0;"        \
                         : S64(ADD)                                                        \
                         : "l"(q), "l"(k));                                                \
        }                                                                                  \
        FUNC void weigh_128(float *c, const u32 *p, u64 v)                                 \
        {                                                                                  \
            asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type      \
                         " {" R0 "," R1 "," R2 "," R3 "}, {%64,%65,%66,%67}, %68,"         \
                         " 1, 1, 1, 1;"                                                    \
                         : S64(ADD)                                                        \
                         : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v));            \
        }                                                                                  \
        FUNC void weigh_64(float *c, const u32 *p, u64 v)                                  \
        {                                                                                  \
            asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type       \
                         " {" R0 "," R1 "}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"           \
                         : S16(ADD, 0), S16(ADD, 16)                                       \
                         : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v));            \
        }                                                                                  \
    };
MATRIX_UNIT(F16, "f16")
MATRIX_UNIT(BF16, "bf16")

/* How the matrix units find a factor in shared memory, in panels with rows of 128 bytes, swizzled:
 * eight rows are 1024 bytes. For v, whose columns are rows here, `panel` is the distance of
 * panels. */
FUNC u64 descriptor_of(u32 address, u32 panel)
{
    return (u64)((address & 0x3ffff) >> 4) | (u64)(panel >> 4) << 16 | (u64)64 << 32 |
           (u64)1 << 62;
}

/* ---- rows and keys ---- */

/* What a group computes, and where it is in shared memory. */
struct work {
    int batch, head, kv_head, query, length; /* of the first row */
    int first, tiles;                        /* the first key; tiles of keys */
    struct span all;                         /* the keys that all rows see */
    u32 q, k, v, barriers;
};

/* Which barrier: q has arrived; a tile of k or v has arrived, or is not needed any more. */
enum {
    Q_HERE,
    K_HERE,
    K_FREE = K_HERE + PREFILL_STAGES,
    V_HERE = K_FREE + PREFILL_STAGES,
    V_FREE = V_HERE + PREFILL_STAGES,
    BARRIERS = V_FREE + PREFILL_STAGES
};

FUNC u32 barrier_of(const struct work &w, int which, int stage)
{
    return w.barriers + (which + stage) * 8;
}

/* Groups: heads, runs of queries (the last ones first, because causal ones take longest), batches. */
template <int DIM> FUNC struct work work_of(const struct prefill_args &s, u32 shared)
{
    const int packs = s.heads_each / s.pack, each = PREFILL_ROWS / s.pack;
    const int runs = ((int)s.a.queries + each - 1) / each;
    struct work w;
    w.batch = group_in(2);
    w.kv_head = group_in(0) / packs;
    w.head = w.kv_head * s.heads_each + group_in(0) % packs * s.pack;
    w.query = (runs - 1 - group_in(1)) * each;
    w.length = length_of(s.a, s.lengths, w.batch);
    const int last = w.query + each < s.a.queries ? w.query + each - 1
                                                  : (int)s.a.queries - 1;
    const struct span of_first = seen_by(s.a, w.length, w.query),
                      of_last = seen_by(s.a, w.length, last);
    w.all.first = of_last.first;
    w.all.end = of_first.end;
    w.first = of_first.first;
    w.tiles = of_last.end > w.first
                  ? (of_last.end - w.first + PREFILL_KEYS - 1) / PREFILL_KEYS
                  : 0;
    w.q = (shared + 1023) / 1024 * 1024;
    w.k = w.q + PREFILL_TILE(DIM);
    w.v = w.k + PREFILL_STAGES * PREFILL_TILE(DIM);
    w.barriers = w.v + PREFILL_STAGES * PREFILL_TILE(DIM);
    return w;
}

/* ---- the warpgroup that loads ---- */

template <int DIM>
FUNC void load_tile(u32 to, const struct tensor_map *map, int head, int token, int batch,
                    u32 barrier)
{
    expect_bytes(barrier, PREFILL_TILE(DIM));
    UNROLL for (int panel = 0; panel < DIM / 64; panel++)
        box_load(to + panel * PREFILL_PANEL, map, panel * 64, head, token, batch, barrier);
}

/* Where a ring is: a stage, and how often it went round, modulo 2. */
struct cursor {
    int stage, phase;
};

FUNC void advance(struct cursor &at)
{
    if (++at.stage == PREFILL_STAGES) {
        at.stage = 0;
        at.phase ^= 1;
    }
}

template <int DIM> FUNC void load_all(const struct prefill_args &s, const struct work &w)
{
    struct cursor at = { 0, 1 };
    load_tile<DIM>(w.q, &s.q, w.head, w.query, w.batch, barrier_of(w, Q_HERE, 0));
    for (int i = w.tiles - 1; i >= 0; i--, advance(at)) {
        const int key = w.first + i * PREFILL_KEYS, in = at.stage * PREFILL_TILE(DIM);
        wait_for(barrier_of(w, K_FREE, at.stage), at.phase);
        load_tile<DIM>(w.k + in, &s.k, w.kv_head, key, w.batch,
                       barrier_of(w, K_HERE, at.stage));
        wait_for(barrier_of(w, V_FREE, at.stage), at.phase);
        load_tile<DIM>(w.v + in, &s.v, w.kv_head, key, w.batch,
                       barrier_of(w, V_HERE, at.stage));
    }
}

/* ---- the warpgroups that compute ---- */

/* What a thread keeps of its two rows, eight apart: what they see, the largest product so far, its
 * own part of the sum of exponentials relative to that, and of each eight values, two. */
template <int DIM> struct kept {
    struct span seen[2];
    float top[2], sum[2], y[DIM / 2];
};

/* score = q k^T of a tile. */
template <int TYPE, int DIM>
FUNC void multiply(float *score, const struct work &w, int stage, int warpgroup)
{
    const u64 q = descriptor_of(w.q + warpgroup * 64 * 128, 16);
    const u64 k = descriptor_of(w.k + stage * PREFILL_TILE(DIM), 16);
    matrix_unit<TYPE>::first(score, q, k);
    UNROLL for (int i = 1; i < DIM / 16; i++)
    {
        const int in = i / 4 * (PREFILL_PANEL >> 4) + i % 4 * 2;
        matrix_unit<TYPE>::next(score, q + in, k + in);
    }
}

/* y += p . v of a tile. */
template <int TYPE, int DIM>
FUNC void weigh(float *y, const u32 (*p)[4], const struct work &w, int stage)
{
    const u64 v = descriptor_of(w.v + stage * PREFILL_TILE(DIM), PREFILL_PANEL);
    UNROLL for (int i = 0; i < PREFILL_KEYS / 16; i++)
    {
        if (DIM == 128)
            matrix_unit<TYPE>::weigh_128(y, p[i], v + i * (16 * 128 >> 4));
        else
            matrix_unit<TYPE>::weigh_64(y, p[i], v + i * (16 * 128 >> 4));
    }
}

/* Turns products into exponentials, and returns the factors of what is kept; MASKED: not all rows
 * see all keys. It only reads the products: as long as others are computed, writing them would make
 * the compiler wait. */
template <bool MASKED, int DIM>
FUNC void exponentials(float *to, const float *score, struct kept<DIM> &my, float *shrink,
                       int key, float scale)
{
    const int first = key + local_id() % 4 * 2;
    UNROLL for (int i = 0; i < 64; i++)
    {
        const int at = first + i / 4 * 8 + i % 2, r = i / 2 % 2;
        const bool sees = !MASKED || (at >= my.seen[r].first && at < my.seen[r].end);
        to[i] = sees ? score[i] : NEG_INFINITY;
    }
    UNROLL for (int r = 0; r < 2; r++)
    {
        float top = my.top[r];
        UNROLL for (int i = r * 2; i < 64; i += 4)
            top = larger(larger(to[i], to[i + 1]), top);
        top = larger(from_lane(top, 1), top);
        top = larger(from_lane(top, 2), top);
        const float from = top == NEG_INFINITY ? 0.0f : top * scale;
        shrink[r] = exp2_f32(my.top[r] * scale - from);
        my.top[r] = top;
        my.sum[r] *= shrink[r];
        UNROLL for (int i = r * 2; i < 64; i += 4)
        {
            to[i] = exp2_f32(to[i] * scale - from);
            to[i + 1] = exp2_f32(to[i + 1] * scale - from);
            my.sum[r] += to[i] + to[i + 1];
        }
    }
}

template <int TYPE> FUNC void round_all(u32 (*p)[4], const float *exponential)
{
    UNROLL for (int i = 0; i < 32; i++)
        p[i / 4][i % 4] = pair_of<TYPE>(exponential[i * 2], exponential[i * 2 + 1]);
}

/* Keys behind the last one may be anything: zeros, before they are multiplied by zero. Rows of
 * panels are keys. */
template <int DIM> FUNC void clear_behind(const struct work &w)
{
    const int here = w.length - (w.first + (w.tiles - 1) * PREFILL_KEYS);
    const int thread = local_id() - 128;
    if (here >= PREFILL_KEYS)
        return;
    for (int row = here; row < PREFILL_KEYS; row++)
        if (thread < DIM / 2)
            asm volatile("st.shared.u32 [%0], 0;" ::"r"(w.v + thread / 32 * PREFILL_PANEL +
                                                        row * 128 + thread % 32 * 4)
                         : "memory");
    fence_async();
    computing_barrier();
}

template <int TYPE, int DIM>
FUNC void compute_tiles(struct kept<DIM> &my, const struct work &w, float scale)
{
    const int warpgroup = local_id() / 128 - 1;
    const bool speaks = local_id() % 128 == 0;
    u32 p[PREFILL_KEYS / 16][4];
    float shrink[2];
    struct cursor at = { 0, 0 };

    wait_for(barrier_of(w, Q_HERE, 0), 0);
    {
        float score[64], exponential[64];
        wait_for(barrier_of(w, K_HERE, 0), 0);
        products_begin();
        multiply<TYPE, DIM>(score, w, 0, warpgroup);
        products_commit();
        products_wait<0>();
        if (speaks)
            arrive(barrier_of(w, K_FREE, 0));
        exponentials<true>(exponential, score, my, shrink,
                           w.first + (w.tiles - 1) * PREFILL_KEYS, scale);
        round_all<TYPE>(p, exponential);
        wait_for(barrier_of(w, V_HERE, 0), 0);
        clear_behind<DIM>(w);
    }
    LOOP for (int i = w.tiles - 2; i >= 0; i--)
    {
        const int key = w.first + i * PREFILL_KEYS;
        struct cursor next = at;
        float score[64], exponential[64];
        advance(next);
        wait_for(barrier_of(w, K_HERE, next.stage), next.phase);
        products_begin();
        multiply<TYPE, DIM>(score, w, next.stage, warpgroup);
        products_commit();
        wait_for(barrier_of(w, V_HERE, at.stage), at.phase);
        products_begin();
        weigh<TYPE, DIM>(my.y, p, w, at.stage);
        products_commit();
        products_wait<1>();
        if (speaks)
            arrive(barrier_of(w, K_FREE, next.stage));
        if (key >= w.all.first && key + PREFILL_KEYS <= w.all.end)
            exponentials<false>(exponential, score, my, shrink, key, scale);
        else
            exponentials<true>(exponential, score, my, shrink, key, scale);
        products_wait<0>();
        if (speaks)
            arrive(barrier_of(w, V_FREE, at.stage));
        UNROLL for (int n = 0; n < DIM / 2; n++) my.y[n] *= shrink[n / 2 % 2];
        round_all<TYPE>(p, exponential);
        at = next;
    }
    wait_for(barrier_of(w, V_HERE, at.stage), at.phase);
    products_begin();
    weigh<TYPE, DIM>(my.y, p, w, at.stage);
    products_commit();
    products_wait<0>();
}

/* The query and the head of a thread's row. */
struct row {
    int query, head;
};

FUNC struct row row_of(const struct prefill_args &s, const struct work &w, int r)
{
    const int thread = local_id() - 128;
    const int number = thread / 32 * 16 + thread % 32 / 4 + r * 8;
    return { w.query + number / s.pack, w.head + number % s.pack };
}

/* Two neighbours of y. */
FUNC void store_two(GLOBAL u8 *y, int type, int d, float a, float b)
{
    if (type == STORAGE_F32)
        asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(y + d * 4), "f"(a), "f"(b)
                     : "memory");
    else
        *(GLOBAL u32 *)(y + d * 2) = type == STORAGE_F16 ? pair_of<STORAGE_F16>(a, b)
                                                         : pair_of<STORAGE_BF16>(a, b);
}

/* The factor of a row's values: a sink is one more score, which has no value. */
FUNC float factor_of(float top, float sum, float sink)
{
    const float all = larger(top, sink);
    if (all == NEG_INFINITY)
        return sum == 0.0f ? 0.0f : 1.0f / sum;
    const float own = exp2_f32((top - all) * LOG2_E);
    sum = sum * own + (sink == NEG_INFINITY ? 0.0f : exp2_f32((sink - all) * LOG2_E));
    return sum == 0.0f ? 0.0f : own / sum;
}

template <int DIM>
FUNC void store_all(struct kept<DIM> &my, const struct prefill_args &s,
                    const struct work &w)
{
    UNROLL for (int r = 0; r < 2; r++)
    {
        const struct row row = row_of(s, w, r);
        float sum = my.sum[r], sink = NEG_INFINITY;
        sum += from_lane(sum, 1);
        sum += from_lane(sum, 2);
        if (row.query >= s.a.queries)
            continue;
        if (s.a.has_sinks)
            sink = ((GLOBAL const float *)s.sinks)[row.head];
        const float factor = factor_of(my.top[r] * s.a.scale, sum, sink);
        GLOBAL u8 *y = (GLOBAL u8 *)s.y + w.batch * s.a.y.stride[0] +
                       row.query * s.a.y.stride[1] + row.head * s.a.y.stride[2];
        UNROLL for (int i = 0; i < DIM / 8; i++)
        {
            const float *v = my.y + i * 4 + r * 2;
            store_two(y, s.a.y_type, i * 8 + local_id() % 4 * 2, v[0] * factor,
                      v[1] * factor);
        }
    }
}

template <int TYPE, int DIM>
FUNC void compute(const struct prefill_args &s, const struct work &w)
{
    const float scale = s.a.scale * LOG2_E;
    struct kept<DIM> my;
    UNROLL for (int r = 0; r < 2; r++)
    {
        my.seen[r] = seen_by(s.a, w.length, row_of(s, w, r).query);
        my.top[r] = NEG_INFINITY;
        my.sum[r] = 0.0f;
    }
    UNROLL for (int i = 0; i < DIM / 2; i++) my.y[i] = 0.0f;
    if (w.tiles)
        compute_tiles<TYPE>(my, w, scale);
    store_all(my, s, w);
}

FUNC void create_barriers(const struct work &w)
{
    if (local_id() == 0) {
        barrier_init(barrier_of(w, Q_HERE, 0), 1);
        for (int i = 0; i < PREFILL_STAGES; i++) {
            barrier_init(barrier_of(w, K_HERE, i), 1);
            barrier_init(barrier_of(w, K_FREE, i), 2);
            barrier_init(barrier_of(w, V_HERE, i), 1);
            barrier_init(barrier_of(w, V_FREE, i), 2);
        }
        barriers_ready();
    }
    BARRIER();
}

/* ---- the kernels ---- */

#define BY_VALUE const __attribute__((grid_constant)) /* has an address, for the copies */
#define PREFILL(name, TYPE, DIM)                                                           \
    extern "C" __attribute__((global)) void                                                \
        __attribute__((launch_bounds(PREFILL_THREADS, 1)))                                 \
        name(BY_VALUE struct prefill_args s)                                               \
    {                                                                                      \
        extern SHARED u8 memory[];                                                         \
        take_turn();                                                                       \
        const struct work w = work_of<DIM>(s, shared_address(memory));                     \
        create_barriers(w);                                                                \
        if (local_id() < 128) {                                                            \
            asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");                           \
            if (local_id() == 0)                                                           \
                load_all<DIM>(s, w);                                                       \
        } else {                                                                           \
            asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");                          \
            compute<STORAGE_##TYPE, DIM>(s, w);                                            \
        }                                                                                  \
    }
/* q in f16, times the scale; then that of the scores is 1. A work-item: four numbers. */
KERNEL(prefill_round)(ARGS(struct prefill_round_args) s)
{
    const i64 n = ((i64)group_in(0) * PREFILL_ROUND + local_id()) * 4;
    const struct index at = index_of((int)(n / s.dim), s.queries, s.heads);
    if (n >= s.count)
        return;
    take_turn();
    float v[4];
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(s.q + row_at(s.place, at) + n % s.dim * 4));
    ((GLOBAL u32 *)s.to)[n / 2] = pair_of<STORAGE_F16>(v[0] * s.scale, v[1] * s.scale);
    ((GLOBAL u32 *)s.to)[n / 2 + 1] = pair_of<STORAGE_F16>(v[2] * s.scale, v[3] * s.scale);
}

PREFILL(prefill_f16_64, F16, 64)
PREFILL(prefill_f16_128, F16, 128)
PREFILL(prefill_bf16_64, BF16, 64)
PREFILL(prefill_bf16_128, BF16, 128)
