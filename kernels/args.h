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
 * their weight; kernels.def lists both kinds and the pairs of types.
 *
 * The grid is one-dimensional, of at most 2^31 - 1 groups. The host launches nothing where
 * the output is empty. Of the other extents, these may be zero: k and experts of products, cols
 * of dot, head_dim and keys_max of attention, table_rows. */
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
    STORAGE_Q4_K = 9,
    STORAGE_Q5_K = 10,
    STORAGE_Q6_K = 11,
    STORAGE_Q4_1 = 12,
    STORAGE_Q5_0 = 13,
    STORAGE_Q5_1 = 14,
    STORAGE_I16 = 100 /* no dtype: how copy moves f16 and bf16 unchanged */
};

/* An operand's first element and the strides of up to three outer extents, outermost first.
 * Stride 0 repeats. Rows of a row kernel are numbered r = (i0 * n1 + i1) * n2 + i2. */
struct place {
    i64 offset, stride[3];
};

/* The three outer extents of an operand that repeats: an index counts modulo these. */
struct extents {
    i64 n[3];
};

/* matmul(c, a, b, bias): c = a . b + bias, for matrices numbered batch = i0 * batch1 + i1.
 *
 * stride[0] and stride[1] are those of the batches, stride[2] of the stored matrix: a is
 * stored [m,k], or [k,m] if transpose_a; b [k,n], or [n,k] if transpose_b, which block types
 * must be; bias [n]. a, bias, c: f32 f16 bf16; b: these and block types.
 * As many neighbouring batches of c share one of a as a_repeat says, along i0 and i1; so do
 * those of b.
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
    i64 a_repeat0, a_repeat1, b_repeat0, b_repeat1;
    int c_type, a_type, b_type, bias_type; /* bias_type 0: no bias */
    int transpose_a, transpose_b;
};

/* matmul_id(c, a, b, ids, bias): c[t,u] = a[t,u] . b[e]^T + bias[e], e = ids[t,u], zeros for
 * an e outside 0..experts-1. stride[1] and stride[2] are those of token and choice, of b those
 * of expert and row; stride[2] of a is 0 where the choices of a token share its row. ids: i32
 * [tokens,used], bias [experts,n], rows of both `_stride` apart. tokens * used < 2^31.
 * Types as in matmul.
 * A group: MATMUL_COLS columns of all rows that choose one expert, or, as the last expert, none
 * that exists. Groups, the last factor running fastest: (experts + 1) *
 * ceil(n / MATMUL_COLS).
 *
 * matmul_id_vec, same arguments, for few rows (decoding): dot products along k. A group:
 * MATMUL_VEC_COLS columns of one row. Groups: tokens * used * ceil(n / MATMUL_VEC_COLS). */
struct matmul_id_args {
    struct place c, a, b;
    i64 ids_offset, ids_stride, bias_offset, bias_stride;
    i64 tokens, used, experts, n, k;
    int c_type, a_type, b_type, bias_type; /* bias_type 0: no bias */
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

/* layernorm(y, x, weight, bias): y = (x - mean) / sqrt(variance + eps) * weight + bias. Weight
 * and bias are of type WGT. A group: one row. Groups: rows. y may be x. */
struct layernorm_args {
    struct place y, x;
    i64 weight_offset, bias_offset;
    i64 n1, n2, cols;
    float eps;
    int has_weight, has_bias, reserved;
};

/* softmax(y, x, mask, slopes, sinks): y = exp(t - max) / sum, t = scale * x + slope * mask;
 * log_form: its logarithm. mask: f32 f16 bf16, repeats as mask_extents say. mask_step: 1, or
 * 0 where its last extent is 1. slopes, sinks: f32 [n1], contiguous; a row takes the one of
 * its i1. A sink counts in max and sum like another t. A mask of -inf stays -inf.
 * A group: one row. Groups: rows. y may be x. */
struct softmax_args {
    struct place y, x, mask;
    struct extents mask_extents;
    i64 slopes_offset, sinks_offset;
    i64 n1, n2, cols;
    float scale;   /* as it counts: 1 where the op says 0 */
    int mask_type; /* 0: no mask */
    int mask_step, log_form, has_slopes, has_sinks;
};

/* silu(y, x): y = x / (1 + e^-x). y may be x.
 * A group: ELEMENT_SPAN neighbours of a row. Groups: rows * ceil(cols / ELEMENT_SPAN).
 * The host makes rows long: a contiguous tensor is one row. */
#define ELEMENT_SPAN 4096
struct silu_args {
    struct place y, x;
    i64 n1, n2, cols;
};

/* scale(y, x): y = scale * x + bias. y may be x. Groups as silu. */
struct scale_args {
    struct place y, x;
    i64 n1, n2, cols;
    float scale, bias;
};

/* add mul sub div(y, a, b): y = a + b, a * b, a - b, a / b. b_step: 1, or 0 where b has one
 * value per row. y may be a or b. Groups as silu. */
struct binary_args {
    struct place y, a, b;
    i64 n1, n2, cols;
    int b_step, reserved;
};

/* binary(y, a, b): the same for any mix of f32 f16 bf16, and for inputs that repeat: index i
 * of y reads index i % period of an input. y may be an input of its type that does not
 * repeat. Groups as silu. */
enum binary_kind { BINARY_ADD, BINARY_MUL, BINARY_SUB, BINARY_DIV };
struct period {
    i64 outer[3], cols;
};
struct mixed_binary_args {
    struct place y, a, b;
    struct period a_period, b_period;
    i64 n1, n2, cols;
    int y_type, a_type, b_type, kind;
};

/* swiglu(y, gate, up): y = silu(gate) * up. Packed: the same pointer twice, `up.offset`
 * cols elements after `gate.offset`. y may be gate or up. Groups as silu. */
struct swiglu_args {
    struct place y, gate, up;
    i64 n1, n2, cols;
};

/* The function of activation and glu. */
enum activation_kind {
    ACTIVATION_RELU = 1, /* the values are those of enum hw_activation_kind */
    ACTIVATION_LEAKY_RELU = 2,
    ACTIVATION_ELU = 3,
    ACTIVATION_SIGMOID = 4,
    ACTIVATION_TANH = 5,
    ACTIVATION_GELU = 6,
    ACTIVATION_GELU_TANH = 7,
    ACTIVATION_GELU_QUICK = 8,
    ACTIVATION_SILU = 9,
    ACTIVATION_CLIP = 10
};
struct activation {
    int kind;
    float alpha; /* as it counts */
    float lo, hi;
};

/* activation(y, x): y = f(x), of one type, f32 f16 bf16. y may be x. Groups as silu. */
struct activation_args {
    struct place y, x;
    i64 n1, n2, cols;
    struct activation f;
    int type, reserved;
};

/* glu(y, gate, up): y = f(gate) * up. Operands as swiglu, of one type. Groups as silu. */
struct glu_args {
    struct place y, gate, up;
    i64 n1, n2, cols;
    struct activation f;
    int type, reserved;
};

/* rope(y, x, positions, factors): rotates pairs of x[batch, token, head, 0..dims) by the
 * angle position * frequency(i) / factors[i], and multiplies them by magnitude. y may be x.
 *
 * Angles are in turns, as fractions of 2^64, so that position * frequency is exact modulo a
 * turn in plain integers: frequency = scale / (2 pi) * 2^64, the first pair's; ratio =
 * theta^(-2/dims) * 2^64, from each pair's to the next. Both made in double, both below one
 * turn: scale < 2 pi, theta > 1. ramped: the frequency of pair i is reduced by the share
 * (reduction + n * step) / 2^64 of it, n = i - ramp_first, clamped to 0..ramp_length; all
 * these shares are below 1; step may be negative, modulo 2^64. stride[0..2]: batch, token,
 * head. positions: i32 [tokens], contiguous, or absent: start + token. factors: f32
 * [dims/2], positive. Elements dims.. are copied.
 * A group: all heads of one token. Groups: batches * tokens. */
struct rope_args {
    struct place y, x;
    i64 positions_offset, factors_offset;
    i64 start, tokens, heads, head_dim, dims;
    i64 ramp_first, ramp_length;
    u64 frequency, ratio, reduction, step;
    int interleaved, has_positions, has_factors, ramped;
    float magnitude;
    int reserved;
};

/* attention(y, q, k, v, bias, slopes, sinks, lengths): y = softmax(scale q k^T + slope *
 * bias, masked) . v.
 *
 * stride[0..2]: batch, token, head; of bias, which repeats as bias_extents say: batch, head,
 * query. head_dim, value_dim <= ATTENTION_MAX_DIM. length: keys in use, at most keys_max,
 * unless has_lengths: then lengths (i32 [batches], contiguous) says, clamped to 0..keys_max.
 * With length L, query i has position L - queries + i; causal: it sees keys up to there;
 * window > 0: only the last `window` keys up to there. softcap > 0: scores become softcap *
 * tanh(score / softcap), before the bias. slopes, sinks: f32 [heads], contiguous. With slopes
 * and without a bias, the bias is -|key - position|. A bias of -inf stays -inf. A sink counts
 * in the softmax like the score of another key, but has no value. q, y, bias: f32 f16 bf16;
 * k, v: any storage that load_piece() reads.
 * A group: ATTENTION_ROWS of the queries * (heads / kv_heads) rows that read one head of k
 * and v.
 * Groups: batches * kv_heads * ceil(queries * heads / kv_heads / ATTENTION_ROWS). */
#define ATTENTION_ROWS    8
#define ATTENTION_MAX_DIM 576
struct attention_args {
    struct place y, q, k, v, bias;
    struct extents bias_extents;
    i64 slopes_offset, sinks_offset, lengths_offset;
    i64 length, keys_max, window, queries, heads, kv_heads;
    int head_dim, value_dim;
    int y_type, q_type, k_type, v_type, bias_type; /* bias_type 0: no bias */
    int causal, has_slopes, has_sinks, has_lengths;
    float scale, softcap; /* scale as it counts; softcap 0: none */
    int reserved;
};

/* get_rows(y, table, rows): y[i,:] = table[rows[i],:], zeros for a row outside the table.
 * set_rows(table, x, rows): table[rows[i],:] = x[i,:], skipped for a row outside the table.
 *
 * stride[0] and stride[1] are those of batches, numbered i0 * batch1 + i1; stride[2] of `to`
 * and `from` is from row to row, that of `rows` from number to number: i32 or i64. `from` of
 * get_rows and `rows` repeat. get_rows: from floats and blocks to f32 f16 bf16; set_rows: from
 * these to floats and blocks.
 * A group: one row i of a batch. Groups: batches * count. */
struct rows_args {
    struct place to, from, rows;
    struct extents from_extents, rows_extents;
    i64 batch1, count;
    i64 table_rows, cols;
    int to_type, from_type, rows_type, reserved;
};

/* copy(dst, src): dst = src, rows of up to three outer extents, elements `step` bytes
 * apart. Floats convert to any float and any block type (rounded as GGML does), block types
 * to any float. Equal types move bit for bit: the host passes integers of their
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

/* top_k(indices, x, values): in row r, the k largest elements, the largest first and of equals
 * the first: their indices, as i32, and what they are. A NaN counts as the largest. k <=
 * TOP_K_MAX and cols. A group: one row. Groups: rows. */
#define TOP_K_MAX 1024
struct top_k_args {
    struct place indices, x, values;
    i64 n1, n2, cols;
    int k, has_values;
};

/* dot(y, a, b): y[r] = the sum of a[r,:] * b[r,:]. y's stride[0..2] are those of its elements.
 * f32 f16 bf16. A group: one row. Groups: rows. */
struct dot_args {
    struct place y, a, b;
    i64 n1, n2, cols;
    int y_type, a_type, b_type, reserved;
};

/* conv2d(y, x, weight, bias): y[b,o,i,j] = bias[o] + the sum of weight[o,c,p,q] *
 * x[b, first + c, i stride_h + p dilation_h - pad_h, j stride_w + q dilation_w - pad_w] over c,
 * p and q, with zeros outside of x, and first = o / outs * ins. stride[0..2]: those of the first
 * three extents. outs, ins: channels of y and x in each of `groups`. flat: the ins *
 * kernel_height * kernel_width weights of an o are contiguous. bias [groups * outs]. f32 f16
 * bf16.
 * A group: MATMUL_COLS neighbours of the planes of MATMUL_ROWS channels of y. Groups, the last
 * factor running fastest: batches * groups * ceil(outs / MATMUL_ROWS) *
 * ceil(out_height * out_width / MATMUL_COLS). */
struct conv2d_args {
    struct place y, x, weight;
    i64 bias_offset;
    i64 groups, outs, ins;
    i64 height, width, out_height, out_width, kernel_height, kernel_width;
    i64 stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
    int y_type, x_type, weight_type, bias_type; /* bias_type 0: no bias */
    int flat, reserved;
};

#endif
