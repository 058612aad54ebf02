/* SPDX-License-Identifier: MIT */
/* oracle_pointwise.c - elementwise ops: silu, add, mul, swiglu.
 *
 * An f32 exponential that is computed as a power of two loses |x| units, hence the drift of
 * silu. */
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

bool oracle_add(const struct hw_add *op, struct operand *operands)
{
    const struct operand *a = &operands[operand_add_a], *b = &operands[operand_add_b];
    struct operand *y = &operands[operand_add_y];

    (void)op;
    for (int64_t i = 0; i < y->count; i++)
        y->want[i] = a->value[broadcast(a, y, i)] + b->value[broadcast(b, y, i)];
    return true;
}

double flops_add(const struct hw_add *op, const struct operand *operands)
{
    (void)op;
    return (double)operands[operand_add_y].count;
}

bool oracle_mul(const struct hw_mul *op, struct operand *operands)
{
    const struct operand *a = &operands[operand_mul_a], *b = &operands[operand_mul_b];
    struct operand *y = &operands[operand_mul_y];

    (void)op;
    for (int64_t i = 0; i < y->count; i++)
        y->want[i] = a->value[broadcast(a, y, i)] * b->value[broadcast(b, y, i)];
    return true;
}

double flops_mul(const struct hw_mul *op, const struct operand *operands)
{
    (void)op;
    return (double)operands[operand_mul_y].count;
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
