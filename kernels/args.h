/* SPDX-License-Identifier: MIT */
/* args.h - one struct per kernel, the same bytes on host and device, and the contract
 * between the two: what a kernel computes, what one group of it computes, and how many
 * groups there are.
 *
 * A kernel's pointers come first: the op's operands in the order of HW_OPERANDS_<OP>, but
 * its last one, the output, in front of the others. The struct is last. All dialects have
 * the same list. An absent optional operand may be any pointer, or NULL: the struct says
 * that it is absent, and it is not read.
 *
 * An operand's `offset` from its pointer and its strides are in bytes. They are multiples of
 * the element's size (2 for block types), and so is the pointer. The innermost extent is
 * contiguous, in whole blocks for block types; only copy takes a step there. 64-bit fields
 * come first and structs are padded to 8 bytes, so that all dialects lay them out alike.
 *
 * Kernels with `_type` fields take any mix of storage types at run time and are compiled
 * once. The others are compiled for a type ACT of their activations and a type WGT of
 * their weight or mask; kernels.def lists both kinds and the pairs of types.
 *
 * The grid is one-dimensional, of at most 2^31 - 1 groups. The host launches nothing where
 * an extent is zero; only k of a matmul may be zero. */
#ifndef KERNELS_ARGS_H
#define KERNELS_ARGS_H

#ifndef KERNEL /* a host's file, without a dialect */
#include <stdint.h>
typedef int64_t i64;
typedef uint64_t u64;
#endif

/* Storage types; the values are those of enum hw_dtype. 0: absent. */
enum storage {
    STORAGE_F32 = 1,
    STORAGE_F16 = 2,
    STORAGE_BF16 = 3,
    STORAGE_I8 = 4,
    STORAGE_I32 = 5,
    STORAGE_I64 = 6,
    STORAGE_Q8_0 = 7,
    STORAGE_Q4_0 = 8,
    STORAGE_I16 = 100 /* no dtype: how copy moves f16 and bf16 unchanged */
};

/* An operand's first element and the strides of up to three outer extents, outermost first.
 * Stride 0 repeats. Rows of a row kernel are numbered r = (i0 * n1 + i1) * n2 + i2. */
struct place {
    i64 offset, stride[3];
};

/* matmul(c, a, b, bias): c = a . b + bias, for matrices numbered batch = i0 * batch1 + i1.
 *
 * stride[0] and stride[1] are those of the batches, stride[2] of the stored matrix: a is
 * stored [m,k], or [k,m] if transpose_a; b [k,n], or [n,k] if transpose_b, which q8_0 and
 * q4_0 must be; bias [n]. a, bias, c: f32 f16 bf16; b: these, q8_0, q4_0.
 * A group: MATMUL_ROWS x MATMUL_COLS of c. Groups, the last factor running fastest:
 * batches * ceil(m / MATMUL_ROWS) * ceil(n / MATMUL_COLS).
 *
 * matmul_vec, same arguments, for m <= MATMUL_VEC_ROWS (decoding), transpose_b, no
 * transpose_a: dot products along k. A group: all m rows of MATMUL_VEC_COLS columns of c.
 * Groups: batches * ceil(n / MATMUL_VEC_COLS). */
#define MATMUL_ROWS     64
#define MATMUL_COLS     64
#define MATMUL_VEC_ROWS 8
#define MATMUL_VEC_COLS 8
struct matmul_args {
    struct place c, a, b;
    i64 bias_offset;
    i64 batch1, m, n, k;
    int c_type, a_type, b_type, bias_type; /* bias_type 0: no bias */
    int transpose_a, transpose_b;
};

/* rmsnorm(y, x, weight): y = x * weight / sqrt(mean(x^2) + eps).
 * A group: one row. Groups: rows. y may be x. */
struct rmsnorm_args {
    struct place y, x;
    i64 weight_offset;
    i64 n1, n2, cols;
    float eps;
    int has_weight;
};

/* add_rmsnorm(y, residual, x, weight): residual += x, rounded as stored; y =
 * rmsnorm(residual). A group: one row. Groups: rows. y may be x. */
struct add_rmsnorm_args {
    struct place y, residual, x;
    i64 weight_offset;
    i64 n1, n2, cols;
    float eps;
    int has_weight;
};

/* softmax(y, x, mask): y = exp(t - max t) / sum, t = scale * x + mask; log_form: its
 * logarithm. mask_step: 1, or 0 where the mask's last extent is 1. The mask is of type WGT.
 * A group: one row. Groups: rows. y may be x. */
struct softmax_args {
    struct place y, x, mask;
    i64 n1, n2, cols;
    float scale; /* as it counts: 1 where the op says 0 */
    int has_mask, mask_step, log_form;
};

/* silu(y, x): y = x / (1 + e^-x). y may be x.
 * A group: ELEMENT_SPAN neighbours of a row. Groups: rows * ceil(cols / ELEMENT_SPAN).
 * The host makes rows long: a contiguous tensor is one row. */
#define ELEMENT_SPAN 4096
struct silu_args {
    struct place y, x;
    i64 n1, n2, cols;
};

/* add(y, a, b), mul(y, a, b): y = a + b, y = a * b. b_step: 1, or 0 where b's last extent
 * is 1 and y's is not; then the host has put that operand in b. flat: 1 where that is so of
 * both. y may be a or b. Groups as silu. */
struct binary_args {
    struct place y, a, b;
    i64 n1, n2, cols;
    int b_step, flat;
};

/* swiglu(y, gate, up): y = silu(gate) * up. Packed: the same pointer twice, `up.offset`
 * cols elements after `gate.offset`. y may be gate or up. Groups as silu. */
struct swiglu_args {
    struct place y, gate, up;
    i64 n1, n2, cols;
};

/* rope(y, x, positions, factors): rotates pairs of x[batch, token, head, 0..dims) by the
 * angle position * scale * theta^(-2i/dims) / factors[i]. y may be x.
 *
 * Angles are in turns, as fractions of 2^64, so that position * frequency is exact modulo a
 * turn in plain integers: frequency = scale / (2 pi) * 2^64, the first pair's; ratio =
 * theta^(-2/dims) * 2^64, from each pair's to the next. Both made in double, both below one
 * turn: scale < 2 pi, theta > 1. stride[0..2]: batch, token, head. positions: i32 [tokens],
 * contiguous, or absent: start + token. factors: f32 [dims/2], positive. Elements dims..
 * are copied.
 * A group: all heads of one token. Groups: batches * tokens. */
struct rope_args {
    struct place y, x;
    i64 positions_offset, factors_offset;
    i64 start, tokens, heads, head_dim, dims;
    u64 frequency, ratio;
    int interleaved, has_positions, has_factors, reserved;
};

/* attention(y, q, k, v, bias, lengths): y = softmax(scale q k^T + bias, masked) . v.
 *
 * stride[0..2]: batch, token, head; of bias: batch, head, query. head_dim, value_dim <=
 * 256. length: keys in use, at most keys_max, unless has_lengths: then lengths (i32
 * [batches], contiguous) says, clamped to 0..keys_max. With length L, query i has position
 * L - queries + i; causal: it sees keys up to there; window > 0: only the last `window`
 * keys up to there. softcap > 0: scores become softcap * tanh(score / softcap), before the
 * bias. q, y, bias: f32 f16 bf16; k, v: these, q8_0, q4_0.
 * A group: ATTENTION_ROWS of the queries * (heads / kv_heads) rows that read one head of k
 * and v.
 * Groups: batches * kv_heads * ceil(queries * heads / kv_heads / ATTENTION_ROWS). */
#define ATTENTION_ROWS    8
#define ATTENTION_MAX_DIM 256
struct attention_args {
    struct place y, q, k, v, bias;
    i64 lengths_offset;
    i64 length, keys_max, window, queries, heads, kv_heads;
    int head_dim, value_dim;
    int y_type, q_type, k_type, v_type, bias_type; /* bias_type 0: no bias */
    int causal, has_lengths;
    float scale, softcap; /* scale as it counts; softcap 0: none */
    int reserved;
};

/* get_rows(y, table, rows): y[i,:] = table[rows[i],:], zeros for a row outside the table.
 * set_rows(table, x, rows): table[rows[i],:] = x[i,:], skipped for a row outside the table.
 * `to` and `from`: stride[2] is from row to row. rows: i32 [count], contiguous. get_rows:
 * from any type to f32 f16 bf16; set_rows: from these to these, q8_0 or q4_0.
 * A group: one row i. Groups: count. */
struct rows_args {
    struct place to, from;
    i64 rows_offset;
    i64 table_rows, cols;
    int to_type, from_type;
};

/* copy(dst, src): dst = src, rows of up to three outer extents, elements `step` bytes
 * apart. Floats convert to any float; block types to any float, floats to q8_0 and q4_0
 * (rounded as GGML does). Equal types move bit for bit: the host passes integers of their
 * size for both (f32 as i32, f16 and bf16 as i16, rows of blocks as rows of i8); i8 i16 i32
 * i64 only go to themselves. With a block type both sides are contiguous: its own step is not
 * read, that of the floats is their size.
 * Groups as silu. */
struct copy_args {
    struct place dst, src;
    i64 n1, n2, cols;
    i64 dst_step, src_step;
    int dst_type, src_type;
};

/* argmax(y, x): y[r] = index of the first largest element of row r, as i32; a NaN counts
 * as the largest. y's stride[0..2] are those of its elements. A group: one row.
 * Groups: rows. */
struct argmax_args {
    struct place y, x;
    i64 n1, n2, cols;
};

#endif
