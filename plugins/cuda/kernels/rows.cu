/* SPDX-License-Identifier: MIT */
/* Row ops at the memory's bandwidth: rmsnorm, add_rmsnorm and softmax, a group for each row, which
 * is kept in registers; silu, swiglu, add and mul; argmax and get_rows. All loads and stores are of
 * 16 bytes, one after the other across a warp, but those of get_rows. Arguments and results are
 * those of the portable kernels.
 *
 * A launch may begin early, while the kernel before it ends: in a decoding step these are short.
 * docs/cuda-kernels.md has what they reach on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"
#include "rows.h"

#define F32  STORAGE_F32
#define F16  STORAGE_F16
#define BF16 STORAGE_BF16

/* Numbers of 16 bytes. */
#define WIDTH(type) ((type) == F32 ? 4 : 8)

template <int TYPE> FUNC void unpack(float *v, const struct quad &q)
{
    UNROLL for (int i = 0; i < WIDTH(TYPE); i++) {
        const u32 half = TYPE == F32 ? 0 : q.v[i / 2] >> (i % 2 * 16);
        v[i] = TYPE == F32   ? f32_of_bits(q.v[i % 4])
               : TYPE == F16 ? f32_of_f16((u16)half)
                             : f32_of_bf16((u16)half);
    }
}

template <int TYPE> FUNC float number_at(u64 row, int i)
{
    GLOBAL const u8 *from = (GLOBAL const u8 *)row;
    return TYPE == F32 ? load_f32(from, i) : TYPE == F16 ? load_f16(from, i) : load_bf16(from, i);
}

template <int TYPE> FUNC struct quad pack(const float *v)
{
    struct quad q = { { 0 } };
    UNROLL for (int i = 0; i < WIDTH(TYPE); i++) {
        if (TYPE == F32)
            q.v[i % 4] = bits_of_f32(v[i]);
        else
            q.v[i / 2] |= (u32)(TYPE == F16 ? f16_of_f32(v[i]) : bf16_near(v[i]))
                          << (i % 2 * 16);
    }
    return q;
}

/* ---- what a group does together ---- */

FUNC float warp_most(float v)
{
    UNROLL for (int distance = 16; distance; distance /= 2)
        v = max_f32(f32_of_bits(from_lane(bits_of_f32(v), distance)), v);
    return v;
}

/* The sum or, if MOST, the largest of what all threads have; `scratch` is used for nothing else
 * at the same time. */
template <bool MOST> FUNC float group_of(float v, float *scratch)
{
    const int lane = local_id() % 32, warps = local_count() / 32;
    v = MOST ? warp_most(v) : warp_sum(v);
    if (lane == 0)
        scratch[local_id() / 32] = v;
    BARRIER();
    v = lane < warps ? scratch[lane] : MOST ? NEG_INFINITY : 0.0f;
    return MOST ? warp_most(v) : warp_sum(v);
}

/* ---- a row in registers ---- */

/* A thread has up to ROWS_QUADS pieces of 16 bytes, every group's width, as they are stored: the
 * fewer registers it needs, the more groups load at the same time. */
struct in_registers {
    struct quad q[ROWS_QUADS];
};

#define EACH_QUAD(i, at, cols)                                                             \
    UNROLL for (int i = 0; i < ROWS_QUADS; i++)                                            \
        if (const int at = i * local_count() + local_id(); at < (int)(cols) / WIDTH(TYPE))

template <int TYPE> FUNC void load_row(struct in_registers &r, u64 row, i64 cols)
{
    EACH_QUAD(i, at, cols)
        r.q[i] = load_quad(row + (u64)at * 16);
}

/* ---- rmsnorm ---- */

/* The sum of (unit * x)^2. */
template <int TYPE>
FUNC float squares(const struct in_registers &x, i64 cols, float unit, float *scratch)
{
    float sum = 0.0f;
    EACH_QUAD(i, at, cols)
    {
        float v[WIDTH(TYPE)];
        unpack<TYPE>(v, x.q[i]);
        UNROLL for (int j = 0; j < WIDTH(TYPE); j++)
            sum += unit * v[j] * (unit * v[j]);
    }
    return group_of<false>(sum, scratch);
}

/* What a row's elements are multiplied with. */
template <int TYPE, int WEIGHT> struct weights {
    enum { PARTS = WIDTH(TYPE) / WIDTH(WEIGHT) };
    struct quad q[ROWS_QUADS][PARTS];
};

template <int TYPE, int WEIGHT>
FUNC void load_weights(struct weights<TYPE, WEIGHT> &w, u64 weight, i64 cols)
{
    EACH_QUAD(i, at, cols)
        UNROLL for (int j = 0; j < w.PARTS; j++)
            w.q[i][j] = load_quad(weight + (u64)(at * w.PARTS + j) * 16);
}

/* y = x * weight / sqrt(mean(x^2) + eps). Squares of huge values overflow and those of tiny ones
 * vanish: then the sum is computed again, in another unit. */
template <int TYPE, int WEIGHT>
FUNC void norm_row(u64 y, const struct in_registers &x, const struct weights<TYPE, WEIGHT> &w,
                   bool has_weight, i64 cols, float eps)
{
    SHARED float scratch[2][32];
    float unit = 1.0f, sum = squares<TYPE>(x, cols, unit, scratch[0]);
    if (!(sum < 1e37f) || sum < 1e-30f) {
        unit = sum < 1.0f ? 1.099511627776e12f : 8.271806125530277e-25f;
        sum = squares<TYPE>(x, cols, unit, scratch[1]);
    }
    const float scale = unit / sqrt_f32(sum / (float)cols + eps * unit * unit);
    EACH_QUAD(i, at, cols)
    {
        float v[WIDTH(TYPE)], by[WIDTH(TYPE)];
        unpack<TYPE>(v, x.q[i]);
        if (has_weight)
            UNROLL for (int j = 0; j < w.PARTS; j++)
                unpack<WEIGHT>(by + j * WIDTH(WEIGHT), w.q[i][j]);
        UNROLL for (int j = 0; j < WIDTH(TYPE); j++)
            v[j] = has_weight ? v[j] * scale * by[j] : v[j] * scale;
        store_quad(y + (u64)at * 16, pack<TYPE>(v));
    }
}

/* Weights that no kernel writes are loaded before what precedes has completed. */
template <int TYPE, int WEIGHT>
FUNC void take_turn_with(struct weights<TYPE, WEIGHT> &w, u64 weight, int has_weight, i64 cols)
{
    launch_next();
    if (has_weight == ROWS_CONSTANT)
        load_weights<TYPE, WEIGHT>(w, weight, cols);
    wait_for_previous();
    if (has_weight && has_weight != ROWS_CONSTANT)
        load_weights<TYPE, WEIGHT>(w, weight, cols);
}

template <int TYPE, int WEIGHT>
FUNC void rmsnorm(u64 y, u64 x, u64 weight, const struct rmsnorm_args &a)
{
    const struct index at = index_of(group_id(), a.n1, a.n2);
    struct in_registers r;
    struct weights<TYPE, WEIGHT> w;
    take_turn_with(w, weight + (u64)a.weight_offset, a.has_weight, a.cols);
    load_row<TYPE>(r, x + (u64)row_at(a.x, at), a.cols);
    norm_row(y + (u64)row_at(a.y, at), r, w, a.has_weight, a.cols, a.eps);
}

template <int TYPE, int WEIGHT>
FUNC void add_rmsnorm(u64 y, u64 residual, u64 x, u64 weight, const struct add_rmsnorm_args &a)
{
    const struct index at = index_of(group_id(), a.n1, a.n2);
    struct in_registers r, more;
    struct weights<TYPE, WEIGHT> w;
    take_turn_with(w, weight + (u64)a.weight_offset, a.has_weight, a.cols);
    residual += (u64)row_at(a.residual, at);
    load_row<TYPE>(r, residual, a.cols);
    load_row<TYPE>(more, x + (u64)row_at(a.x, at), a.cols);
    EACH_QUAD(i, place, a.cols)
    {
        float v[WIDTH(TYPE)], added[WIDTH(TYPE)];
        unpack<TYPE>(v, r.q[i]);
        unpack<TYPE>(added, more.q[i]);
        UNROLL for (int j = 0; j < WIDTH(TYPE); j++)
            v[j] += added[j];
        r.q[i] = pack<TYPE>(v); /* the norm is that of what is stored */
        store_quad(residual + (u64)place * 16, r.q[i]);
    }
    norm_row(y + (u64)row_at(a.y, at), r, w, a.has_weight, a.cols, a.eps);
}

#define NORMS(act, wgt, ACT, WGT)                                                          \
    KERNEL(rows_rmsnorm_##act##_##wgt)                                                     \
    (u64 y, u64 x, u64 weight, ARGS(struct rmsnorm_args) a)                                \
    {                                                                                      \
        rmsnorm<ACT, WGT>(y, x, weight, a);                                                \
    }                                                                                      \
    KERNEL(rows_add_rmsnorm_##act##_##wgt)                                                 \
    (u64 y, u64 residual, u64 x, u64 weight, ARGS(struct add_rmsnorm_args) a)              \
    {                                                                                      \
        add_rmsnorm<ACT, WGT>(y, residual, x, weight, a);                                  \
    }
NORMS(f32, f32, F32, F32)
NORMS(f16, f16, F16, F16)
NORMS(f16, f32, F16, F32)
NORMS(bf16, bf16, BF16, BF16)
NORMS(bf16, f32, BF16, F32)

/* ---- softmax, without a mask ---- */

/* e^(scale x - top) of a piece. What is stored in 16 bits needs less. */
template <int TYPE>
FUNC void exps_of(float *v, const struct quad &x, float scale, float top)
{
    unpack<TYPE>(v, x);
    UNROLL for (int j = 0; j < WIDTH(TYPE); j++)
        v[j] = TYPE == F32 ? exp_f32(v[j] * scale - top) : exp_near(v[j] * scale - top);
}

template <int TYPE> FUNC void softmax(u64 y, u64 x, const struct softmax_args &a)
{
    SHARED float scratch[2][32];
    const struct index row = index_of(group_id(), a.n1, a.n2);
    struct in_registers t;
    float v[WIDTH(TYPE)], top = NEG_INFINITY, sum = 0.0f;
    launch_next();
    wait_for_previous();
    load_row<TYPE>(t, x + (u64)row_at(a.x, row), a.cols);
    EACH_QUAD(i, at, a.cols)
    {
        unpack<TYPE>(v, t.q[i]);
        UNROLL for (int j = 0; j < WIDTH(TYPE); j++)
            top = max_f32(v[j] * a.scale, top);
    }
    top = group_of<true>(top, scratch[0]);
    /* -inf - -inf would be NaN; with 0 every exp is 0, as required. */
    top = top == NEG_INFINITY ? 0.0f : top;
    EACH_QUAD(i, at, a.cols)
    {
        exps_of<TYPE>(v, t.q[i], a.scale, top);
        UNROLL for (int j = 0; j < WIDTH(TYPE); j++)
            sum += v[j];
        if (TYPE == F32)
            t.q[i] = pack<TYPE>(v);
    }
    sum = group_of<false>(sum, scratch[1]);
    const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
    y += (u64)row_at(a.y, row);
    EACH_QUAD(i, at, a.cols)
    {
        if (TYPE == F32)
            unpack<TYPE>(v, t.q[i]);
        else /* again: 16 bits do not keep them, and in f32 they need twice the registers */
            exps_of<TYPE>(v, t.q[i], a.scale, top);
        UNROLL for (int j = 0; j < WIDTH(TYPE); j++)
            v[j] *= scale;
        store_quad(y + (u64)at * 16, pack<TYPE>(v));
    }
}

#define SOFTMAX(act, ACT)                                                                  \
    KERNEL(rows_softmax_##act)                                                             \
    (u64 y, u64 x, u64 mask, u64 slopes, u64 sinks, ARGS(struct softmax_args) a)           \
    {                                                                                      \
        softmax<ACT>(y, x, a);                                                             \
    }
SOFTMAX(f32, F32)
SOFTMAX(f16, F16)
SOFTMAX(bf16, BF16)

/* ---- elementwise ---- */

template <int TYPE> FUNC float silu_of(float v)
{
    return TYPE == F32 ? v / (1.0f + exp_f32(-v)) : divide_near(v, 1.0f + exp_near(-v));
}

struct silu_op {
    template <int TYPE> FUNC_IN float of(float a, float b)
    {
        (void)b;
        return silu_of<TYPE>(a);
    }
};
struct swiglu_op {
    template <int TYPE> FUNC_IN float of(float a, float b)
    {
        return silu_of<TYPE>(a) * b;
    }
};
struct add_op {
    template <int TYPE> FUNC_IN float of(float a, float b)
    {
        return a + b;
    }
};
struct mul_op {
    template <int TYPE> FUNC_IN float of(float a, float b)
    {
        return a * b;
    }
};

/* y = OP(a, b): one group per ROWS_SPAN pieces of 16 bytes of a row. */
template <class OP, int TYPE, bool TWO>
FUNC void elementwise(u64 y, u64 a, u64 b, const struct place &py, const struct place &pa,
                      const struct place &pb, i64 n1, i64 n2, i64 cols)
{
    const int quads = (int)(cols / WIDTH(TYPE)), spans = (quads + ROWS_SPAN - 1) / ROWS_SPAN;
    const struct index row = index_of(group_id() / spans, n1, n2);
    const int at = group_id() % spans * ROWS_SPAN + local_id();
    float v[WIDTH(TYPE)], w[WIDTH(TYPE)];
    launch_next();
    wait_for_previous();
    if (at >= quads)
        return;
    const struct quad first = load_quad(a + (u64)row_at(pa, row) + (u64)at * 16);
    if (TWO)
        unpack<TYPE>(w, load_quad(b + (u64)row_at(pb, row) + (u64)at * 16));
    unpack<TYPE>(v, first);
    UNROLL for (int i = 0; i < WIDTH(TYPE); i++)
        v[i] = OP::template of<TYPE>(v[i], TWO ? w[i] : 0.0f);
    store_quad(y + (u64)row_at(py, row) + (u64)at * 16, pack<TYPE>(v));
}

#define ELEMENTWISE(act, ACT)                                                              \
    KERNEL(rows_silu_##act)(u64 y, u64 x, ARGS(struct silu_args) s)                        \
    {                                                                                      \
        elementwise<silu_op, ACT, false>(y, x, x, s.y, s.x, s.x, s.n1, s.n2, s.cols);      \
    }                                                                                      \
    KERNEL(rows_swiglu_##act)(u64 y, u64 gate, u64 up, ARGS(struct swiglu_args) s)         \
    {                                                                                      \
        elementwise<swiglu_op, ACT, true>(y, gate, up, s.y, s.gate, s.up, s.n1, s.n2,      \
                                          s.cols);                                         \
    }                                                                                      \
    KERNEL(rows_add_##act)(u64 y, u64 a, u64 b, ARGS(struct binary_args) s)                \
    {                                                                                      \
        elementwise<add_op, ACT, true>(y, a, b, s.y, s.a, s.b, s.n1, s.n2, s.cols);        \
    }                                                                                      \
    KERNEL(rows_mul_##act)(u64 y, u64 a, u64 b, ARGS(struct binary_args) s)                \
    {                                                                                      \
        elementwise<mul_op, ACT, true>(y, a, b, s.y, s.a, s.b, s.n1, s.n2, s.cols);        \
    }
ELEMENTWISE(f32, F32)
ELEMENTWISE(f16, F16)
ELEMENTWISE(bf16, BF16)

/* ---- argmax: ROWS_SHARES groups, a cluster, for each row ---- */

/* What orders elements as argmax does: the larger key, and of equals the first index. */
FUNC u64 rank_of(float v, int index)
{
    return (u64)((u32)order_of(v) ^ 0x80000000u) << 32 | (u32)~index;
}

FUNC u64 max_u64(u64 a, u64 b)
{
    return a > b ? a : b;
}

FUNC u64 warp_most(u64 v)
{
    UNROLL for (int distance = 16; distance; distance /= 2) {
        const u32 low = from_lane((u32)v, distance), high = from_lane((u32)(v >> 32), distance);
        v = max_u64(v, (u64)high << 32 | low);
    }
    return v;
}

/* Writes to the shared memory of the first group of the cluster. */
FUNC void send(u64 *to, u64 v)
{
    asm volatile("{ .reg .u32 at; mapa.shared::cluster.u32 at, %0, 0; "
                 "st.shared::cluster.u64 [at], %1; }" ::"r"(shared_address(to)),
                 "l"(v)
                 : "memory");
}

FUNC void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* The best of the pieces of 16 bytes that a thread has: every `all`-th from `first` on. */
template <int TYPE> FUNC u64 best_of_pieces(u64 row, int first, int all, int quads)
{
    enum { AT_ONCE = 4 };
    u64 best = 0;
    LOOP for (int at = first; at < quads; at += AT_ONCE * all)
    {
        struct quad raw[AT_ONCE];
        UNROLL for (int i = 0; i < AT_ONCE; i++)
            if (at + i * all < quads)
                raw[i] = load_quad(row + (u64)(at + i * all) * 16);
        UNROLL for (int i = 0; i < AT_ONCE; i++) {
            float v[WIDTH(TYPE)];
            unpack<TYPE>(v, raw[i]);
            UNROLL for (int j = 0; j < WIDTH(TYPE); j++)
                if (at + i * all < quads)
                    best = max_u64(best, rank_of(v[j], (at + i * all) * WIDTH(TYPE) + j));
        }
    }
    return best;
}

template <int TYPE> FUNC void argmax(u64 y, u64 x, const struct argmax_args &a)
{
    SHARED u64 warps[32], shares[ROWS_SHARES];
    const int share = group_id() % ROWS_SHARES, cols = (int)a.cols;
    const int all = ROWS_SHARES * local_count(), me = share * local_count() + local_id();
    const int quads = cols / WIDTH(TYPE), rest = quads * WIDTH(TYPE) + me;
    const struct index at = index_of(group_id() / ROWS_SHARES, a.n1, a.n2);
    const u64 row = x + (u64)row_at(a.x, at);
    cluster_barrier(); /* nothing may be sent to a group that has not begun */
    take_turn();
    u64 best = best_of_pieces<TYPE>(row, me, all, quads);
    if (rest < cols)
        best = max_u64(best, rank_of(number_at<TYPE>(row, rest), rest));
    best = warp_most(best);
    if (local_id() % 32 == 0)
        warps[local_id() / 32] = best;
    BARRIER();
    best = warp_most(local_id() % 32 < local_count() / 32 ? warps[local_id() % 32] : 0);
    if (local_id() == 0)
        send(&shares[share], best);
    cluster_barrier();
    if (share > 0 || local_id() > 0)
        return;
    UNROLL for (int i = 0; i < ROWS_SHARES; i++)
        best = max_u64(best, shares[i]);
    *(int *)(y + (u64)row_at(a.y, at)) = (int)~(u32)best;
}

#define ARGMAX(act, ACT)                                                                   \
    extern "C" __attribute__((global, cluster_dims(ROWS_SHARES))) void rows_argmax_##act(  \
        u64 y, u64 x, ARGS(struct argmax_args) a)                                          \
    {                                                                                      \
        argmax<ACT>(y, x, a);                                                              \
    }
ARGMAX(f32, F32)
ARGMAX(f16, F16)
ARGMAX(bf16, BF16)

/* ---- get_rows: a group for ROWS_SPAN pieces of four elements of a row ---- */

KERNEL(rows_get_rows)(u64 y, u64 table, u64 rows, ARGS(struct rows_args) a)
{
    enum { FOUR = 4 };
    const int fours = (int)(a.cols / FOUR), spans = (fours + ROWS_SPAN - 1) / ROWS_SPAN;
    const struct index at = index_of(group_id() / spans, a.batch1, a.count);
    const int first = (group_id() % spans * ROWS_SPAN + local_id()) * FOUR;
    float v[FOUR] = { 0.0f };
    take_turn();
    if (first >= a.cols)
        return;
    const i64 row = row_number((GLOBAL const u8 *)rows, a, at);
    if (row >= 0 && row < a.table_rows) {
        struct index in = at;
        in.i2 = row;
        load_few(v, (GLOBAL const u8 *)table + repeated_row_at(a.from, a.from_extents, in),
                 a.from_type, first, FOUR);
    }
    store_piece((GLOBAL u8 *)y + row_at(a.to, at), a.to_type, first, v, FOUR);
}
