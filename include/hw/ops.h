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
 *   it may have the same address and the same layout as the input named.
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
    X(ARGMAX, argmax)

enum hw_op {
#define X(NAME, name) HW_OP_##NAME,
    HW_OPS(X)
#undef X
        HW_OP_COUNT
};

/* What an op does with a tensor. */
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
 * is what the value 0 means, where that is not the number itself; "": 0 is invalid. */
#define HW_SCALARS_MATMUL(S)                                                               \
    S(matmul, transpose_a, FLAG, "0") S(matmul, transpose_b, FLAG, "0")
#define HW_SCALARS_RMSNORM(S) S(rmsnorm, eps, F32, "") S(rmsnorm, reserved, RESERVED, "0")
#define HW_SCALARS_SOFTMAX(S) S(softmax, scale, F32, "1") S(softmax, log, FLAG, "0")
#define HW_SCALARS_SILU(S)
#define HW_SCALARS_ROPE(S)                                                                 \
    S(rope, start, I64, "0")                                                               \
    S(rope, dims, I32, "D")                                                                \
    S(rope, interleaved, FLAG, "0")                                                        \
    S(rope, theta, F32, "10000")                                                           \
    S(rope, scale, F32, "1")
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
    S(add_rmsnorm, eps, F32, "") S(add_rmsnorm, reserved, RESERVED, "0")
#define HW_SCALARS_GET_ROWS(S)
#define HW_SCALARS_SET_ROWS(S)
#define HW_SCALARS_COPY(S)
#define HW_SCALARS_ARGMAX(S)

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
 * a, bias, c: any float. b: any float or a block type. Rank 2 to 4: the leading extents are
 * batches and broadcast (an extent that is 1 or missing repeats). transpose_b: b is stored
 * as [N,K], as weights usually are; a block type requires it, with its blocks along K.
 * transpose_a: a is stored as [K,M]. K = 0 gives the bias, or zeros. Activations keep their
 * precision unless HW_PRECISION allows less. */
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
 * eps has no default and must be positive. Accurate for |x| up to 1e18. Zhang and Sennrich,
 * 2019 (arXiv 1910.07467). */
struct hw_rmsnorm {
    struct hw_tensor x, weight, y;
    float eps;
    uint32_t reserved;
};
static inline enum hw_status hw_rmsnorm(struct hw_queue *queue, const struct hw_rmsnorm *op)
{
    return hw_submit(queue, HW_OP_RMSNORM, op, sizeof *op);
}

/* y = exp(scale x + mask - max) / sum, over the last extent; if `log` is set, its
 * logarithm.
 *
 * x, y: T float, same extents. mask: T or f32, with extents that broadcast to those of x
 * from the right; absent means 0. scale: default 1. May be in place. Stable for every
 * finite input. A row of -inf gives zeros (with `log`: -inf). */
struct hw_softmax {
    struct hw_tensor x, mask, y;
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
 * factors[i], i = 0 .. dims/2 - 1.
 *
 * x, y: T float, same extents, rank 3 or 4. May be in place. A pair is (i, i + dims/2) or,
 * if `interleaved` is set, (2i, 2i+1). Elements from index dims on are copied. positions:
 * i32 [T], in host or device memory; absent means start, start + 1, ... factors: f32
 * [dims/2]; absent means 1. Angles are accurate to f32 rounding for positions up to 10^6.
 * Su et al., 2021 (arXiv 2104.09864). */
struct hw_rope {
    struct hw_tensor x, positions, factors, y;
    int64_t start;        /* position of the first token if `positions` is absent */
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
 * q [B,Tq,Hq,D], k [B,Tmax,Hkv,D], v [B,Tmax,Hkv,Dv], y [B,Tq,Hq,Dv]; rank 3 means B = 1.
 * q, y: T float. k, v: the same dtype, one of f32, f16, bf16, q8_0. D and Dv are at most
 * 256. Hq is a multiple of Hkv (GQA, MQA): query head h reads key head h / (Hq/Hkv). bias:
 * T or f32, [B|1,Hq|1,Tq|1,Tmax] or fewer leading extents.
 *
 * The keys in use are the first `lengths[b]` of batch b, or the first `length` if `lengths`
 * is absent. lengths: i32 [B], read from memory when the op runs and clamped to 0..Tmax.
 * causal: query i sees keys up to length - Tq + i. window > 0: of these, only the last
 * `window`. softcap > 0: scores become softcap * tanh(score / softcap) before bias and
 * mask. A query that sees no key gives zeros.
 *
 * The matrix of Tq x Tmax scores is never stored. Dao et al., 2022 (arXiv 2205.14135). */
struct hw_attention {
    struct hw_tensor q, k, v, bias, lengths, y;
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

/* y = a + b. T float; a and b broadcast to y from the right. May be in place in either
 * input that has the extents of y. */
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

/* y[i,:] = table[rows[i],:]. table: [R,N], any float or block type. rows: i32 [I]. y:
 * [I,N], any float. A row number outside 0..R-1 reads as zeros: it may lie in device
 * memory, so the call cannot check it. */
struct hw_get_rows {
    struct hw_tensor table, rows, y;
};
static inline enum hw_status hw_get_rows(struct hw_queue *queue,
                                         const struct hw_get_rows *op)
{
    return hw_submit(queue, HW_OP_GET_ROWS, op, sizeof *op);
}

/* table[rows[i],:] = x[i,:]. x: [I,N], any float. rows: i32 [I]. table: [R,N], f32, f16,
 * bf16 or q8_0. A row number outside 0..R-1 is skipped. If a row number occurs more than
 * once, one of its rows is stored; which one is unspecified. */
struct hw_set_rows {
    struct hw_tensor x, rows, table;
};
static inline enum hw_status hw_set_rows(struct hw_queue *queue,
                                         const struct hw_set_rows *op)
{
    return hw_submit(queue, HW_OP_SET_ROWS, op, sizeof *op);
}

/* dst = src, same extents, any strides. Converts between any two floats, dequantises block
 * types to any float, and quantises floats to q8_0 and q4_0 with GGML's rounding. Equal
 * dtypes are copied bit for bit.
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

#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif
#endif
