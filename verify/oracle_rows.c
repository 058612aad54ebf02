/* SPDX-License-Identifier: MIT */
/* oracle_rows.c - ops on rows: rmsnorm, add_rmsnorm, layernorm, softmax, argmax, top_k, dot. */
#include "oracle.h"

#include "storage.h"

#include <math.h>
#include <stdlib.h>

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

/* y = z * weight + bias, z = (x - mean) / sqrt(variance + eps). The error of the f32 mean is a
 * fraction of the deviations: drift counts it as if it were a fraction of one. */
static void layernorm_row(const struct operand *operands, struct operand *y, int64_t row,
                          double eps)
{
    const struct operand *weight = &operands[operand_layernorm_weight];
    const struct operand *bias = &operands[operand_layernorm_bias];
    const int64_t cols = operand_cols(y);
    const double *x = operands[operand_layernorm_x].value + row * cols;
    double mean = 0, squares = 0;

    for (int64_t i = 0; i < cols; i++)
        mean += x[i] / (double)cols;
    for (int64_t i = 0; i < cols; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    for (int64_t i = 0; i < cols; i++) {
        const double z = (x[i] - mean) / sqrt(squares / (double)cols + eps);
        const double w = weight->dtype ? weight->value[i] : 1;
        const double b = bias->dtype ? bias->value[i] : 0;
        y->want[row * cols + i] = z * w + b;
        y->noise[row * cols + i] = fabs(z * w);
        y->drift[row * cols + i] = fabs(w) * (fabs(z) + 1) * sqrt((double)cols) + fabs(b);
    }
}

bool oracle_layernorm(const struct hw_layernorm *op, struct operand *operands)
{
    struct operand *y = &operands[operand_layernorm_y];

    for (int64_t row = 0; row < operand_rows(y); row++)
        layernorm_row(operands, y, row, (double)op->eps);
    return true;
}

double flops_layernorm(const struct hw_layernorm *op, const struct operand *operands)
{
    (void)op;
    return 7.0 * (double)operands[operand_layernorm_y].count;
}

/* The mask of element `i` of x, times the slope of its head. */
static double masked(const struct operand *operands, int64_t i, int64_t head)
{
    const struct operand *mask = &operands[operand_softmax_mask],
                         *slopes = &operands[operand_softmax_slopes];

    if (!mask->dtype)
        return 0;
    const double own = mask->value[broadcast(mask, &operands[operand_softmax_x], i)];
    return own == -(double)INFINITY || !slopes->dtype ? own : slopes->value[head] * own;
}

/* z = scale x + slope mask, y = exp(z - max) / sum, or z - max - log(sum). The exponential
 * multiplies the f32 error of z. */
static void softmax_row(const struct hw_softmax *op, struct operand *operands, int64_t row)
{
    const struct operand *x = &operands[operand_softmax_x],
                         *sinks = &operands[operand_softmax_sinks];
    struct operand *y = &operands[operand_softmax_y];
    const int64_t cols = operand_cols(y), first = row * cols;
    const int64_t head = y->rank < 3
                             ? 0
                             : row / y->extent[y->rank - 2] % y->extent[y->rank - 3];
    const double scale = op->scale != 0.0f ? (double)op->scale : 1;
    const double sink = sinks->dtype ? sinks->value[head] : -(double)INFINITY;
    double *z = y->want + first, *drift = y->drift + first;
    double largest = sink, sum = 0;

    for (int64_t i = 0; i < cols; i++) {
        const double product = scale * x->value[first + i];
        const double added = masked(operands, first + i, head);
        z[i] = product + added;
        drift[i] = fabs(product) + fabs(added);
        if (z[i] > largest || isnan(z[i]))
            largest = z[i];
    }
    const bool nothing = largest == -(double)INFINITY;
    sum = nothing ? 0 : exp(sink - largest);
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
        softmax_row(op, operands, row);
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

/* k times: the first of the largest elements not chosen yet. NaN is larger than any number. */
static void top_k_row(const double *x, int64_t cols, bool *chosen, double *indices,
                      int64_t k)
{
    for (int64_t i = 0; i < cols; i++)
        chosen[i] = false;
    for (int64_t n = 0; n < k; n++) {
        int64_t best = -1;
        for (int64_t i = 0; i < cols; i++)
            if (!chosen[i] &&
                (best < 0 || (!isnan(x[best]) && (isnan(x[i]) || x[i] > x[best]))))
                best = i;
        chosen[best] = true;
        indices[n] = (double)best;
    }
}

bool oracle_top_k(const struct hw_top_k *op, struct operand *operands)
{
    const struct operand *x = &operands[operand_top_k_x];
    struct operand *indices = &operands[operand_top_k_indices];
    struct operand *values = &operands[operand_top_k_values];
    const int64_t cols = operand_cols(x), k = operand_cols(indices);
    bool *chosen = calloc((size_t)cols + 1, sizeof *chosen);

    (void)op;
    for (int64_t row = 0; chosen && row < operand_rows(indices); row++) {
        top_k_row(x->value + row * cols, cols, chosen, indices->want + row * k, k);
        for (int64_t i = row * k; values->dtype && i < (row + 1) * k; i++)
            values->want[i] = x->value[row * cols + (int64_t)indices->want[i]];
    }
    storage_write(indices->dtype, indices->exact_bytes, indices->want, indices->count);
    indices->exact = true;
    if (values->dtype) {
        storage_write(values->dtype, values->exact_bytes, values->want, values->count);
        values->exact = true;
    }
    free(chosen);
    return chosen != NULL;
}

double flops_top_k(const struct hw_top_k *op, const struct operand *operands)
{
    (void)op;
    return (double)operands[operand_top_k_x].count;
}

/* The row of an operand for row `row` of y; the operand broadcasts, and the last extent of y is 1
 * or dropped. */
static const double *dot_row(const struct operand *t, const struct operand *y, bool kept,
                             int64_t row)
{
    struct operand small = *t, big = *y;
    small.extent[small.rank - 1] = 1;
    if (!kept)
        big.extent[big.rank++] = 1;
    return t->value + broadcast(&small, &big, row) * operand_cols(t);
}

bool oracle_dot(const struct hw_dot *op, struct operand *operands)
{
    const struct operand *a = &operands[operand_dot_a], *b = &operands[operand_dot_b];
    struct operand *y = &operands[operand_dot_y];
    const bool kept = y->rank == (a->rank > b->rank ? a->rank : b->rank);
    const int64_t terms = operand_cols(a);

    (void)op;
    for (int64_t row = 0; row < y->count; row++) {
        const double *u = dot_row(a, y, kept, row), *v = dot_row(b, y, kept, row);
        double squares = 0, magnitude = 0;
        for (int64_t i = 0; i < terms; i++) {
            y->want[row] += u[i] * v[i];
            squares += u[i] * u[i] * v[i] * v[i];
            magnitude += fabs(u[i] * v[i]);
        }
        y->noise[row] = sqrt(squares);
        y->drift[row] = sqrt((double)terms) * magnitude;
    }
    return true;
}

double flops_dot(const struct hw_dot *op, const struct operand *operands)
{
    (void)op;
    return 2.0 * (double)operands[operand_dot_y].count *
           (double)operand_cols(&operands[operand_dot_a]);
}
