/* SPDX-License-Identifier: MIT */
/* hw/ops.h - the op table: everything that a device can compute.
 *
 * HW_OPS lists every op once, HW_OPERANDS_<OP> lists its tensors and HW_SCALARS_<OP> its
 * other fields. The enum, the names, the plugin's table, staging, fallback, graphs,
 * conformance tests, hw_op_field() and the support table are all generated from these
 * lists. Each op has one documented struct and one typed wrapper below. A binding for
 * another language may call hw_submit() directly, as the wrappers do.
 *
 * In C++ the struct and the function of an op share a name, so write the keyword: `struct
 * hw_softmax op{};`, then hw_softmax(queue, &op). Without `struct`, hw_softmax names the
 * function. With <hw/hw.hpp>, hw::softmax names the struct.
 *
 * These rules hold for all ops:
 * - Tensors are row-major with extents outermost first. Outer strides are arbitrary.
 * - The innermost stride is arbitrary too, but an operand whose innermost extent is not
 *   contiguous is first copied into scratch memory, which hw_queue_calls() counts. This
 *   requires the device's `copy` op: without it, such an operand is HW_UNSUPPORTED.
 * - Sums are accumulated in f32, whatever the storage type.
 * - "float" below means any of f32, f16, bf16. Operands described with the same letter T
 *   must have the same dtype.
 * - Extents of zero are valid: an empty output means there is nothing to do, and an empty
 *   sum is zero.
 * - An output must not overlap any other operand, except where "in place" is noted: there,
 *   it may have the same address and the same layout as the named input.
 * - Operands lie in buffers of the queue's device or in host memory. A buffer of another
 *   device is HW_INVALID, except in hw_copy(). Host memory is borrowed until the queue has
 *   completed the op: see hw_queue_wait().
 * - The struct and its tensors are read before the call returns; they may live on the
 *   stack.
 * - Zero in an optional scalar selects the default that its field documents.
 * - The same op on the same operands gives the same bits each time, on one device with one
 *   kernel row. For the CPU plugin this also holds for any number of threads.
 *
 * All wrappers return one of:
 * - HW_OK: the work is done or queued. An error that occurs later is returned by
 *   hw_queue_wait().
 * - HW_INVALID: shapes, dtypes or scalars do not fit, outputs overlap, or a buffer belongs
 *   to another device. hw_message() names the field. Nothing was touched.
 * - HW_UNSUPPORTED: no device that the queue may use computes this combination. The message
 *   names the op, the dtypes and the device. Nothing was touched.
 * - HW_NO_MEMORY, HW_DRIVER, HW_LOST: an error of the device. The contents of the output
 *   are undefined.
 * - HW_FORKED: the process has forked since the context was opened. Nothing was touched.
 *
 * A queue may be used by one thread at a time. */
#ifndef HW_OPS_H
#define HW_OPS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, name): append only, because the order is ABI. */
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
    X(ARGMAX, argmax)                                                                      \
    X(MATMUL_ID, matmul_id)                                                                \
    X(LAYERNORM, layernorm)                                                                \
    X(SUB, sub)                                                                            \
    X(DIV, div)                                                                            \
    X(SCALE, scale)                                                                        \
    X(TOP_K, top_k)                                                                        \
    X(DOT, dot)                                                                            \
    X(ACTIVATION, activation)                                                              \
    X(GLU, glu)                                                                            \
    X(CONV2D, conv2d)

#define HW_MAX_HEAD 576  /* the most elements of a head in hw_attention() */
#define HW_MAX_K    1024 /* the most elements that hw_top_k() finds in a row */

enum hw_op {
#define X(NAME, name) HW_OP_##NAME,
    HW_OPS(X)
#undef X
        HW_OP_COUNT
};

/* The role of a tensor in an op. */
enum hw_role {
    HW_ROLE_IN = 0,
    HW_ROLE_OPT_IN = 1, /* may be absent */
    HW_ROLE_WEIGHT = 2, /* an input that may come from hw_tensor_pack() */
    HW_ROLE_OUT = 3,
    HW_ROLE_OPT_OUT = 4, /* may be absent */
    HW_ROLE_INOUT = 5    /* read, then written */
};

/* T(op, field, role), in the order of the struct's fields. */
#define HW_OPERANDS_MATMUL(T)                                                              \
    T(matmul, a, IN) T(matmul, b, WEIGHT) T(matmul, bias, OPT_IN) T(matmul, c, OUT)
#define HW_OPERANDS_RMSNORM(T)                                                             \
    T(rmsnorm, x, IN) T(rmsnorm, weight, OPT_IN) T(rmsnorm, y, OUT)
#define HW_OPERANDS_SOFTMAX(T)                                                             \
    T(softmax, x, IN)                                                                      \
    T(softmax, mask, OPT_IN)                                                               \
    T(softmax, slopes, OPT_IN)                                                             \
    T(softmax, sinks, OPT_IN)                                                              \
    T(softmax, y, OUT)
#define HW_OPERANDS_SILU(T) T(silu, x, IN) T(silu, y, OUT)
#define HW_OPERANDS_ROPE(T)                                                                \
    T(rope, x, IN) T(rope, positions, OPT_IN) T(rope, factors, OPT_IN) T(rope, y, OUT)
#define HW_OPERANDS_ATTENTION(T)                                                           \
    T(attention, q, IN)                                                                    \
    T(attention, k, IN)                                                                    \
    T(attention, v, IN)                                                                    \
    T(attention, bias, OPT_IN)                                                             \
    T(attention, slopes, OPT_IN)                                                           \
    T(attention, sinks, OPT_IN)                                                            \
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
#define HW_OPERANDS_MATMUL_ID(T)                                                           \
    T(matmul_id, a, IN)                                                                    \
    T(matmul_id, b, WEIGHT)                                                                \
    T(matmul_id, ids, IN)                                                                  \
    T(matmul_id, bias, OPT_IN)                                                             \
    T(matmul_id, c, OUT)
#define HW_OPERANDS_LAYERNORM(T)                                                           \
    T(layernorm, x, IN)                                                                    \
    T(layernorm, weight, OPT_IN)                                                           \
    T(layernorm, bias, OPT_IN)                                                             \
    T(layernorm, y, OUT)
#define HW_OPERANDS_SUB(T)   T(sub, a, IN) T(sub, b, IN) T(sub, y, OUT)
#define HW_OPERANDS_DIV(T)   T(div, a, IN) T(div, b, IN) T(div, y, OUT)
#define HW_OPERANDS_SCALE(T) T(scale, x, IN) T(scale, y, OUT)
#define HW_OPERANDS_TOP_K(T)                                                               \
    T(top_k, x, IN) T(top_k, values, OPT_OUT) T(top_k, indices, OUT)
#define HW_OPERANDS_DOT(T)        T(dot, a, IN) T(dot, b, IN) T(dot, y, OUT)
#define HW_OPERANDS_ACTIVATION(T) T(activation, x, IN) T(activation, y, OUT)
#define HW_OPERANDS_GLU(T)        T(glu, gate, IN) T(glu, up, OPT_IN) T(glu, y, OUT)
#define HW_OPERANDS_CONV2D(T)                                                              \
    T(conv2d, x, IN) T(conv2d, weight, IN) T(conv2d, bias, OPT_IN) T(conv2d, y, OUT)

/* The type of a field of an op's struct. */
enum hw_field_type {
    HW_FIELD_TENSOR = 1,  /* struct hw_tensor */
    HW_FIELD_I32 = 2,     /* int32_t */
    HW_FIELD_I64 = 3,     /* int64_t */
    HW_FIELD_F32 = 4,     /* float */
    HW_FIELD_FLAG = 5,    /* uint32_t: 0 or 1 */
    HW_FIELD_RESERVED = 6 /* uint32_t: must be 0 */
};

/* S(op, field, type, zero): the fields after the tensors, in the order of the struct. `zero`
 * is the meaning of the value 0, "0" if it is just the number, "" if 0 is invalid. */
#define HW_SCALARS_MATMUL(S)                                                               \
    S(matmul, transpose_a, FLAG, "0") S(matmul, transpose_b, FLAG, "0")
#define HW_SCALARS_RMSNORM(S) S(rmsnorm, eps, F32, "0") S(rmsnorm, reserved, RESERVED, "0")
#define HW_SCALARS_SOFTMAX(S) S(softmax, scale, F32, "1") S(softmax, log, FLAG, "0")
#define HW_SCALARS_SILU(S)
#define HW_SCALARS_ROPE(S)                                                                 \
    S(rope, start, I64, "0")                                                               \
    S(rope, context, I64, "none")                                                          \
    S(rope, dims, I32, "D")                                                                \
    S(rope, interleaved, FLAG, "0")                                                        \
    S(rope, theta, F32, "10000")                                                           \
    S(rope, scale, F32, "1")                                                               \
    S(rope, yarn, F32, "none")                                                             \
    S(rope, magnitude, F32, "1, with yarn 1 + 0.1 ln(1/scale)")                            \
    S(rope, beta_fast, F32, "32")                                                          \
    S(rope, beta_slow, F32, "1")
#define HW_SCALARS_ATTENTION(S)                                                            \
    S(attention, length, I64, "Tmax")                                                      \
    S(attention, window, I64, "unlimited")                                                 \
    S(attention, scale, F32, "1/sqrt(D)")                                                  \
    S(attention, softcap, F32, "none")                                                     \
    S(attention, causal, FLAG, "0")                                                        \
    S(attention, reserved, RESERVED, "0")
#define HW_SCALARS_ADD(S)
#define HW_SCALARS_MUL(S)
#define HW_SCALARS_SWIGLU(S)
#define HW_SCALARS_ADD_RMSNORM(S)                                                          \
    S(add_rmsnorm, eps, F32, "0") S(add_rmsnorm, reserved, RESERVED, "0")
#define HW_SCALARS_GET_ROWS(S)
#define HW_SCALARS_SET_ROWS(S)
#define HW_SCALARS_COPY(S)
#define HW_SCALARS_ARGMAX(S)
#define HW_SCALARS_MATMUL_ID(S)
#define HW_SCALARS_LAYERNORM(S)                                                            \
    S(layernorm, eps, F32, "0") S(layernorm, reserved, RESERVED, "0")
#define HW_SCALARS_SUB(S)
#define HW_SCALARS_DIV(S)
#define HW_SCALARS_SCALE(S) S(scale, scale, F32, "0") S(scale, bias, F32, "0")
#define HW_SCALARS_TOP_K(S)
#define HW_SCALARS_DOT(S)
#define HW_SCALARS_ACTIVATION(S)                                                           \
    S(activation, kind, I32, "")                                                           \
    S(activation, alpha, F32, "0.01 or 1, by kind")                                        \
    S(activation, lo, F32, "0")                                                            \
    S(activation, hi, F32, "0")
#define HW_SCALARS_GLU(S)                                                                  \
    S(glu, kind, I32, "")                                                                  \
    S(glu, alpha, F32, "0.01 or 1, by kind")                                               \
    S(glu, lo, F32, "0")                                                                   \
    S(glu, hi, F32, "0")
#define HW_SCALARS_CONV2D(S)                                                               \
    S(conv2d, stride_h, I32, "1")                                                          \
    S(conv2d, stride_w, I32, "1")                                                          \
    S(conv2d, pad_h, I32, "0")                                                             \
    S(conv2d, pad_w, I32, "0")                                                             \
    S(conv2d, dilation_h, I32, "1")                                                        \
    S(conv2d, dilation_w, I32, "1")                                                        \
    S(conv2d, groups, I32, "1")                                                            \
    S(conv2d, reserved, RESERVED, "0")

/* GCC warns when a C++ struct and a function share a name, which is valid. */
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

struct hw_queue;

/* Submits the op `op` (enum hw_op) with its struct of `size` bytes. All wrappers call this.
 * If `size` is smaller than this library's struct, the missing fields are zero. If it is
 * larger, the extra bytes must be zero; otherwise the result is HW_UNSUPPORTED, because
 * this library does not know the field. */
HW_EXPORT enum hw_status hw_submit(struct hw_queue *queue, uint32_t op, const void *args,
                                   size_t size);

/* c[..,M,N] = a[..,M,K] . b[..,K,N] + bias[N]
 *
 * a, bias, c: any float. b: any float or a block type. Rank 2 to 4. The leading extents are
 * batches. Each leading extent of c equals the one of a or of b, and the other one divides it
 * (a missing extent is 1). If an operand has B batches and c has C, neighbouring batches of c
 * share one: batch i of c reads batch i / (C / B) of the operand. So heads that share keys
 * (GQA) need no copies. transpose_b: b is stored as [N,K], as weights usually are; a block type
 * requires it, with its blocks along K. transpose_a: a is stored as [K,M]. K = 0 gives the bias,
 * or zeros. Activations keep their precision unless HW_PRECISION allows less. */
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
 * x, y: T float, same extents. weight: [cols], T or f32; absent means 1. May be in place.
 * eps has no default and must not be negative. With eps = 0, a row of zeros gives NaN (0/0),
 * and x whose root mean square is below 1e-30 may, too. Squares of x may overflow. Zhang and
 * Sennrich, 2019 (arXiv 1910.07467). */
struct hw_rmsnorm {
    struct hw_tensor x, weight, y;
    float eps;
    uint32_t reserved;
};
static inline enum hw_status hw_rmsnorm(struct hw_queue *queue, const struct hw_rmsnorm *op)
{
    return hw_submit(queue, HW_OP_RMSNORM, op, sizeof *op);
}

/* y = exp(scale x + slope mask - max) / sum, over the last extent; if `log` is set, its
 * logarithm.
 *
 * x, y: T float, same extents. mask: any float; its extents, counted from the right, divide
 * the extents of x and repeat (index modulo extent). The last extent is 1 or equals the last
 * extent of x. Absent means 0. scale: default 1. May be in place. Stable for every finite input.
 * A row of -inf gives zeros (with `log`: -inf).
 *
 * If x is [..,H,T,cols], each head may have two numbers. slopes: f32 [H], factors of the
 * mask, which must be present; absent means 1. A mask of -inf stays -inf whatever the slope.
 * sinks: f32 [H], one more number per row, which counts in max and sum but has no place in
 * y: see hw_attention(). */
struct hw_softmax {
    struct hw_tensor x, mask, slopes, sinks, y;
    float scale;
    uint32_t log; /* 0 or 1 */
};
static inline enum hw_status hw_softmax(struct hw_queue *queue, const struct hw_softmax *op)
{
    return hw_submit(queue, HW_OP_SOFTMAX, op, sizeof *op);
}

/* y = x / (1 + exp(-x)). x, y: T float, same extents. May be in place. Finite for finite
 * x. */
struct hw_silu {
    struct hw_tensor x, y;
};
static inline enum hw_status hw_silu(struct hw_queue *queue, const struct hw_silu *op)
{
    return hw_submit(queue, HW_OP_SILU, op, sizeof *op);
}

/* Rotates pairs of x[..,T,H,D] by the angle position * scale * theta^(-2i/dims) /
 * factors[i], i = 0 .. dims/2 - 1, and multiplies them by magnitude.
 *
 * x, y: T float, same extents, rank 3 or 4. May be in place. A pair is (i, i + dims/2) or,
 * if `interleaved` is set, (2i, 2i+1). Elements from index dims on are copied. positions:
 * i32 [T], in host or device memory; absent means start, start + 1, ... factors: f32
 * [dims/2]; absent means 1. Angles are accurate to f32 rounding for positions up to 10^6.
 * Su et al., 2021 (arXiv 2104.09864).
 *
 * YaRN (Peng et al., 2023, arXiv 2309.00071) scales only pairs that turn slowly: with yarn
 * > 0, pair i has, instead of scale, the factor scale (1 - m) + m, where m = yarn * r falls
 * with i: r = 1 - (i - low) / max(high - low, 0.001), clamped to 0..1. low = max(0,
 * floor(p(beta_fast))), high = min(dims - 1, ceil(p(beta_slow))), and p(n) = dims
 * ln(context / (2 pi n)) / (2 ln theta) is the pair that turns n times in the context.
 * In ggml_rope_ext(), yarn is called ext_factor, context n_ctx_orig, and magnitude is
 * attn_factor, there multiplied by 1 + 0.1 ln(1/scale) if ext_factor is not 0. */
struct hw_rope {
    struct hw_tensor x, positions, factors, y;
    int64_t start;        /* position of the first token if `positions` is absent */
    int64_t context;      /* with yarn: the tokens of the context that was trained */
    int32_t dims;         /* even, at most D; default D */
    uint32_t interleaved; /* 0 or 1 */
    float theta;          /* default 10000 */
    float scale;          /* of positions: linear scaling by 1/n; default 1 */
    float yarn;           /* 0 to 1; default 0: none */
    float magnitude;      /* default 1; with yarn, 1 + 0.1 ln(1/scale) */
    float beta_fast;      /* default 32; at least beta_slow */
    float beta_slow;      /* default 1 */
};
static inline enum hw_status hw_rope(struct hw_queue *queue, const struct hw_rope *op)
{
    return hw_submit(queue, HW_OP_ROPE, op, sizeof *op);
}

/* y = softmax(scale q k^T + slope bias, masked) . v, per head.
 *
 * q [B,Tq,Hq,D], k [B,Tmax,Hkv,D], v [B,Tmax,Hkv,Dv], y [B,Tq,Hq,Dv]; rank 3 means B = 1.
 * q, y: T float. k, v: each any float or a block type. D and Dv are at most HW_MAX_HEAD. Hq
 * is a multiple of Hkv (GQA, MQA): query head h reads key head h / (Hq/Hkv). bias: any float,
 * [B,Hq,Tq,Tmax] or fewer leading extents; extents that divide these repeat (index modulo
 * extent), but not the last one.
 *
 * The keys in use are the first `lengths[b]` of batch b, or the first `length` if `lengths`
 * is absent. lengths: i32 [B], read from memory when the op runs and clamped to 0..Tmax.
 * Query i has position length - Tq + i. causal: it sees keys up to its position. window > 0:
 * of these, only the last `window`. softcap > 0: scores become softcap * tanh(score /
 * softcap) before bias and mask. A query that sees no key, or whose bias is -inf for every key
 * that it sees, gives zeros.
 *
 * slopes: f32 [Hq], factors of the bias; absent means 1. A bias of -inf stays -inf whatever
 * the slope. With slopes and without a bias, the bias is -|key - position of the query|.
 * Press et al., 2021 (ALiBi, arXiv 2108.12409).
 *
 * sinks: f32 [Hq]. The sink of a head counts in its softmax like the score of one more key,
 * but it adds no value, so the other weights add up to less than 1; absent means -inf. Xiao
 * et al., 2023 (arXiv 2309.17453).
 *
 * Keys that are not in use have no effect. If a number in k or v of a key in use is NaN or
 * infinite, a device with matrix units may return NaN for queries that do not see this key.
 *
 * The matrix of Tq x Tmax scores is never stored. Dao et al., 2022 (arXiv 2205.14135). */
struct hw_attention {
    struct hw_tensor q, k, v, bias, slopes, sinks, lengths, y;
    int64_t length;  /* keys in use; default Tmax */
    int64_t window;  /* default: unlimited */
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

/* y = a + b. a, b, y: floats, each of its own dtype; the sum is rounded once, to the dtype of y.
 *
 * a and b repeat to the extents of y, aligned from the right: each of their extents must
 * divide the extent of y, and a missing extent is 1. Element i along an axis of y is made from
 * element i modulo the extent of a or b. May be in place in either input that has dtype and
 * extents of y. */
struct hw_add {
    struct hw_tensor a, b, y;
};
static inline enum hw_status hw_add(struct hw_queue *queue, const struct hw_add *op)
{
    return hw_submit(queue, HW_OP_ADD, op, sizeof *op);
}

/* y = a * b, elementwise. Operands as for hw_add(). */
struct hw_mul {
    struct hw_tensor a, b, y;
};
static inline enum hw_status hw_mul(struct hw_queue *queue, const struct hw_mul *op)
{
    return hw_submit(queue, HW_OP_MUL, op, sizeof *op);
}

/* y = silu(gate) * up. T float, same extents; may be in place in gate or up. If `up` is
 * absent, gate is [..,2F] and holds gate followed by up, y is [..,F], and the op cannot be
 * in place. Shazeer, 2020 (arXiv 2002.05202). */
struct hw_swiglu {
    struct hw_tensor gate, up, y;
};
static inline enum hw_status hw_swiglu(struct hw_queue *queue, const struct hw_swiglu *op)
{
    return hw_submit(queue, HW_OP_SWIGLU, op, sizeof *op);
}

/* residual += x, stored rounded to its dtype; then y = rmsnorm(residual as stored). T
 * float, same extents; weight and eps as for hw_rmsnorm(). May be in place: y may be x. */
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

/* y[..,i,:] = table[..,rows[..,i],:].
 *
 * y: [..,I,N], any float, rank 2 to 4; the leading extents are batches. table: [..,R,N], any
 * float or block type. rows: i32 or i64 [..,I]. The leading extents of table and of rows may be
 * missing or divide the extents of y. Then they repeat: batch b reads batch b modulo the extent.
 * A row number outside 0..R-1 reads as zeros: it may lie in device memory, so the call cannot
 * check it. */
struct hw_get_rows {
    struct hw_tensor table, rows, y;
};
static inline enum hw_status hw_get_rows(struct hw_queue *queue,
                                         const struct hw_get_rows *op)
{
    return hw_submit(queue, HW_OP_GET_ROWS, op, sizeof *op);
}

/* table[..,rows[..,i],:] = x[..,i,:].
 *
 * x: [..,I,N], any float, rank 2 to 4; the leading extents are batches. table: [..,R,N], any
 * float or block type, with the leading extents of x. rows: i32 or i64 [..,I], whose leading
 * extents may repeat as for hw_get_rows(). A row number outside 0..R-1 is skipped. A row number
 * must not occur more than once in a batch. The call cannot check this, because the numbers
 * may lie in device memory: such a row of the table may get parts of several rows of x, and
 * other bits each time. Other rows are not affected. */
struct hw_set_rows {
    struct hw_tensor x, rows, table;
};
static inline enum hw_status hw_set_rows(struct hw_queue *queue,
                                         const struct hw_set_rows *op)
{
    return hw_submit(queue, HW_OP_SET_ROWS, op, sizeof *op);
}

/* dst = src, same extents, any strides. Converts between any two floats, dequantises block
 * types to any float, and quantises floats to any block type. Both give the bits of GGML's
 * reference (ggml-quants.c, computed without fused products), unless a number is NaN or
 * infinite, or becomes so there. GGML's SIMD code differs from it where two codes are equally
 * near. A NaN or an infinity makes the codes and the scale of its block unspecified, but no
 * others. Equal dtypes are copied bit for bit.
 *
 * A block is converted as a whole, to or from neighbouring elements. Converting between a block
 * type and floats whose innermost extent is not contiguous is therefore HW_UNSUPPORTED by every
 * device of this tree: copy by way of contiguous floats instead.
 *
 * This is the one op that takes buffers of other devices: src and dst may each lie in host
 * memory, on the queue's device or on any other device of the context. The copy is ordered
 * on `queue` only: the caller must have waited for work on other queues that writes src or
 * uses dst. A copy between devices is HW_UNSUPPORTED while the queue is recording, and
 * HW_INVALID in hw_device_supports(), which asks about one device. hw_tensor_write() and
 * hw_tensor_read() in hw.h copy between a tensor and plain host memory. */
struct hw_copy {
    struct hw_tensor src, dst;
};
static inline enum hw_status hw_copy(struct hw_queue *queue, const struct hw_copy *op)
{
    return hw_submit(queue, HW_OP_COPY, op, sizeof *op);
}

/* y = index of the largest element along the last extent, the first one of equals. A NaN
 * counts as the largest. x: float. y: i32, with the leading extents of x and the last one
 * dropped or 1; if x has rank 1, y has rank 1 and extent 1. */
struct hw_argmax {
    struct hw_tensor x, y;
};
static inline enum hw_status hw_argmax(struct hw_queue *queue, const struct hw_argmax *op)
{
    return hw_submit(queue, HW_OP_ARGMAX, op, sizeof *op);
}

/* c[t,u,:] = a[t,u,:] . b[e,:,:]^T + bias[e,:] with e = ids[t,u]: for each of T tokens, the
 * products with U of E matrices (a mixture of experts).
 *
 * a: [T,U,K], or [T,1,K] if the experts of a token read the same row; any float. b: [E,N,K],
 * any float or a block type. ids: i32 [T,U]. bias: [E,N], any float; absent means 0. c:
 * [T,U,N], any float. An id outside 0..E-1 gives zeros, without bias: it may lie in device
 * memory, so the call cannot check it. A token may choose an expert twice. K = 0 gives the
 * bias, or zeros. Precision as in hw_matmul(). Shazeer et al., 2017 (arXiv 1701.06538). */
struct hw_matmul_id {
    struct hw_tensor a, b, ids, bias, c;
};
static inline enum hw_status hw_matmul_id(struct hw_queue *queue,
                                          const struct hw_matmul_id *op)
{
    return hw_submit(queue, HW_OP_MATMUL_ID, op, sizeof *op);
}

/* y = (x - mean) / sqrt(variance + eps) * weight + bias, over the last extent; the variance is
 * mean((x - mean)^2).
 *
 * x, y: T float, same extents. weight, bias: [cols], both T or both f32; absent means 1 and 0.
 * May be in place. eps has no default and must not be negative. With eps = 0, a row whose
 * elements are all equal has no defined result: it may be NaN (0/0). Accurate also where the
 * mean is large beside the deviations, and where sums of x overflow. Ba et al., 2016 (arXiv
 * 1607.06450). */
struct hw_layernorm {
    struct hw_tensor x, weight, bias, y;
    float eps;
    uint32_t reserved;
};
static inline enum hw_status hw_layernorm(struct hw_queue *queue,
                                          const struct hw_layernorm *op)
{
    return hw_submit(queue, HW_OP_LAYERNORM, op, sizeof *op);
}

/* y = a - b, elementwise. Operands as for hw_add(). */
struct hw_sub {
    struct hw_tensor a, b, y;
};
static inline enum hw_status hw_sub(struct hw_queue *queue, const struct hw_sub *op)
{
    return hw_submit(queue, HW_OP_SUB, op, sizeof *op);
}

/* y = a / b, elementwise. Operands as for hw_add(). Dividing by zero gives infinity, or NaN
 * for 0 / 0. */
struct hw_div {
    struct hw_tensor a, b, y;
};
static inline enum hw_status hw_div(struct hw_queue *queue, const struct hw_div *op)
{
    return hw_submit(queue, HW_OP_DIV, op, sizeof *op);
}

/* y = scale * x + bias. x, y: T float, same extents. May be in place. Both scalars must be
 * finite; 0 is a number like any other. */
struct hw_scale {
    struct hw_tensor x, y;
    float scale, bias;
};
static inline enum hw_status hw_scale(struct hw_queue *queue, const struct hw_scale *op)
{
    return hw_submit(queue, HW_OP_SCALE, op, sizeof *op);
}

/* values = the k largest elements along the last extent, the largest first; indices = their
 * positions. Among equal elements the one with the lower index is first; NaNs count as equal, and
 * as larger than any number.
 *
 * x: T float. indices: i32, with the extents of x, except that the last extent is k, which is at
 * most the last extent of x and at most HW_MAX_K. values: T, the extents of indices; may be
 * absent. */
struct hw_top_k {
    struct hw_tensor x, values, indices;
};
static inline enum hw_status hw_top_k(struct hw_queue *queue, const struct hw_top_k *op)
{
    return hw_submit(queue, HW_OP_TOP_K, op, sizeof *op);
}

/* y = sum of a * b over the last extent, which a and b share.
 *
 * a, b, y: any float. The other extents of a and b broadcast from the right (an extent that is
 * 1 or missing repeats). y has the extents that result, with the last one dropped or 1; if a
 * and b have rank 1, y has rank 1 and extent 1. */
struct hw_dot {
    struct hw_tensor a, b, y;
};
static inline enum hw_status hw_dot(struct hw_queue *queue, const struct hw_dot *op)
{
    return hw_submit(queue, HW_OP_DOT, op, sizeof *op);
}

/* The functions of hw_activation() and hw_glu(). There is no default: 0 is a forgotten field. */
enum hw_activation_kind {
    HW_ACT_RELU = 1,       /* max(x, 0) */
    HW_ACT_LEAKY_RELU = 2, /* x, or alpha x where x < 0; alpha: default 0.01 */
    HW_ACT_ELU = 3,        /* x, or alpha (exp(x) - 1) where x < 0; alpha: default 1 */
    HW_ACT_SIGMOID = 4,    /* 1 / (1 + exp(-x)) */
    HW_ACT_TANH = 5,
    HW_ACT_GELU = 6,       /* x (1 + erf(x / sqrt(2))) / 2 */
    HW_ACT_GELU_TANH = 7,  /* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
    HW_ACT_GELU_QUICK = 8, /* x / (1 + exp(-1.702 x)) */
    HW_ACT_SILU = 9,       /* x / (1 + exp(-x)), as hw_silu() */
    HW_ACT_CLIP = 10,      /* min(max(x, lo), hi) */
    HW_ACT_END
};

/* y = f(x), f by `kind`. x, y: T float, same extents. May be in place.
 *
 * The fields that a kind does not mention must be 0. Clip has no default bounds: lo must be
 * below hi, so 0, 0 is refused. Use infinity for no bound.
 *
 * NaN for NaN. Finite for finite x, except that a result beyond the range of T is infinite. That
 * can happen with leaky_relu if |alpha| > 1, with elu if alpha is beyond the range, and with clip
 * if a bound is. The four functions that multiply by x give NaN for -infinity, as their formulas
 * do. Hendrycks and Gimpel, 2016 (arXiv 1606.08415); Clevert et al., 2015 (arXiv 1511.07289). */
struct hw_activation {
    struct hw_tensor x, y;
    int32_t kind; /* enum hw_activation_kind */
    float alpha;  /* must be finite */
    float lo, hi;
};
static inline enum hw_status hw_activation(struct hw_queue *queue,
                                           const struct hw_activation *op)
{
    return hw_submit(queue, HW_OP_ACTIVATION, op, sizeof *op);
}

/* y = f(gate) * up: a gated linear unit. gate, up, y as for hw_swiglu(), which is this op with
 * silu; kind, alpha, lo, hi as for hw_activation(). Shazeer, 2020 (arXiv 2002.05202). */
struct hw_glu {
    struct hw_tensor gate, up, y;
    int32_t kind;
    float alpha, lo, hi;
};
static inline enum hw_status hw_glu(struct hw_queue *queue, const struct hw_glu *op)
{
    return hw_submit(queue, HW_OP_GLU, op, sizeof *op);
}

/* y[b,o,i,j] = bias[o] + the sum over c, p, q of weight[o,c,p,q] *
 * x[b, first + c, i stride_h + p dilation_h - pad_h, j stride_w + q dilation_w - pad_w]:
 * cross-correlation, as the layers called convolution compute it. Outside of x there are zeros.
 *
 * x: [B,Cin,H,W]. weight: [Cout,Cin/groups,KH,KW], KH and KW at least 1. bias: [Cout]; absent
 * means 0. y: [B,Cout,OH,OW]. Each any float. `groups` divides Cin and Cout, and output channel
 * o reads the Cin/groups channels of its group, from first = o / (Cout/groups) * (Cin/groups)
 * on. OH = (H + 2 pad_h - dilation_h (KH - 1) - 1) / stride_h + 1, rounded down, or 0 if the
 * dilated kernel is larger than the padded x; OW likewise. Precision as in hw_matmul().
 * Dumoulin and Visin, 2016 (arXiv 1603.07285). */
struct hw_conv2d {
    struct hw_tensor x, weight, bias, y;
    int32_t stride_h, stride_w;     /* default 1 */
    int32_t pad_h, pad_w;           /* zeros on either side; default 0 */
    int32_t dilation_h, dilation_w; /* default 1 */
    int32_t groups;                 /* default 1 */
    uint32_t reserved;
};
static inline enum hw_status hw_conv2d(struct hw_queue *queue, const struct hw_conv2d *op)
{
    return hw_submit(queue, HW_OP_CONV2D, op, sizeof *op);
}

#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif
#endif
