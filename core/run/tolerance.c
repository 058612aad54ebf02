/* SPDX-License-Identifier: MIT */
/* tolerance.c - the largest difference between two correct results of an op.
 *
 * Conformance allows each element four units of rounding error: see verify/oracle.h. The oracle
 * adds up the error of each element from its terms. The bounds here use only the largest magnitude
 * of each operand, and are never below the oracle's, so this accepts whatever conformance accepts.
 * They are doubled, because both results may have errors. */
#include "run/tolerance.h"

#define UNITS 8.0 /* four for each of the two results */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double magnitude(double x)
{
    return x < 0 ? -x : x;
}

/* A square root, rounded up. The library does not link libm. */
static double root(double x)
{
    double r = x > 1 ? x : 1;
    for (int i = 0; i < 60; i++)
        r = (r + x / r) / 2;
    return r * 1.000001;
}

static double unit_of(int32_t dtype)
{
    return dtype == HW_F16 ? 0x1p-11 : dtype == HW_BF16 ? 0x1p-8 : 0x1p-24;
}

static double given(double value, double otherwise)
{
    return value != 0 ? value : otherwise;
}

static int64_t last(const struct hw_tensor *t, int back)
{
    return t->rank > back ? t->extent[t->rank - 1 - back] : 1;
}

static bool is_block(int32_t dtype)
{
    return hw_dtype_block(dtype) > 1;
}

/* ---- sums of products ---- */

/* A sum of `terms` products of the operands with the numbers `a` and `b`. */
static struct tolerance of_products(uint32_t op, const void *args, uint32_t a, uint32_t b,
                                    double terms, const struct magnitudes *m)
{
    const struct operand_row *rows = op_rows[op].operands;
    const int32_t da = operand_at(args, &rows[a])->dtype,
                  db = operand_at(args, &rows[b])->dtype;
    const double each = m->most[a] * m->most[b], together = root(terms) * each;
    struct tolerance t = { .noise = together, .drift = root(terms) * terms * each };
    if (m->precision != HW_PRECISION_FP32)
        t.stored = unit_of(da == HW_BF16 || db == HW_BF16 ? HW_BF16 : HW_F16);
    if (m->precision == HW_PRECISION_INT8 && (is_block(da) || is_block(db)))
        t.codes = together / 254;
    return t;
}

static struct tolerance of_matmul(const struct hw_matmul *op, const struct magnitudes *m)
{
    const double terms = (double)last(&op->a, op->transpose_a ? 1 : 0);
    struct tolerance t = of_products(HW_OP_MATMUL, op, OPERAND_matmul_a, OPERAND_matmul_b,
                                     terms, m);
    t.drift += m->most[OPERAND_matmul_bias];
    return t;
}

static struct tolerance of_matmul_id(const struct hw_matmul_id *op,
                                     const struct magnitudes *m)
{
    struct tolerance t = of_products(HW_OP_MATMUL_ID, op, OPERAND_matmul_id_a,
                                     OPERAND_matmul_id_b, (double)last(&op->a, 0), m);
    t.drift += m->most[OPERAND_matmul_id_bias];
    return t;
}

static struct tolerance of_conv2d(const struct hw_conv2d *op, const struct magnitudes *m)
{
    const int64_t *w = op->weight.extent;
    const double terms = (double)w[1] * (double)w[2] * (double)w[3];
    struct tolerance t = of_products(HW_OP_CONV2D, op, OPERAND_conv2d_x,
                                     OPERAND_conv2d_weight, terms, m);
    t.drift += m->most[OPERAND_conv2d_bias];
    return t;
}

/* An error in a score, or in the largest score, multiplies the weight of a value. */
static struct tolerance of_attention(const struct hw_attention *op,
                                     const struct magnitudes *m)
{
    const double depth = (double)last(&op->q, 0), tokens = (double)last(&op->k, 2);
    const double scale = given(magnitude((double)op->scale), 1 / root(depth));
    const double product = scale * depth * m->most[OPERAND_attention_q] *
                           m->most[OPERAND_attention_k];
    const double slope = op->slopes.dtype ? m->most[OPERAND_attention_slopes] : 1;
    const double bias = op->bias.dtype     ? slope * m->most[OPERAND_attention_bias]
                        : op->slopes.dtype ? slope * tokens
                                           : 0;
    const double score = root(depth) * product + bias;
    const double largest = product + bias + m->most[OPERAND_attention_sinks];
    const double value = m->most[OPERAND_attention_v];
    struct tolerance t = of_products(HW_OP_ATTENTION, op, OPERAND_attention_q,
                                     OPERAND_attention_k, depth, m);
    t.noise = value *
              (t.stored > 0 ? 1 + 2 * product : 1); /* 16-bit units round q and k, too */
    t.drift = value * (root(tokens) + score + largest);
    t.codes = 0;
    return t;
}

/* ---- other ops ---- */

static struct tolerance of_softmax(const struct hw_softmax *op, const struct magnitudes *m)
{
    const double cols = (double)last(&op->x, 0);
    const double slope = op->slopes.dtype ? m->most[OPERAND_softmax_slopes] : 1;
    const double z = given(magnitude((double)op->scale), 1) * m->most[OPERAND_softmax_x] +
                     slope * m->most[OPERAND_softmax_mask];
    const double loss = 2 * z + m->most[OPERAND_softmax_sinks] + root(cols);
    return op->log ? (struct tolerance){ .drift = loss }
                   : (struct tolerance){ .share = loss };
}

static struct tolerance of_rope(const struct hw_rope *op, const struct magnitudes *m)
{
    /* 0.1 ln(1/scale) is less than 0.1 / scale, and magnitudes are not negative. */
    const double scale = given((double)op->scale, 1);
    const double paper = op->yarn != 0.0f ? 1 + 0.1 * larger(scale, 1 / scale) : 1;
    const double size = magnitude(given((double)op->magnitude, paper));
    return (struct tolerance){ .drift = 2 * size * m->most[OPERAND_rope_x] };
}

static struct tolerance of_layernorm(const struct hw_layernorm *op,
                                     const struct magnitudes *m)
{
    const double cols = root((double)last(&op->x, 0));
    const double bias = m->most[OPERAND_layernorm_bias];
    const double weight = op->weight.dtype ? m->most[OPERAND_layernorm_weight] : 1;
    return (struct tolerance){ .noise = bias + weight * cols,
                               .share = cols,
                               .drift = cols * (bias + weight) + bias };
}

/* The relative error of an exponential is its argument in units, up to 128; gelu adds a unit of
 * x. */
#define EXPONENTS (2 * (1 + 1.702 * 128) + 1)

/* There is no default, so that the compiler finds a forgotten op. */
static struct tolerance of_op(enum hw_op op, const void *args, const struct magnitudes *m)
{
    const struct hw_tensor *x = args;
    switch (op) {
    case HW_OP_MATMUL:
        return of_matmul(args, m);
    case HW_OP_MATMUL_ID:
        return of_matmul_id(args, m);
    case HW_OP_DOT:
        return of_products(op, args, OPERAND_dot_a, OPERAND_dot_b, (double)last(x, 0), m);
    case HW_OP_CONV2D:
        return of_conv2d(args, m);
    case HW_OP_ATTENTION:
        return of_attention(args, m);
    case HW_OP_SOFTMAX:
        return of_softmax(args, m);
    case HW_OP_ROPE:
        return of_rope(args, m);
    case HW_OP_LAYERNORM:
        return of_layernorm(args, m);
    case HW_OP_RMSNORM:
        return (struct tolerance){ .share = root((double)last(x, 0)) };
    case HW_OP_ADD_RMSNORM: /* the residual is rounded before it is normalised */
        return (struct tolerance){ .share = root((double)last(x, 0)),
                                   .drift = m->most[OPERAND_add_rmsnorm_residual] +
                                            m->most[OPERAND_add_rmsnorm_x] };
    case HW_OP_SILU:
    case HW_OP_SWIGLU:
        return (struct tolerance){ .share = EXPONENTS };
    case HW_OP_ACTIVATION:
        return (struct tolerance){ .share = EXPONENTS, .drift = m->most[0] };
    case HW_OP_GLU:
        return (struct tolerance){ .share = EXPONENTS,
                                   .drift = m->most[0] * larger(m->most[0], m->most[1]) };
    case HW_OP_DIV:
        return (struct tolerance){ .share = 1 };
    case HW_OP_SCALE:
        return (struct tolerance){
            .drift = magnitude((double)((const struct hw_scale *)args)->scale) * m->most[0]
        };
    case HW_OP_ADD:
    case HW_OP_SUB:
    case HW_OP_MUL:
        return (struct tolerance){ 0 };
    case HW_OP_GET_ROWS:
    case HW_OP_SET_ROWS:
    case HW_OP_COPY:
    case HW_OP_ARGMAX:
    case HW_OP_TOP_K:
    case HW_OP_COUNT:
        break;
    }
    return (struct tolerance){ .exact = true }; /* they move data */
}

struct tolerance tolerance_of(uint32_t op, const void *args, uint32_t output,
                              const struct magnitudes *m)
{
    const struct operand_row *row = &op_rows[op].operands[output];
    struct tolerance t = of_op((enum hw_op)op, args, m);
    t.stored = larger(t.stored, unit_of(operand_at(args, row)->dtype));
    return t;
}

/* ---- comparing ---- */

static bool finite(double x)
{
    return x - x == 0;
}

/* Above this magnitude, a device may return infinity. */
static double edge_of(int32_t dtype)
{
    return 0.99 * (dtype == HW_F16 ? 65504 : 0x1.fep127);
}

double tolerance_use(const struct tolerance *t, int32_t dtype, double got, double want)
{
    const double far = 1e300, edge = edge_of(dtype);
    if (got == want || (got != got && want != want))
        return 0;
    if (t->exact)
        return far;
    if (!finite(got) || !finite(want)) {
        const bool near = magnitude(got) > edge && magnitude(want) > edge;
        return near && (got > 0) == (want > 0) ? 0 : far;
    }
    /* Devices may flush denormal numbers to zero. */
    const double least = dtype == HW_F16 ? 0x1p-24 : 0x1p-119;
    const double size = magnitude(want), away = magnitude(got - want) - least;
    const double allowed = UNITS * (t->stored * (size + t->noise) +
                                    0x1p-24 * (t->share * size + t->drift) + t->codes);
    return away > 0 ? away / (allowed > 0 ? allowed : least) : 0;
}
