/* SPDX-License-Identifier: MIT */
/* oracle_matmul.c - c[..,m,n] = sum over k of a[..,m,k] b[..,k,n], plus bias[n]. */
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

/* The leading extents of an operand, as an operand for broadcast(). */
static struct operand batches_of(const struct operand *o)
{
    struct operand batches = { .rank = o->rank - 1, .count = 1 };
    batches.extent[0] = 1;
    for (int32_t i = 0; i < o->rank - 2; i++)
        batches.extent[i + 1] = o->extent[i];
    for (int32_t i = 0; i < batches.rank; i++)
        batches.count *= batches.extent[i];
    return batches;
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
    const struct operand batches = batches_of(c), a_batches = batches_of(a),
                         b_batches = batches_of(b);

    for (int64_t out = 0; out < c->count; out++) {
        const int64_t batch = out / (m * n), row = out / n % m, col = out % n;
        const struct matrix x = matrix_of(a, broadcast(&a_batches, &batches, batch),
                                          op->transpose_a != 0);
        const struct matrix y = matrix_of(b, broadcast(&b_batches, &batches, batch),
                                          op->transpose_b != 0);
        double sum = 0, squares = 0, magnitude = 0;
        for (int64_t k = 0; k < terms; k++) {
            const double term = x.first[row * x.row + k * x.column] *
                                y.first[k * y.row + col * y.column];
            sum += term;
            squares += term * term;
            magnitude += fabs(term);
        }
        const double offset = bias->dtype ? bias->value[col] : 0;
        c->want[out] = sum + offset;
        c->noise[out] = sqrt(squares);
        c->drift[out] = sqrt((double)terms) * magnitude + fabs(offset);
    }
    return true;
}

double flops_matmul(const struct hw_matmul *op, const struct operand *operands)
{
    const struct operand *c = &operands[operand_matmul_c];
    return 2.0 * (double)c->count * (double)terms_of(op, &operands[operand_matmul_a]);
}
