/* SPDX-License-Identifier: MIT */
/* hw/ops.h - THE OP TABLE: what there is to compute.
 *
 * HW_OPS lists every op once; HW_OPERANDS_<OP> lists its tensors. The enum, the names, the
 * plugin's table, staging, fallback, graphs, conformance and the support table all come from
 * these two. Each op has one documented struct and one typed wrapper below; bindings may as
 * well call hw_submit(), which the wrappers call.
 *
 * For all ops:
 * - Row-major, extents outermost first, any outer strides. Any innermost stride too: an operand
 *   whose innermost extent is not contiguous is copied first, and counted.
 * - Arithmetic accumulates in f32, whatever the storage.
 * - "float" below is any of f32, f16, bf16. Operands that share a letter T have one dtype.
 * - Extents of zero are legal: an empty output is nothing to do, an empty sum is zero.
 * - Outputs overlap no other operand, except where "in place" is written: then the same
 *   address with the same layout.
 * - Operands are tensors of the queue's device or of the host. Host memory is borrowed until
 *   the queue has passed the op: see hw_queue_wait(). A buffer of another device is HW_INVALID.
 * - The struct and the tensors in it are read before the call returns.
 * - A zero in an optional scalar means the default that its field documents.
 *
 * All wrappers answer: HW_OK, the work is done or queued. HW_INVALID: shapes, dtypes, overlap,
 * a buffer of another device; hw_message() names the field; nothing was touched.
 * HW_UNSUPPORTED: no device that the queue may use computes this; the message names op, dtypes
 * and device; nothing was touched. HW_NO_MEMORY, HW_DRIVER, HW_LOST: from the device; the
 * output's contents are undefined. HW_FORKED: the process forked since the queue was opened.
 * One thread at a time for one queue. */
#ifndef HW_OPS_H
#define HW_OPS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, name): append only, the order is ABI. */
#define HW_OPS(X)                                                                          \
    X(MATMUL, matmul)                                                                      \
    X(RMSNORM, rmsnorm)                                                                    \
    X(SOFTMAX, softmax)                                                                    \
    X(SILU, silu)                                                                          \
    X(ROPE, rope)                                                                          \
    X(ATTENTION, attention)                                                                \
    X(ADD, add)                                                                            \
    X(MUL, mul)                                                                            \
    X(SWIGLU, swiglu)                                                                      \
    X(ADD_RMSNORM, add_rmsnorm)                                                            \
    X(GET_ROWS, get_rows)                                                                  \
    X(SET_ROWS, set_rows)                                                                  \
    X(COPY, copy)                                                                          \
    X(ARGMAX, argmax)

enum hw_op {
#define X(NAME, name) HW_OP_##NAME,
    HW_OPS(X)
#undef X
        HW_OP_COUNT
};

/* T(op, field, role), in the order of the struct's fields. Roles: IN, OPT_IN (may be absent),
 * WEIGHT (an input that hw_tensor_pack() may have packed), OUT, OPT_OUT, INOUT. */
#define HW_OPERANDS_MATMUL(T)                                                              \
    T(matmul, a, IN) T(matmul, b, WEIGHT) T(matmul, bias, OPT_IN) T(matmul, c, OUT)
#define HW_OPERANDS_RMSNORM(T)                                                             \
    T(rmsnorm, x, IN) T(rmsnorm, weight, OPT_IN) T(rmsnorm, y, OUT)
#define HW_OPERANDS_SOFTMAX(T) T(softmax, x, IN) T(softmax, mask, OPT_IN) T(softmax, y, OUT)
#define HW_OPERANDS_SILU(T)    T(silu, x, IN) T(silu, y, OUT)
#define HW_OPERANDS_ROPE(T)                                                                \
    T(rope, x, IN) T(rope, positions, OPT_IN) T(rope, factors, OPT_IN) T(rope, y, OUT)
#define HW_OPERANDS_ATTENTION(T)                                                           \
    T(attention, q, IN)                                                                    \
    T(attention, k, IN)                                                                    \
    T(attention, v, IN)                                                                    \
    T(attention, bias, OPT_IN)                                                             \
    T(attention, lengths, OPT_IN)                                                          \
    T(attention, y, OUT)
#define HW_OPERANDS_ADD(T)    T(add, a, IN) T(add, b, IN) T(add, y, OUT)
#define HW_OPERANDS_MUL(T)    T(mul, a, IN) T(mul, b, IN) T(mul, y, OUT)
#define HW_OPERANDS_SWIGLU(T) T(swiglu, gate, IN) T(swiglu, up, OPT_IN) T(swiglu, y, OUT)
#define HW_OPERANDS_ADD_RMSNORM(T)                                                         \
    T(add_rmsnorm, residual, INOUT)                                                        \
    T(add_rmsnorm, x, IN)                                                                  \
    T(add_rmsnorm, weight, OPT_IN)                                                         \
    T(add_rmsnorm, y, OUT)
#define HW_OPERANDS_GET_ROWS(T)                                                            \
    T(get_rows, table, IN) T(get_rows, rows, IN) T(get_rows, y, OUT)
#define HW_OPERANDS_SET_ROWS(T)                                                            \
    T(set_rows, x, IN) T(set_rows, rows, IN) T(set_rows, table, INOUT)
#define HW_OPERANDS_COPY(T)   T(copy, src, IN) T(copy, dst, OUT)
#define HW_OPERANDS_ARGMAX(T) T(argmax, x, IN) T(argmax, y, OUT)

/* A struct and a function may share a name in C++ too; one compiler warns of it. */
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

struct hw_queue;

/* Submits `op` (enum hw_op) with its struct of `size` bytes. The one entry behind all wrappers:
 * a size below what this library knows reads the missing fields as zero; non-zero bytes beyond
 * it are HW_UNSUPPORTED. */
HW_EXPORT enum hw_status hw_submit(struct hw_queue *queue, uint32_t op, const void *args,
                                   size_t size);

/* c[..,M,N] = a[..,M,K] . b[..,K,N] + bias[N]
 *
 * a, bias, c: any float; b: any float, or a block type. Rank 2 to 4; leading extents are batches
 * and broadcast (an extent of 1, or a missing one, repeats). `transpose_b`: b is stored [N,K],
 * the way weights are; block types always are, with blocks along K. `transpose_a`: a is stored
 * [K,M]. K = 0 gives the bias, or zeros. Activations stay in their type unless HW_PRECISION
 * allows less. */
struct hw_matmul {
    struct hw_tensor a, b, bias, c;
    uint32_t transpose_a, transpose_b; /* 0 or 1 */
};
static inline enum hw_status hw_matmul(struct hw_queue *queue, const struct hw_matmul *op)
{
    return hw_submit(queue, HW_OP_MATMUL, op, sizeof *op);
}

/* y = x * weight / sqrt(mean(x^2) + eps), over the last extent.
 *
 * x, y: T float, same extents; weight: [cols], T or f32, absent means 1. In place allowed. eps
 * has no default. Right for |x| up to 1e18. Zhang and Sennrich, 2019 (arXiv 1910.07467). */
struct hw_rmsnorm {
    struct hw_tensor x, weight, y;
    float eps;
    uint32_t reserved;
};
static inline enum hw_status hw_rmsnorm(struct hw_queue *queue, const struct hw_rmsnorm *op)
{
    return hw_submit(queue, HW_OP_RMSNORM, op, sizeof *op);
}

/* y = exp(scale x + mask - max) / sum, over the last extent; with `log`, its logarithm.
 *
 * x, y: T float, same extents; mask: T or f32, extents that broadcast to x's from the right,
 * absent means 0. scale: default 1. In place allowed. Stable for every finite input; a row of
 * -inf gives zeros (log: -inf). */
struct hw_softmax {
    struct hw_tensor x, mask, y;
    float scale;
    uint32_t log; /* 0 or 1 */
};
static inline enum hw_status hw_softmax(struct hw_queue *queue, const struct hw_softmax *op)
{
    return hw_submit(queue, HW_OP_SOFTMAX, op, sizeof *op);
}

/* y = x / (1 + exp(-x)). x, y: T float, same extents. In place allowed. Finite for finite x. */
struct hw_silu {
    struct hw_tensor x, y;
};
static inline enum hw_status hw_silu(struct hw_queue *queue, const struct hw_silu *op)
{
    return hw_submit(queue, HW_OP_SILU, op, sizeof *op);
}

/* Rotates pairs of x[..,T,H,D] by the angle position * scale * theta^(-2i/dims) / factors[i],
 * i = 0 .. dims/2 - 1.
 *
 * x, y: T float, same extents, rank 3 or 4. In place allowed. Pairs are (i, i + dims/2), or,
 * with `interleaved`, (2i, 2i+1); elements from dims on are copied. positions: i32 [T] on host
 * or device; absent means start, start + 1, ... factors: f32 [dims/2], absent means 1. Angles
 * are accurate to f32 rounding at positions up to 10^6. Su et al., 2021 (arXiv 2104.09864). */
struct hw_rope {
    struct hw_tensor x, positions, factors, y;
    int64_t start;        /* position of the first token, without `positions` */
    int32_t dims;         /* even, at most D; default D */
    uint32_t interleaved; /* 0 or 1 */
    float theta;          /* default 10000 */
    float scale;          /* of positions: linear scaling by 1/n; default 1 */
};
static inline enum hw_status hw_rope(struct hw_queue *queue, const struct hw_rope *op)
{
    return hw_submit(queue, HW_OP_ROPE, op, sizeof *op);
}

/* y = softmax(scale q k^T + bias, masked) . v, per head.
 *
 * q [B,Tq,Hq,D], k [B,Tmax,Hkv,D], v [B,Tmax,Hkv,Dv], y [B,Tq,Hq,Dv]; rank 3 means B = 1. q, y:
 * T float; k, v: one dtype of f32, f16, bf16, q8_0. Hq is a multiple of Hkv (GQA, MQA): query
 * head h reads key head h / (Hq/Hkv). D, Dv up to 256. bias: T or f32, [B|1,Hq|1,Tq|1,Tmax] or
 * fewer leading extents. The keys that count are the first `lengths[b]` (i32 [B], read on the
 * device when the op runs, clamped to 0..Tmax), or, without it, `length`. causal: query i sees
 * keys up to length - Tq + i. window > 0: of these only the last `window`. softcap > 0: scores
 * become softcap * tanh(score / softcap) before bias and mask. A query that sees nothing gets
 * zeros. Never materialises Tq x Tmax. Dao et al., 2022 (arXiv 2205.14135). */
struct hw_attention {
    struct hw_tensor q, k, v, bias, lengths, y;
    int64_t length;  /* keys in use; default Tmax */
    int64_t window;  /* default: no window */
    float scale;     /* default 1/sqrt(D) */
    float softcap;   /* default: none */
    uint32_t causal; /* 0 or 1 */
    uint32_t reserved;
};
static inline enum hw_status hw_attention(struct hw_queue *queue,
                                          const struct hw_attention *op)
{
    return hw_submit(queue, HW_OP_ATTENTION, op, sizeof *op);
}

/* y = a + b. T float; a and b broadcast to y from the right. y may be either input, in place,
 * where that input has y's extents. */
struct hw_add {
    struct hw_tensor a, b, y;
};
static inline enum hw_status hw_add(struct hw_queue *queue, const struct hw_add *op)
{
    return hw_submit(queue, HW_OP_ADD, op, sizeof *op);
}

/* y = a * b, elementwise. As hw_add(). */
struct hw_mul {
    struct hw_tensor a, b, y;
};
static inline enum hw_status hw_mul(struct hw_queue *queue, const struct hw_mul *op)
{
    return hw_submit(queue, HW_OP_MUL, op, sizeof *op);
}

/* y = silu(gate) * up. T float, same extents, in place (y may be gate or up); or, with `up`
 * absent, gate is [..,2F], gate then up, and y is [..,F], not in place. Shazeer, 2020 (arXiv
 * 2002.05202). */
struct hw_swiglu {
    struct hw_tensor gate, up, y;
};
static inline enum hw_status hw_swiglu(struct hw_queue *queue, const struct hw_swiglu *op)
{
    return hw_submit(queue, HW_OP_SWIGLU, op, sizeof *op);
}

/* residual += x, stored back rounded to its type; y = rmsnorm(residual as stored). T float, same
 * extents; weight and eps as in hw_rmsnorm(). y may be x, in place. */
struct hw_add_rmsnorm {
    struct hw_tensor residual, x, weight, y;
    float eps;
    uint32_t reserved;
};
static inline enum hw_status hw_add_rmsnorm(struct hw_queue *queue,
                                            const struct hw_add_rmsnorm *op)
{
    return hw_submit(queue, HW_OP_ADD_RMSNORM, op, sizeof *op);
}

/* y[i,:] = table[rows[i],:]. table: [R,N], any float or block type; rows: i32 [I]; y: [I,N], any
 * float. A row outside 0..R-1 reads as zeros: rows live in device memory and are not checked. */
struct hw_get_rows {
    struct hw_tensor table, rows, y;
};
static inline enum hw_status hw_get_rows(struct hw_queue *queue,
                                         const struct hw_get_rows *op)
{
    return hw_submit(queue, HW_OP_GET_ROWS, op, sizeof *op);
}

/* table[rows[i],:] = x[i,:]. x: [I,N], any float; rows: i32 [I]; table: [R,N], f32, f16, bf16 or
 * q8_0. A row outside 0..R-1 is skipped. Two equal rows: one of them wins. */
struct hw_set_rows {
    struct hw_tensor x, rows, table;
};
static inline enum hw_status hw_set_rows(struct hw_queue *queue,
                                         const struct hw_set_rows *op)
{
    return hw_submit(queue, HW_OP_SET_ROWS, op, sizeof *op);
}

/* dst = src, same extents, any strides. Converts between any two floats, dequantises block types
 * to any float, quantises floats to q8_0 and q4_0 as GGML rounds; equal dtypes move bit for bit.
 * As an op it stays on the queue's device and the host; hw_copy() in hw.h goes anywhere. */
struct hw_copy {
    struct hw_tensor src, dst;
};

/* y = index of the largest element of the last extent; the first of equals. x: float; y: i32,
 * x's leading extents, with the last one dropped or 1 (rank 1 in: rank 1, extent 1 out). A NaN
 * counts as the largest. */
struct hw_argmax {
    struct hw_tensor x, y;
};
static inline enum hw_status hw_argmax(struct hw_queue *queue, const struct hw_argmax *op)
{
    return hw_submit(queue, HW_OP_ARGMAX, op, sizeof *op);
}

#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif
#endif
