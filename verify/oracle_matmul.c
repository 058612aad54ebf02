/* SPDX-License-Identifier: MIT */
/* oracle_matmul.c - c[..,m,n] = sum over k of a[..,m,k] b[..,k,n], plus bias[n]; and
 * matmul_id, where ids choose b and bias for each row. */
#include "oracle.h"

#include <math.h>

/* The offset of element (row, column) from the first element of a matrix. */
struct matrix {
    const double *first;
    int64_t row, column; /* steps */
};

static struct matrix matrix_of(const struct operand *o, int64_t batch, bool transposed)
{
    const int64_t rows = o->extent[o->rank - 2], cols = o->extent[o->rank - 1];
    const double *first = o->value + batch * rows * cols;
    return transposed ? (struct matrix){ first, 1, cols }
                      : (struct matrix){ first, cols, 1 };
}

/* The batch of `t` for batch number `batch` of c: along each leading extent, index i of C reads i /
 * (C / T). */
static int64_t batch_of(const struct operand *t, const struct operand *c, int64_t batch)
{
    int64_t index = 0, step = 1;

    for (int32_t i = 3; i <= c->rank; i++) {
        const int64_t whole = c->extent[c->rank - i];
        const int64_t own = i > t->rank ? 1 : t->extent[t->rank - i];
        index += batch % whole / (whole / own) * step;
        batch /= whole;
        step *= own;
    }
    return index;
}

static int64_t terms_of(const struct hw_matmul *op, const struct operand *a)
{
    return a->extent[a->rank - (op->transpose_a ? 2 : 1)];
}

bool oracle_matmul(const struct hw_matmul *op, struct operand *operands)
{
    const struct operand *a = &operands[operand_matmul_a], *b = &operands[operand_matmul_b];
    const struct operand *bias = &operands[operand_matmul_bias];
    struct operand *c = &operands[operand_matmul_c];
    const int64_t m = c->extent[c->rank - 2], n = c->extent[c->rank - 1];
    const int64_t terms = terms_of(op, a);
    const bool blocks = hw_dtype_block(b->dtype) > 1;

    for (int64_t out = 0; out < c->count; out++) {
        const int64_t batch = out / (m * n), row = out / n % m, col = out % n;
        const struct matrix x = matrix_of(a, batch_of(a, c, batch), op->transpose_a != 0);
        const struct matrix y = matrix_of(b, batch_of(b, c, batch), op->transpose_b != 0);
        double sum = 0, squares = 0, magnitude = 0;
        struct rounding rounding = ROUNDED_ACTIVATIONS;
        for (int64_t k = 0; k < terms; k++) {
            const double xk = x.first[row * x.row + k * x.column];
            const double yk = y.first[k * y.row + col * y.column];
            const double term = xk * yk;
            sum += term;
            squares += term * term;
            magnitude += fabs(term);
            if (blocks)
                rounding_add(&rounding, k, xk, yk);
        }
        const double offset = bias->dtype ? bias->value[col] : 0;
        c->want[out] = sum + offset;
        c->noise[out] = sqrt(squares);
        c->drift[out] = sqrt((double)terms) * magnitude + fabs(offset);
        c->codes[out] = rounding_cost(&rounding);
    }
    return true;
}

double flops_matmul(const struct hw_matmul *op, const struct operand *operands)
{
    const struct operand *c = &operands[operand_matmul_c];
    return 2.0 * (double)c->count * (double)terms_of(op, &operands[operand_matmul_a]);
}

bool oracle_matmul_id(const struct hw_matmul_id *op, struct operand *operands)
{
    const struct operand *a = &operands[operand_matmul_id_a];
    const struct operand *b = &operands[operand_matmul_id_b];
    const struct operand *ids = &operands[operand_matmul_id_ids];
    const struct operand *bias = &operands[operand_matmul_id_bias];
    struct operand *c = &operands[operand_matmul_id_c];
    const int64_t experts = b->extent[0], n = b->extent[1], terms = b->extent[2];
    const int64_t rows = ids->count, shared = a->extent[1] == 1 ? c->extent[1] : 1;
    const bool blocks = hw_dtype_block(b->dtype) > 1;

    (void)op;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t col = 0; col < n; col++) {
            const double id = ids->value[row];
            const int64_t at = row * n + col;
            double squares = 0, magnitude = 0;
            struct rounding rounding = ROUNDED_ACTIVATIONS;
            c->want[at] = 0;
            if (id < 0 || id >= (double)experts)
                continue;
            const int64_t chosen = (int64_t)id * n + col;
            for (int64_t k = 0; k < terms; k++) {
                const double xk = a->value[row / shared * terms + k];
                const double yk = b->value[chosen * terms + k];
                const double term = xk * yk;
                c->want[at] += term;
                squares += term * term;
                magnitude += fabs(term);
                if (blocks)
                    rounding_add(&rounding, k, xk, yk);
            }
            const double offset = bias->dtype ? bias->value[chosen] : 0;
            c->want[at] += offset;
            c->noise[at] = sqrt(squares);
            c->drift[at] = sqrt((double)terms) * magnitude + fabs(offset);
            c->codes[at] = rounding_cost(&rounding);
        }
    return true;
}

double flops_matmul_id(const struct hw_matmul_id *op, const struct operand *operands)
{
    (void)op;
    return 2.0 * (double)operands[operand_matmul_id_c].count *
           (double)operand_cols(&operands[operand_matmul_id_b]);
}
