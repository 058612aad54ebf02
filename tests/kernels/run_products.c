/* SPDX-License-Identifier: MIT */
/* run_products.c - matmul and attention, in mixes of storage types. */
#include "run.h"

/* ---- matmul ---- */

struct matmul_shape {
    int m, n, k, transpose_a, transpose_b;
};

struct matmul_types {
    int c, a, b, bias; /* bias 0: none */
};

/* Two batches that share b. a is padded, so that strides differ from extents. Uses matmul_vec where
 * possible. */
static void matmul_case(struct matmul_shape s, struct matmul_types type)
{
    const i64 a_rows = s.transpose_a ? s.k : s.m, a_cols = (s.transpose_a ? s.m : s.k) + 3;
    const i64 b_rows = s.transpose_b ? s.n : s.k, b_cols = s.transpose_b ? s.k : s.n;
    struct array a = random_array(type.a, 2 * a_rows * a_cols, 1);
    struct array b = random_array(type.b, b_rows * b_cols, 1);
    struct array bias = random_array(type.bias ? type.bias : STORAGE_F32, s.n, 1);
    struct array c = new_array(type.c, 2 * s.m * s.n), d = new_array(type.c, 2 * s.m * s.n);
    double *want = numbers(2 * s.m * s.n);
    const struct matmul_args p = { .c = packed(type.c, 2, s.m, s.n),
                                   .a = packed(type.a, 2, a_rows, a_cols),
                                   .b.stride[2] = bytes_of(type.b, b_cols),
                                   .batch1 = 2,
                                   .a_repeat0 = 1,
                                   .a_repeat1 = 1,
                                   .b_repeat0 = 1,
                                   .b_repeat1 = 2,
                                   .m = s.m,
                                   .n = s.n,
                                   .k = s.k,
                                   .c_type = type.c,
                                   .a_type = type.a,
                                   .b_type = type.b,
                                   .bias_type = type.bias,
                                   .transpose_a = s.transpose_a,
                                   .transpose_b = s.transpose_b };
    for (i64 i = 0; i < 2 * s.m * s.n; i++) {
        const i64 y = i / s.n % s.m, x = i % s.n, at = i / s.n / s.m * a_rows * a_cols;
        want[i] = type.bias ? get(bias, x) : 0;
        for (i64 k = 0; k < s.k; k++)
            want[i] += get(a, at + (s.transpose_a ? k * a_cols + y : y * a_cols + k)) *
                       get(b, s.transpose_b ? x * b_cols + k : k * b_cols + x);
    }
    const u8 *bias_at = type.bias ? bias.at : NULL;
    LAUNCH(&portable_mixed_base, matmul,
           2 * pieces(s.m, MATMUL_ROWS) * pieces(s.n, MATMUL_COLS), &p, c.at, a.at, b.at,
           bias_at);
    check("matmul", c, want, 1e-5);
    if (s.m <= MATMUL_VEC_ROWS && s.transpose_b && !s.transpose_a) {
        LAUNCH(&portable_mixed_base, matmul_vec, 2 * pieces(s.n, MATMUL_VEC_COLS), &p, d.at,
               a.at, b.at, bias_at);
        check("matmul_vec", d, want, 1e-5);
    }
    release();
}

static void test_matmul(void **state)
{
    static const struct matmul_shape shapes[] = {
        { 1, 1, 1, 0, 1 },     { 37, 45, 51, 0, 0 }, { 37, 45, 51, 1, 0 },
        { 65, 129, 33, 0, 1 }, { 7, 70, 300, 1, 1 }, { 5, 9, 700, 0, 1 },
        { 1, 17, 257, 0, 1 },  { 8, 3, 31, 0, 1 },   { 3, 5, 0, 0, 1 },
    };
    static const struct matmul_shape blocks[] = { { 1, 13, 288, 0, 1 },
                                                  { 9, 65, 96, 0, 1 } };
    static const struct matmul_shape supers[] = { { 1, 13, 512, 0, 1 },
                                                  { 9, 65, 256, 0, 1 } };
    (void)state;
    for (int a = STORAGE_F32; a <= STORAGE_BF16; a++)
        for (int b = STORAGE_F32; b <= STORAGE_BF16; b++)
            for (int i = 0; i < (int)COUNT(shapes); i++)
                matmul_case(shapes[i],
                            (struct matmul_types){ .c = 1 + (a + b) % 3,
                                                   .a = a,
                                                   .b = b,
                                                   .bias = (a + 2 * b + i) % 4 });
    for (int a = STORAGE_F32; a <= STORAGE_BF16; a++)
        for (int b = STORAGE_Q8_0; b <= STORAGE_Q5_1; b++)
            for (size_t i = 0; i < COUNT(blocks); i++)
                matmul_case(
                    hw_dtype_block(b) == 256 ? supers[i] : blocks[i],
                    (struct matmul_types){ .c = STORAGE_F32, .a = a, .b = b, .bias = a });
}

/* ---- matmul_id ---- */

struct choices {
    int tokens, used, experts, n, k, shared;
};

/* Every third id selects no expert, the others crowd the first experts. Rows of a and ids are
 * padded. */
static void matmul_id_case(struct choices s, struct matmul_types type)
{
    const i64 rows = (i64)s.tokens * s.used, a_used = s.shared ? 1 : s.used;
    const i64 a_cols = s.k + 3, id_cols = s.used + 1;
    struct array a = random_array(type.a, s.tokens * a_used * a_cols, 1);
    struct array b = random_array(type.b, (i64)s.experts * s.n * s.k, 1);
    struct array bias = random_array(type.bias ? type.bias : STORAGE_F32,
                                     (i64)s.experts * s.n, 1);
    struct array c = new_array(type.c, rows * s.n), d = new_array(type.c, rows * s.n);
    double *want = numbers(rows * s.n);
    int *ids = hold((size_t)(s.tokens * id_cols) * sizeof *ids);
    const struct matmul_id_args p = {
        .c = packed(type.c, s.tokens, s.used, s.n),
        .a.stride = { 0, a_used * bytes_of(type.a, a_cols),
                      s.shared ? 0 : bytes_of(type.a, a_cols) },
        .b = packed(type.b, s.experts, s.n, s.k),
        .ids_stride = id_cols * (i64)sizeof *ids,
        .bias_stride = bytes_of(bias.type, s.n),
        .tokens = s.tokens,
        .used = s.used,
        .experts = s.experts,
        .n = s.n,
        .k = s.k,
        .c_type = type.c,
        .a_type = type.a,
        .b_type = type.b,
        .bias_type = type.bias,
    };
    for (i64 r = 0; r < rows; r++) {
        static const int outside[] = { -1, 1 << 30, -0x7fffffff };
        const i64 t = r / s.used, u = r % s.used;
        const int id = r % 3 == 2 ? outside[r / 3 % 3] : (int)(r * r % 5 % s.experts);
        ids[t * id_cols + u] = id;
        for (i64 x = 0; x < s.n && r % 3 != 2; x++) {
            const i64 row = (i64)id * s.n + x;
            double *sum = &want[r * s.n + x];
            *sum = type.bias ? get(bias, row) : 0;
            for (i64 k = 0; k < s.k; k++)
                *sum += get(a, (t * a_used + (s.shared ? 0 : u)) * a_cols + k) *
                        get(b, row * s.k + k);
        }
    }
    const u8 *bias_at = type.bias ? bias.at : NULL;
    LAUNCH(&portable_mixed_base, matmul_id, (s.experts + 1) * pieces(s.n, MATMUL_COLS), &p,
           c.at, a.at, b.at, ids, bias_at);
    check("matmul_id", c, want, 1e-5);
    LAUNCH(&portable_mixed_base, matmul_id_vec, rows * pieces(s.n, MATMUL_VEC_COLS), &p,
           d.at, a.at, b.at, ids, bias_at);
    check("matmul_id_vec", d, want, 1e-5);
    release();
}

static void test_matmul_id(void **state)
{
    static const struct choices shapes[] = {
        { 1, 1, 1, 1, 1, 0 },     { 3, 2, 4, 65, 33, 1 },  { 70, 3, 2, 9, 64, 0 },
        { 200, 1, 3, 70, 31, 0 }, { 9, 5, 1, 17, 288, 1 }, { 5, 2, 3, 5, 0, 1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int t = STORAGE_F32; t <= STORAGE_BF16; t++)
            matmul_id_case(shapes[i], (struct matmul_types){ .c = t,
                                                             .a = 1 + t % 3,
                                                             .b = 1 + (t + 1) % 3,
                                                             .bias = ((int)i + t) % 4 });
    for (int b = STORAGE_Q8_0; b <= STORAGE_Q5_1; b++)
        matmul_id_case(
            (struct choices){ 40, 2, 2, 67, hw_dtype_block(b) == 256 ? 512 : 96, 1 },
            (struct matmul_types){ .c = STORAGE_F32, .a = STORAGE_F32, .b = b });
}

/* ---- conv2d ---- */

struct conv_shape {
    int batches, groups, ins, outs, height, width, kernel_height, kernel_width;
    int stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, flat;
};

static double conv2d_at(struct conv_shape s, struct array x, struct array w, i64 image,
                        int o, i64 i, i64 j)
{
    double sum = 0;
    for (int c = 0; c < s.ins; c++)
        for (int p = 0; p < s.kernel_height; p++)
            for (int q = 0; q < s.kernel_width; q++) {
                const i64 row = i * s.stride_h + p * s.dilation_h - s.pad_h;
                const i64 col = j * s.stride_w + q * s.dilation_w - s.pad_w;
                if (row >= 0 && row < s.height && col >= 0 && col < s.width)
                    sum += get(x, ((image * s.ins + c) * s.height + row) * s.width + col) *
                           get(w, ((o * s.ins + c) * s.kernel_height + p) * s.kernel_width +
                                      q);
            }
    return sum;
}

/* y[batch, group and channel, row, column] */
static void conv2d_case(struct conv_shape s, struct matmul_types type)
{
    const i64 taps = (i64)s.ins * s.kernel_height * s.kernel_width;
    const i64 rows = (s.height + 2 * s.pad_h - s.dilation_h * (s.kernel_height - 1) - 1) /
                         s.stride_h +
                     1;
    const i64 cols =
        (s.width + 2 * s.pad_w - s.dilation_w * (s.kernel_width - 1) - 1) / s.stride_w + 1;
    const i64 channels = (i64)s.groups * s.outs, plane = rows * cols;
    struct array x =
        random_array(type.a, (i64)s.batches * s.groups * s.ins * s.height * s.width, 1);
    struct array w = random_array(type.b, channels * taps, 1);
    struct array bias = random_array(type.bias ? type.bias : STORAGE_F32, channels, 1);
    struct array y = new_array(type.c, s.batches * channels * plane);
    double *want = numbers(y.n);
    const i64 x_row = bytes_of(type.a, s.width), w_row = bytes_of(type.b, s.kernel_width);
    const struct conv2d_args a = {
        .y = packed(type.c, channels, rows, cols),
        .x.stride = { s.groups * s.ins * s.height * x_row, s.height * x_row, x_row },
        .weight.stride = { taps * bytes_of(type.b, 1), s.kernel_height * w_row, w_row },
        .groups = s.groups,
        .outs = s.outs,
        .ins = s.ins,
        .height = s.height,
        .width = s.width,
        .out_height = rows,
        .out_width = cols,
        .kernel_height = s.kernel_height,
        .kernel_width = s.kernel_width,
        .stride_h = s.stride_h,
        .stride_w = s.stride_w,
        .pad_h = s.pad_h,
        .pad_w = s.pad_w,
        .dilation_h = s.dilation_h,
        .dilation_w = s.dilation_w,
        .y_type = type.c,
        .x_type = type.a,
        .weight_type = type.b,
        .bias_type = type.bias,
        .flat = s.flat,
    };
    for (i64 e = 0; e < y.n; e++) {
        const int o = (int)(e / plane % channels);
        want[e] = conv2d_at(s, x, w, e / plane / channels * s.groups + o / s.outs, o,
                            e / cols % rows, e % cols) +
                  (type.bias ? get(bias, o) : 0);
    }
    LAUNCH(&portable_mixed_base, conv2d,
           (i64)s.batches * s.groups * pieces(s.outs, MATMUL_ROWS) *
               pieces(plane, MATMUL_COLS),
           &a, y.at, x.at, w.at, type.bias ? bias.at : NULL);
    check("conv2d", y, want, 1e-5);
    release();
}

static void test_conv2d(void **state)
{
    /* batches, groups, channels; extents of x and of the kernel; strides, pads, dilations. */
    static const struct conv_shape shapes[] = {
        { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
        { 2, 1, 5, 67, 9, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
        { 1, 3, 2, 3, 11, 33, 2, 5, 2, 3, 0, 4, 3, 2, 0 },
        { 1, 7, 1, 1, 8, 70, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
        { 2, 1, 40, 5, 4, 4, 1, 1, 1, 1, 0, 0, 1, 1, 0 },
        { 1, 1, 3, 9, 2, 3, 5, 4, 1, 2, 3, 7, 1, 1, 1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int t = STORAGE_F32; t <= STORAGE_BF16; t++)
            conv2d_case(shapes[i], (struct matmul_types){ .c = t,
                                                          .a = 1 + t % 3,
                                                          .b = 1 + (t + 1) % 3,
                                                          .bias = ((int)i + t) % 4 });
}

/* ---- attention ---- */

struct attention_shape {
    int batches, queries, keys_max, heads, kv_heads, dim, value_dim;
    int q_type, k_type, v_type, bias_type; /* bias_type 0: none */
    int length, causal, window;
    float softcap;
    int slopes, sinks; /* given or not */
    int bias_heads;    /* bias is [bias_heads,queries,keys_max]; 0: one for each head */
};

static const double attention_scale = 0.125;

struct attention_case {
    struct attention_shape s;
    struct array q, k, v, bias;
    float slopes[8], sinks[8];
};

/* One query of one head, its row of q and y, and the row of k and v that holds its key 0. */
struct attention_query {
    i64 query, head, row, keys;
    int length; /* keys in use */
};

/* Slope times bias, of one key. */
static double attention_bias(const struct attention_case *c, struct attention_query at,
                             i64 key)
{
    const struct attention_shape s = c->s;
    const i64 head = at.head % (s.bias_heads ? s.bias_heads : s.heads);
    const double slope = s.slopes ? (double)c->slopes[at.head] : 1;
    const double bias = s.bias_type
                            ? get(c->bias, (head * s.queries + at.query) * s.keys_max + key)
                            : -fabs((double)(key - (at.length - s.queries + at.query)));
    return bias == -INFINITY ? bias : slope * bias;
}

/* The scores of all keys in use; returns the largest. */
static double attention_scores(const struct attention_case *c, struct attention_query at,
                               double *scores)
{
    const struct attention_shape s = c->s;
    const i64 position = at.length - s.queries + at.query;
    const i64 last = s.causal && position < at.length - 1 ? position : at.length - 1;
    double top = -INFINITY;
    for (i64 j = 0; j < at.length; j++) {
        double dot = 0;
        for (int d = 0; d < s.dim; d++)
            dot += get(c->q, at.row * s.dim + d) *
                   get(c->k, (at.keys + j * s.kv_heads) * s.dim + d);
        dot *= attention_scale;
        if (s.softcap > 0)
            dot = (double)s.softcap * tanh(dot / (double)s.softcap);
        if (s.bias_type || s.slopes)
            dot += attention_bias(c, at, j);
        const int hidden = (s.causal && j > position) || (s.window && j <= last - s.window);
        scores[j] = hidden ? -INFINITY : dot;
        top = fmax(top, scores[j]);
    }
    return top;
}

/* The row of y: zeros where no key is seen. */
static void attention_row(const struct attention_case *c, struct attention_query at,
                          double *scores, double *y)
{
    const int dim = c->s.value_dim;
    const double top = attention_scores(c, at, scores);
    double sum = c->s.sinks ? exp((double)c->sinks[at.head] - top) : 0;
    if (top == -INFINITY)
        return;
    for (i64 j = 0; j < at.length; j++)
        sum += exp(scores[j] - top);
    for (int d = 0; d < dim; d++)
        for (i64 j = 0; j < at.length; j++)
            y[d] += exp(scores[j] - top) / sum *
                    get(c->v, (at.keys + j * c->s.kv_heads) * dim + d);
}

static int clamped(int length, int keys_max)
{
    return length < 0 ? 0 : length > keys_max ? keys_max : length;
}

/* Several batches have their own lengths: one unchanged, one beyond the cache, one below zero. */
static void attention_case(struct attention_shape s)
{
    const i64 queries = (i64)s.queries * s.heads, keys = (i64)s.keys_max * s.kv_heads;
    struct attention_case c = { .s = s };
    c.q = random_array(s.q_type, s.batches * queries * s.dim, 2);
    c.k = random_array(s.k_type, s.batches * keys * s.dim, 2);
    c.v = random_array(s.v_type, s.batches * keys * s.value_dim, 2);
    c.bias = random_array(s.bias_type ? s.bias_type : STORAGE_F32, queries * s.keys_max, 2);
    for (i64 i = 0; s.slopes && s.bias_type && i < c.bias.n; i += 5)
        put(c.bias, i, -INFINITY);
    for (int h = 0; h < s.heads; h++) {
        c.slopes[h] = 0.1f * (float)h; /* the first is 0 */
        c.sinks[h] = 3.0f * (float)random_unit();
    }
    struct array y = new_array(s.q_type, s.batches * queries * s.value_dim);
    double *want = numbers(y.n), *scores = numbers(s.keys_max);
    const int lengths[3] = { s.length, s.length + 1000, -1 };
    struct attention_args a = {
        .y = packed(s.q_type, s.queries, s.heads, s.value_dim),
        .q = packed(s.q_type, s.queries, s.heads, s.dim),
        .k = packed(s.k_type, s.keys_max, s.kv_heads, s.dim),
        .v = packed(s.v_type, s.keys_max, s.kv_heads, s.value_dim),
        .bias = packed(c.bias.type, s.heads, s.queries, s.keys_max),
        .bias_extents = { { 1, s.bias_heads ? s.bias_heads : s.heads, s.queries } },
        .length = s.length,
        .keys_max = s.keys_max,
        .window = s.window,
        .queries = s.queries,
        .heads = s.heads,
        .kv_heads = s.kv_heads,
        .head_dim = s.dim,
        .value_dim = s.value_dim,
        .y_type = s.q_type,
        .q_type = s.q_type,
        .k_type = s.k_type,
        .v_type = s.v_type,
        .bias_type = s.bias_type,
        .causal = s.causal,
        .has_slopes = s.slopes,
        .has_sinks = s.sinks,
        .has_lengths = s.batches > 1,
        .scale = (float)attention_scale,
        .softcap = s.softcap,
    };
    a.bias.stride[0] = 0; /* the batches share it */
    for (i64 row = 0; row < s.batches * queries; row++) {
        const i64 batch = row / queries, head = row % s.heads;
        const int length = s.batches > 1 ? lengths[batch] : s.length;
        const struct attention_query at = {
            .query = row / s.heads % s.queries,
            .head = head,
            .row = row,
            .keys = batch * keys + head / (s.heads / s.kv_heads),
            .length = clamped(length, s.keys_max),
        };
        attention_row(&c, at, scores, want + row * s.value_dim);
    }
    LAUNCH(&portable_mixed_base, attention,
           s.batches * s.kv_heads * pieces(queries / s.kv_heads, ATTENTION_ROWS), &a, y.at,
           c.q.at, c.k.at, c.v.at, s.bias_type ? c.bias.at : NULL, c.slopes, c.sinks,
           s.batches > 1 ? lengths : NULL);
    check("attention", y, want, 1e-5);
    release();
}

static void test_attention(void **state)
{
    enum {
        F32 = STORAGE_F32,
        F16 = STORAGE_F16,
        BF16 = STORAGE_BF16,
        Q8_0 = STORAGE_Q8_0,
        Q4_0 = STORAGE_Q4_0,
        Q4_1 = STORAGE_Q4_1,
        Q5_1 = STORAGE_Q5_1,
        Q4_K = STORAGE_Q4_K,
        Q6_K = STORAGE_Q6_K
    };
    /* The extents, then the types of q, k, v and the bias. */
    static const struct attention_shape shapes[] = {
        { 1, 1, 1, 1, 1, 1, 1, F32, F32, F32, 0, .length = 1 },
        { 1, 5, 40, 4, 2, 64, 64, F32, F32, F32, 0, .length = 37, .causal = 1 },
        { 1, 33, 70, 6, 2, 80, 96, F32, F16, F16, 0, .length = 70, .causal = 1 },
        { 1, 1, 300, 8, 1, 128, 128, F16, F16, F16, 0, .length = 277, .causal = 1 },
        { 3, 4, 50, 4, 4, 32, 32, F32, Q8_0, Q8_0, 0, .length = 41, .causal = 1 },
        { 3, 4, 50, 4, 4, 64, 33, F32, Q8_0, F16, 0, .length = 41, .causal = 1 },
        { 3, 4, 50, 4, 4, 33, 64, BF16, F32, Q4_0, 0, .length = 41, .causal = 1 },
        { 3, 7, 19, 2, 1, 256, 256, BF16, BF16, BF16, BF16, .length = 11, .softcap = 30 },
        { 1, 9, 60, 4, 2, 48, 16, F32, BF16, BF16, F32, 60, .causal = 1, .window = 17 },
        { 1, 9, 60, 4, 2, 48, 16, F16, F16, F16, F32, 60, .window = 1, .softcap = 5 },
        { 1, 4, 20, 2, 2, 16, 16, F32, F32, F32, 0, .length = 2, .causal = 1 },
        { 1, 4, 20, 2, 2, 0, 16, F32, F32, F32, 0, .length = 20, .causal = 1 },
        { 1, 3, 35, 4, 1, 576, 512, F32, F16, F16, 0, .length = 35, .causal = 1 },
        { 1, 3, 35, 2, 1, 288, 300, F16, Q8_0, F32, F32, .length = 19 },
        { 1, 5, 35, 4, 2, 64, 64, F32, F32, F32, F16, 33, 1, .bias_heads = 2 },
        { 1, 5, 35, 4, 2, 64, 64, F32, F16, F16, BF16, 33, .slopes = 1, .sinks = 1 },
        { 3, 5, 35, 4, 2, 64, 64, F32, F32, F32, 0, 33, .slopes = 1, .softcap = 3 },
        { 3, 5, 35, 8, 2, 64, 64, F32, F32, F32, 0, 33, 1, .window = 9, .sinks = 1 },
        { 1, 2, 20, 2, 2, 16, 16, F32, F32, F32, 0, .length = 0 },
        { 1, 3, 35, 4, 2, 64, 96, F32, Q5_1, Q4_1, 0, .length = 33, .causal = 1 },
        { 1, 3, 35, 2, 1, 512, 256, F32, Q4_K, Q6_K, 0, .length = 35, .causal = 1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++)
        attention_case(shapes[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_matmul),
    cmocka_unit_test(test_matmul_id),
    cmocka_unit_test(test_conv2d),
    cmocka_unit_test(test_attention),
};
const struct family products_family = { tests, COUNT(tests) };
