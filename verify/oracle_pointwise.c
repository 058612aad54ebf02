/* SPDX-License-Identifier: MIT */
/* oracle_pointwise.c - elementwise ops: silu, scale, add, mul, sub, div, swiglu, activation,
 * glu.
 *
 * An f32 exponential computed as a power of two loses |x| units, which is the drift of silu. */
#include "oracle.h"

#include <math.h>

static double silu(double x)
{
    return x / (1 + exp(-x));
}

bool oracle_silu(const struct hw_silu *op, struct operand *operands)
{
    const struct operand *x = &operands[operand_silu_x];
    struct operand *y = &operands[operand_silu_y];

    (void)op;
    for (int64_t i = 0; i < y->count; i++) {
        y->want[i] = silu(x->value[i]);
        y->drift[i] = fabs(y->want[i]) * (1 + fmin(fabs(x->value[i]), 128));
    }
    return true;
}

double flops_silu(const struct hw_silu *op, const struct operand *operands)
{
    (void)op;
    return 4.0 * (double)operands[operand_silu_y].count;
}

bool oracle_scale(const struct hw_scale *op, struct operand *operands)
{
    const struct operand *x = &operands[operand_scale_x];
    struct operand *y = &operands[operand_scale_y];

    for (int64_t i = 0; i < y->count; i++) {
        const double product = (double)op->scale * x->value[i];
        y->want[i] = product + (double)op->bias;
        y->drift[i] = fabs(product); /* it may be rounded before the sum */
    }
    return true;
}

double flops_scale(const struct hw_scale *op, const struct operand *operands)
{
    (void)op;
    return 2.0 * (double)operands[operand_scale_y].count;
}

static double sum(double a, double b)
{
    return a + b;
}

static double difference(double a, double b)
{
    return a - b;
}

static double product(double a, double b)
{
    return a * b;
}

static double quotient(double a, double b)
{
    return a / b;
}

enum { A, B, Y }; /* the operands of these ops */

static bool combine(double (*of)(double, double), struct operand *operands)
{
    const struct operand *a = &operands[A], *b = &operands[B];
    struct operand *y = &operands[Y];

    for (int64_t i = 0; i < y->count; i++)
        y->want[i] = of(a->value[broadcast(a, y, i)], b->value[broadcast(b, y, i)]);
    return true;
}

bool oracle_add(const struct hw_add *op, struct operand *operands)
{
    (void)op;
    return combine(sum, operands);
}

bool oracle_mul(const struct hw_mul *op, struct operand *operands)
{
    (void)op;
    return combine(product, operands);
}

bool oracle_sub(const struct hw_sub *op, struct operand *operands)
{
    (void)op;
    return combine(difference, operands);
}

/* OpenCL allows a division 2.5 ulp, hence the drift. */
bool oracle_div(const struct hw_div *op, struct operand *operands)
{
    struct operand *y = &operands[Y];

    (void)op;
    combine(quotient, operands);
    for (int64_t i = 0; i < y->count; i++)
        y->drift[i] = isfinite(y->want[i]) ? fabs(y->want[i]) : 0;
    return true;
}

double flops_add(const struct hw_add *op, const struct operand *operands)
{
    (void)op;
    return (double)operands[Y].count;
}

double flops_mul(const struct hw_mul *op, const struct operand *operands)
{
    (void)op;
    return (double)operands[Y].count;
}

double flops_sub(const struct hw_sub *op, const struct operand *operands)
{
    (void)op;
    return (double)operands[Y].count;
}

double flops_div(const struct hw_div *op, const struct operand *operands)
{
    (void)op;
    return (double)operands[Y].count;
}

/* y = silu(gate) * up; without `up`, each row of gate has both. */
bool oracle_swiglu(const struct hw_swiglu *op, struct operand *operands)
{
    const struct operand *gate = &operands[operand_swiglu_gate];
    const struct operand *up = &operands[operand_swiglu_up];
    struct operand *y = &operands[operand_swiglu_y];
    const int64_t cols = operand_cols(y);

    (void)op;
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t packed = i / cols * 2 * cols + i % cols;
        const double g = up->dtype ? gate->value[i] : gate->value[packed];
        const double u = up->dtype ? up->value[i] : gate->value[packed + cols];
        y->want[i] = silu(g) * u;
        y->drift[i] = fabs(y->want[i]) * (2 + fmin(fabs(g), 128));
    }
    return true;
}

double flops_swiglu(const struct hw_swiglu *op, const struct operand *operands)
{
    (void)op;
    return 5.0 * (double)operands[operand_swiglu_y].count;
}

/* The scalars of activation and glu. */
struct function {
    int32_t kind;
    double alpha, lo, hi;
};

static double or_default(float value, double zero)
{
    return value != 0 ? (double)value : zero;
}

static double apply(struct function f, double x)
{
    switch ((enum hw_activation_kind)f.kind) {
    case HW_ACT_RELU:
        return x < 0 ? 0 : x;
    case HW_ACT_LEAKY_RELU:
        return x < 0 ? or_default((float)f.alpha, (double)0.01f) * x : x;
    case HW_ACT_ELU:
        return x < 0 ? or_default((float)f.alpha, 1) * expm1(x) : x;
    case HW_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case HW_ACT_TANH:
        return tanh(x);
    case HW_ACT_GELU: /* 1 + erf(z) = erfc(-z), which does not cancel */
        return x * erfc(-x / sqrt(2)) / 2;
    case HW_ACT_GELU_TANH: /* (1 + tanh(z)) / 2 = 1 / (1 + e^-2z) */
        return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case HW_ACT_GELU_QUICK:
        return x / (1 + exp(-1.702 * x));
    case HW_ACT_SILU:
        return silu(x);
    case HW_ACT_CLIP:
        return x < f.lo ? f.lo : x > f.hi ? f.hi : x;
    case HW_ACT_END:
        break;
    }
    return (double)NAN;
}

/* The error of f32: an exponential loses as many units as its exponent is large, and gelu a unit of
 * x where 1 + erf or 1 + tanh cancels. */
static double drift_of(struct function f, double x, double value)
{
    const double exponent = fmin(fabs(x), 128), size = fabs(value);
    switch (f.kind) {
    case HW_ACT_ELU:
    case HW_ACT_TANH:
        return 2 * size;
    case HW_ACT_SIGMOID:
    case HW_ACT_SILU:
        return size * (1 + exponent);
    case HW_ACT_GELU:
    case HW_ACT_GELU_TANH:
        return size + fabs(x);
    case HW_ACT_GELU_QUICK:
        return 2 * size * (1 + 1.702 * exponent);
    default:
        return 0;
    }
}

bool oracle_activation(const struct hw_activation *op, struct operand *operands)
{
    const struct function f = { op->kind, (double)op->alpha, (double)op->lo,
                                (double)op->hi };
    const struct operand *x = &operands[operand_activation_x];
    struct operand *y = &operands[operand_activation_y];

    for (int64_t i = 0; i < y->count; i++) {
        y->want[i] = apply(f, x->value[i]);
        y->drift[i] = drift_of(f, x->value[i], y->want[i]);
    }
    return true;
}

double flops_activation(const struct hw_activation *op, const struct operand *operands)
{
    (void)op;
    return 4.0 * (double)operands[operand_activation_y].count;
}

bool oracle_glu(const struct hw_glu *op, struct operand *operands)
{
    const struct function f = { op->kind, (double)op->alpha, (double)op->lo,
                                (double)op->hi };
    const struct operand *gate = &operands[operand_glu_gate];
    const struct operand *up = &operands[operand_glu_up];
    struct operand *y = &operands[operand_glu_y];
    const int64_t cols = operand_cols(y);

    for (int64_t i = 0; i < y->count; i++) {
        const int64_t packed = i / cols * 2 * cols + i % cols;
        const double g = up->dtype ? gate->value[i] : gate->value[packed];
        const double u = up->dtype ? up->value[i] : gate->value[packed + cols];
        const double value = apply(f, g);
        y->want[i] = value * u;
        y->drift[i] = (drift_of(f, g, value) + fabs(value)) * fabs(u);
    }
    return true;
}

double flops_glu(const struct hw_glu *op, const struct operand *operands)
{
    (void)op;
    return 5.0 * (double)operands[operand_glu_y].count;
}
