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

/* Two batches that share b; a padded, so that strides are not extents. matmul_vec where it
 * may be used. */
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
    LAUNCH(&tests_mixed, matmul, 2 * pieces(s.m, MATMUL_ROWS) * pieces(s.n, MATMUL_COLS),
           &p, c.at, a.at, b.at, bias_at);
    check("matmul", c, want, 1e-5);
    if (s.m <= MATMUL_VEC_ROWS && s.transpose_b && !s.transpose_a) {
        LAUNCH(&tests_mixed, matmul_vec, 2 * pieces(s.n, MATMUL_VEC_COLS), &p, d.at, a.at,
               b.at, bias_at);
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
        for (int b = STORAGE_Q8_0; b <= STORAGE_Q4_0; b++)
            for (size_t i = 0; i < COUNT(blocks); i++)
                matmul_case(blocks[i], (struct matmul_types){
                                           .c = STORAGE_F32, .a = a, .b = b, .bias = a });
}

/* ---- attention ---- */

struct attention_shape {
    int batches, queries, keys_max, heads, kv_heads, dim, value_dim;
    int q_type, kv_type, bias_type; /* bias_type 0: none */
    int length, causal, window;
    float softcap;
};

static const double attention_scale = 0.125;

struct attention_case {
    struct attention_shape s;
    struct array q, k, v, bias;
};

/* One query of one head, its row of q and y, and the row of k and v that its key 0 is. */
struct attention_query {
    i64 query, head, row, keys;
    int length; /* keys in use */
};

/* The scores of all keys in use; answers the largest. */
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
        if (s.bias_type)
            dot += get(c->bias, (at.head * s.queries + at.query) * s.keys_max + j);
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
    double sum = 0;
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

/* Several batches have lengths of their own: one as it is, one beyond the cache, one below
 * zero. */
static void attention_case(struct attention_shape s)
{
    const i64 queries = (i64)s.queries * s.heads, keys = (i64)s.keys_max * s.kv_heads;
    struct attention_case c = { .s = s };
    c.q = random_array(s.q_type, s.batches * queries * s.dim, 2);
    c.k = random_array(s.kv_type, s.batches * keys * s.dim, 2);
    c.v = random_array(s.kv_type, s.batches * keys * s.value_dim, 2);
    c.bias = random_array(s.bias_type ? s.bias_type : STORAGE_F32, queries * s.keys_max, 2);
    struct array y = new_array(s.q_type, s.batches * queries * s.value_dim);
    double *want = numbers(y.n), *scores = numbers(s.keys_max);
    const int lengths[3] = { s.length, s.length + 1000, -1 };
    struct attention_args a = {
        .y = packed(s.q_type, s.queries, s.heads, s.value_dim),
        .q = packed(s.q_type, s.queries, s.heads, s.dim),
        .k = packed(s.kv_type, s.keys_max, s.kv_heads, s.dim),
        .v = packed(s.kv_type, s.keys_max, s.kv_heads, s.value_dim),
        .bias = packed(c.bias.type, s.heads, s.queries, s.keys_max),
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
        .k_type = s.kv_type,
        .v_type = s.kv_type,
        .bias_type = s.bias_type,
        .causal = s.causal,
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
    LAUNCH(&tests_mixed, attention,
           s.batches * s.kv_heads * pieces(queries / s.kv_heads, ATTENTION_ROWS), &a, y.at,
           c.q.at, c.k.at, c.v.at, s.bias_type ? c.bias.at : NULL,
           s.batches > 1 ? lengths : NULL);
    check("attention", y, want, 1e-5);
    release();
}

static void test_attention(void **state)
{
    enum { F32 = STORAGE_F32, F16 = STORAGE_F16, BF16 = STORAGE_BF16, Q8_0 = STORAGE_Q8_0 };
    /* The extents, then the types of q, of k and v, and of the bias. */
    static const struct attention_shape shapes[] = {
        { 1, 1, 1, 1, 1, 1, 1, F32, F32, 0, .length = 1 },
        { 1, 5, 40, 4, 2, 64, 64, F32, F32, 0, .length = 37, .causal = 1 },
        { 1, 33, 70, 6, 2, 80, 96, F32, F16, 0, .length = 70, .causal = 1 },
        { 1, 1, 300, 8, 1, 128, 128, F16, F16, 0, .length = 277, .causal = 1 },
        { 3, 4, 50, 4, 4, 32, 32, F32, Q8_0, 0, .length = 41, .causal = 1 },
        { 3, 7, 19, 2, 1, 256, 256, BF16, BF16, BF16, .length = 11, .softcap = 30 },
        { 1, 9, 60, 4, 2, 48, 16, F32, BF16, F32, .length = 60, .causal = 1, .window = 17 },
        { 1, 9, 60, 4, 2, 48, 16, F16, F16, F32, .length = 60, .window = 1, .softcap = 5 },
        { 1, 4, 20, 2, 2, 16, 16, F32, F32, 0, .length = 2, .causal = 1 },
        { 1, 2, 20, 2, 2, 16, 16, F32, F32, 0, .length = 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++)
        attention_case(shapes[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_matmul),
    cmocka_unit_test(test_attention),
};
const struct family products_family = { tests, COUNT(tests) };
