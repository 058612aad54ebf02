/* SPDX-License-Identifier: MIT */
/* oracle_rows.c - ops on rows: rmsnorm, add_rmsnorm, softmax, argmax. */
#include "oracle.h"

#include "storage.h"

#include <math.h>

/* y = x * weight / sqrt(mean(x^2) + eps) */
static void norm_row(struct operand *y, const double *x, const struct operand *weight,
                     int64_t row, double eps)
{
    const int64_t cols = operand_cols(y);
    double squares = 0;

    for (int64_t i = 0; i < cols; i++)
        squares += x[i] * x[i];
    const double scale = 1 / sqrt(squares / (double)cols + eps);
    for (int64_t i = 0; i < cols; i++) {
        const int64_t at = row * cols + i;
        y->want[at] = x[i] * (weight->dtype ? weight->value[i] : 1) * scale;
        /* If the mean is infinite, finite elements become zero and infinite ones NaN. */
        y->drift[at] = fabs(y->want[at]) * sqrt((double)cols);
    }
}

bool oracle_rmsnorm(const struct hw_rmsnorm *op, struct operand *operands)
{
    const struct operand *x = &operands[operand_rmsnorm_x];
    struct operand *y = &operands[operand_rmsnorm_y];

    for (int64_t row = 0; row < operand_rows(y); row++)
        norm_row(y, x->value + row * operand_cols(y), &operands[operand_rmsnorm_weight],
                 row, (double)op->eps);
    return true;
}

double flops_rmsnorm(const struct hw_rmsnorm *op, const struct operand *operands)
{
    (void)op;
    return 4.0 * (double)operands[operand_rmsnorm_y].count;
}

/* residual += x, rounded to storage; y = rmsnorm(residual). */
bool oracle_add_rmsnorm(const struct hw_add_rmsnorm *op, struct operand *operands)
{
    const struct operand *x = &operands[operand_add_rmsnorm_x];
    struct operand *residual = &operands[operand_add_rmsnorm_residual];
    struct operand *y = &operands[operand_add_rmsnorm_y];

    for (int64_t i = 0; i < residual->count; i++) {
        residual->want[i] = storage_round(residual->dtype,
                                          residual->value[i] + x->value[i]);
        residual->drift[i] = fabs(residual->value[i]) + fabs(x->value[i]);
    }
    for (int64_t row = 0; row < operand_rows(y); row++)
        norm_row(y, residual->want + row * operand_cols(y),
                 &operands[operand_add_rmsnorm_weight], row, (double)op->eps);
    return true;
}

double flops_add_rmsnorm(const struct hw_add_rmsnorm *op, const struct operand *operands)
{
    (void)op;
    return 5.0 * (double)operands[operand_add_rmsnorm_y].count;
}

/* z = scale x + mask, y = exp(z - max) / sum, or z - max - log(sum). The exponential
 * multiplies the f32 error of z. */
static void softmax_row(const struct hw_softmax *op, const struct operand *x,
                        const struct operand *mask, struct operand *y, int64_t row)
{
    const int64_t cols = operand_cols(y), first = row * cols;
    const double scale = op->scale != 0.0f ? (double)op->scale : 1;
    double *z = y->want + first, *drift = y->drift + first;
    double largest = -(double)INFINITY, sum = 0;
    bool nothing = true;

    for (int64_t i = 0; i < cols; i++) {
        const double product = scale * x->value[first + i];
        const double added = mask->dtype ? mask->value[broadcast(mask, x, first + i)] : 0;
        z[i] = product + added;
        drift[i] = fabs(product) + fabs(added);
        nothing = nothing && z[i] == -(double)INFINITY;
        if (z[i] > largest)
            largest = z[i];
    }
    for (int64_t i = 0; i < cols; i++)
        sum += nothing ? 0 : exp(z[i] - largest);
    for (int64_t i = 0; i < cols; i++) {
        const double shifted = z[i] - largest;
        const double loss = drift[i] + fabs(largest) + sqrt((double)cols);
        if (op->log) {
            z[i] = nothing ? -(double)INFINITY : shifted - log(sum);
            drift[i] = loss;
        } else {
            z[i] = nothing ? 0 : exp(shifted) / sum;
            drift[i] = z[i] > 0 ? z[i] * loss : 0;
        }
    }
}

bool oracle_softmax(const struct hw_softmax *op, struct operand *operands)
{
    struct operand *y = &operands[operand_softmax_y];

    for (int64_t row = 0; row < operand_rows(y); row++)
        softmax_row(op, &operands[operand_softmax_x], &operands[operand_softmax_mask], y,
                    row);
    return true;
}

double flops_softmax(const struct hw_softmax *op, const struct operand *operands)
{
    (void)op;
    return 5.0 * (double)operands[operand_softmax_y].count;
}

/* The first of the largest; NaN is larger than any number. */
bool oracle_argmax(const struct hw_argmax *op, struct operand *operands)
{
    const struct operand *x = &operands[operand_argmax_x];
    struct operand *y = &operands[operand_argmax_y];
    const int64_t cols = operand_cols(x);

    (void)op;
    for (int64_t row = 0; row < y->count; row++) {
        const double *v = x->value + row * cols;
        int64_t best = 0;
        for (int64_t i = 1; i < cols; i++)
            if (!isnan(v[best]) && (isnan(v[i]) || v[i] > v[best]))
                best = i;
        y->want[row] = (double)best;
    }
    storage_write(y->dtype, y->exact_bytes, y->want, y->count);
    y->exact = true;
    return true;
}

double flops_argmax(const struct hw_argmax *op, const struct operand *operands)
{
    (void)op;
    return (double)operands[operand_argmax_x].count;
}
