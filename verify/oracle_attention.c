/* SPDX-License-Identifier: MIT */
/* oracle_attention.c - y = softmax(scale q k^T + slope bias, masked) v, for each head; hw/ops.h
 * defines bias, mask and sinks. */
#include "oracle.h"

#include <math.h>
#include <stdlib.h>

/* Rank 3 is treated as rank 4 with one batch. */
struct shape {
    int64_t batches, tokens, heads, depth;
};

static struct shape shape_of(const struct operand *o)
{
    const int64_t *e = o->extent + (o->rank == 4);
    return (struct shape){ o->rank == 4 ? o->extent[0] : 1, e[0], e[1], e[2] };
}

/* The elements of a head of a token. */
static const double *head_of(const struct operand *o, int64_t batch, int64_t token,
                             int64_t head)
{
    const struct shape s = shape_of(o);
    return o->value + ((batch * s.tokens + token) * s.heads + head) * s.depth;
}

static int64_t length_of(const struct hw_attention *op, const struct operand *operands,
                         int64_t batch)
{
    const struct operand *lengths = &operands[operand_attention_lengths];
    const int64_t most = shape_of(&operands[operand_attention_k]).tokens;

    if (!lengths->dtype)
        return op->length ? op->length : most;
    const int64_t length = (int64_t)lengths->value[batch];
    return length < 0 ? 0 : length > most ? most : length;
}

/* The keys that query `i` sees: the first, and one past the last; if first >= last, none.
 */
struct span {
    int64_t first, last, position; /* of the query */
};

static struct span seen(const struct hw_attention *op, int64_t length, int64_t queries,
                        int64_t i)
{
    struct span span = { 0, length, length - queries + i };
    if (op->causal && span.position + 1 < length)
        span.last = span.position + 1;
    if (op->window > 0 && span.last > op->window)
        span.first = span.last - op->window;
    return span;
}

/* The bias of a score, times the slope of its head. Leading extents may be missing, and smaller
 * ones repeat. Without a tensor, the slope multiplies the distance. */
static double bias_at(const struct operand *operands, const int64_t at[4], int64_t position)
{
    const struct operand *bias = &operands[operand_attention_bias],
                         *slopes = &operands[operand_attention_slopes];
    const double slope = slopes->dtype ? slopes->value[at[1]] : 1;
    int64_t index = 0;

    if (!bias->dtype)
        return slopes->dtype ? -slope * fabs((double)(at[3] - position)) : 0;
    for (int32_t i = 0; i < bias->rank; i++)
        index = index * bias->extent[i] + at[4 - bias->rank + i] % bias->extent[i];
    const double own = bias->value[index];
    return own == -(double)INFINITY ? own : slope * own;
}

static double scale_of(const struct hw_attention *op, int64_t depth)
{
    return op->scale != 0.0f ? (double)op->scale : depth ? 1 / sqrt((double)depth) : 1;
}

/* The scores of the keys in `span`, and the f32 error that each may have. */
static void scores(const struct hw_attention *op, const struct operand *operands,
                   const int64_t at[3], struct span span, double *score, double *loss)
{
    const struct operand *q = &operands[operand_attention_q],
                         *k = &operands[operand_attention_k];
    const struct shape qs = shape_of(q), ks = shape_of(k);
    const int64_t key_head = at[1] / (qs.heads / ks.heads);
    const double *query = head_of(q, at[0], at[2], at[1]);
    const double scale = scale_of(op, qs.depth);
    const double cap = (double)op->softcap;

    for (int64_t j = span.first; j < span.last; j++) {
        const double *key = head_of(k, at[0], j, key_head);
        double sum = 0, magnitude = 0;
        for (int64_t d = 0; d < qs.depth; d++) {
            sum += query[d] * key[d];
            magnitude += fabs(query[d] * key[d]);
        }
        sum *= scale;
        if (cap > 0)
            sum = cap * tanh(sum / cap);
        const double bias = bias_at(operands, (int64_t[]){ at[0], at[1], at[2], j },
                                    span.position);
        score[j] = sum + bias;
        loss[j] = sqrt((double)qs.depth) * fabs(scale) * magnitude +
                  (isinf(bias) ? 0 : fabs(bias));
    }
}

/* One row of y: the values weighted by the softmax of the scores, in place. */
static void weigh(const struct operand *operands, const int64_t at[3], struct span span,
                  double *score, const double *loss, struct operand *y)
{
    const struct operand *v = &operands[operand_attention_v];
    const struct shape ys = shape_of(y), vs = shape_of(v);
    const int64_t value_head = at[1] / (ys.heads / vs.heads);
    const int64_t row = ((at[0] * ys.tokens + at[2]) * ys.heads + at[1]) * ys.depth;
    const struct operand *sinks = &operands[operand_attention_sinks];
    const double sink = sinks->dtype ? sinks->value[at[1]] : -(double)INFINITY;
    double largest = sink, total = 0;
    bool nothing = true;

    for (int64_t j = span.first; j < span.last; j++) {
        nothing = nothing && score[j] == -(double)INFINITY;
        if (score[j] > largest)
            largest = score[j];
    }
    if (nothing) {
        for (int64_t j = span.first; j < span.last; j++)
            score[j] = 0;
        return;
    }
    total = exp(sink - largest);
    for (int64_t j = span.first; j < span.last; j++) {
        const double p = exp(score[j] - largest);
        const double *value = head_of(v, at[0], j, value_head);
        const double lost = sqrt((double)(span.last - span.first)) + loss[j] +
                            fabs(largest);
        total += p;
        score[j] = p;
        for (int64_t d = 0; d < ys.depth; d++) {
            y->want[row + d] += p * value[d];
            y->noise[row + d] += p * value[d] * p * value[d];
            y->drift[row + d] += fabs(p * value[d]) * lost;
        }
    }
    for (int64_t d = 0; d < ys.depth; d++) {
        y->want[row + d] /= total;
        y->noise[row + d] = sqrt(y->noise[row + d]) / total;
        y->drift[row + d] /= total;
    }
    for (int64_t j = span.first; j < span.last; j++)
        score[j] /= total;
}

/* The error of rounding a query, in its product with key j of a block type. */
static double query_cost(const struct hw_attention *op, const struct operand *operands,
                         const int64_t at[3], int64_t j)
{
    const struct operand *q = &operands[operand_attention_q],
                         *k = &operands[operand_attention_k];
    const struct shape qs = shape_of(q);
    const double *query = head_of(q, at[0], at[2], at[1]);
    const double *key = head_of(k, at[0], j, at[1] / (qs.heads / shape_of(k).heads));
    struct rounding rounding = ROUNDED_ACTIVATIONS;

    for (int64_t d = 0; d < qs.depth; d++)
        rounding_add(&rounding, d, query[d], key[d]);
    return fabs(scale_of(op, qs.depth)) * rounding_cost(&rounding);
}

/* The largest magnitude of 32 neighbours, from the d-th number on. */
static double largest_of(const double *x, int64_t d, int64_t n)
{
    double largest = 0;
    for (int64_t i = d / 32 * 32; i < n && i < d / 32 * 32 + 32; i++)
        largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
    return largest;
}

/* The smallest nonzero result of largest_of() for the keys of a group. */
static double least_of(const struct operand *v, const int64_t at[3], int64_t head,
                       struct span keys, int64_t d)
{
    double least = INFINITY;
    for (int64_t j = keys.first; j < keys.last; j++) {
        const double largest = largest_of(head_of(v, at[0], j, head), d, shape_of(v).depth);
        least = largest > 0 && largest < least ? largest : least;
    }
    return least;
}

/* The error of rounding the weights of values of block types, each weight times the scale of a
 * block. Keys with scales far apart must not be rounded to one step: the bound does not allow a
 * large scale to make other values vanish. */
static double weights_cost(const struct operand *operands, const int64_t at[3],
                           struct span span, const double *weight, int64_t d)
{
    const struct operand *v = &operands[operand_attention_v];
    const struct shape vs = shape_of(v);
    const int64_t head = at[1] /
                         (shape_of(&operands[operand_attention_q]).heads / vs.heads);
    const double most_ratio = 16;
    struct rounding rounding = ROUNDED_WEIGHTS;
    double least = 0;

    for (int64_t j = span.first; j < span.last; j++) {
        const double *value = head_of(v, at[0], j, head);
        const double largest = largest_of(value, d, vs.depth);
        if (j == span.first || j % rounding.together == 0) {
            const int64_t end = (j / rounding.together + 1) * rounding.together;
            const struct span keys = { j, end < span.last ? end : span.last, 0 };
            least = least_of(v, at, head, keys, d);
        }
        rounding_add(&rounding, j, weight[j] * fmin(largest, most_ratio * least),
                     largest > 0 ? value[d] / largest : 0);
    }
    return rounding_cost(&rounding);
}

/* The error of 8-bit codes in a row of y: wrong scores change the weights of values, and weights
 * are rounded. Keys are assumed to differ, so that the error of a rounded query differs for each
 * key. */
static void cost_of_codes(const struct hw_attention *op, const struct operand *operands,
                          const int64_t at[3], struct span span, const double *weight,
                          struct operand *y)
{
    const struct operand *v = &operands[operand_attention_v];
    const struct shape ys = shape_of(y);
    const int64_t row = ((at[0] * ys.tokens + at[2]) * ys.heads + at[1]) * ys.depth;
    const int64_t head = at[1] / (ys.heads / shape_of(v).heads);
    double *codes = y->codes + row;

    if (hw_dtype_block(operands[operand_attention_k].dtype) == 1 ||
        hw_dtype_block(v->dtype) == 1)
        return;
    for (int64_t j = span.first; j < span.last; j++) {
        const double moved = weight[j] > 0 ? weight[j] * query_cost(op, operands, at, j)
                                           : 0;
        const double *value = head_of(v, at[0], j, head);
        for (int64_t d = 0; d < ys.depth && moved > 0; d++)
            codes[d] += pow(moved * (value[d] - y->want[row + d]), 2);
    }
    for (int64_t d = 0; d < ys.depth; d++)
        codes[d] = hypot(sqrt(codes[d]), weights_cost(operands, at, span, weight, d));
}

bool oracle_attention(const struct hw_attention *op, struct operand *operands)
{
    struct operand *y = &operands[operand_attention_y];
    const struct shape ys = shape_of(y);
    const int64_t most = shape_of(&operands[operand_attention_k]).tokens;
    double *score = calloc((size_t)most + 1, sizeof *score);
    double *loss = calloc((size_t)most + 1, sizeof *loss);
    const bool ok = score && loss;

    for (int64_t i = 0; ok && i < ys.batches * ys.heads * ys.tokens; i++) {
        const int64_t at[3] = { i / (ys.heads * ys.tokens), i / ys.tokens % ys.heads,
                                i % ys.tokens };
        const int64_t length = length_of(op, operands, at[0]);
        const struct span span = seen(op, length, ys.tokens, at[2]);
        scores(op, operands, at, span, score, loss);
        weigh(operands, at, span, score, loss, y);
        cost_of_codes(op, operands, at, span, score, y);
    }
    free(score);
    free(loss);
    return ok;
}

/* Two products for each query and each key that it sees. */
double flops_attention(const struct hw_attention *op, const struct operand *operands)
{
    const struct shape ys = shape_of(&operands[operand_attention_y]);
    const int64_t depth = shape_of(&operands[operand_attention_q]).depth;
    double pairs = 0;

    for (int64_t batch = 0; batch < ys.batches; batch++)
        for (int64_t i = 0; i < ys.tokens; i++) {
            const struct span span = seen(op, length_of(op, operands, batch), ys.tokens, i);
            pairs += span.last > span.first ? (double)(span.last - span.first) : 0;
        }
    return 2.0 * pairs * (double)ys.heads * (double)(depth + ys.depth);
}
