/* SPDX-License-Identifier: MIT */
/* attention_part.h - attention of up to BLOCK rows (a row is a query of one head) to a tile of keys
 * that all of them see: scores, softmax and weighted values. A key is loaded and converted once for
 * all rows. Vectors run along the head, and LANES sums of products are reduced together.
 *
 * Scores, and later weights, are stored as they are computed: [tile / n][rows][n], with n = SUMS /
 * rows. */
#ifndef CPU_ATTENTION_PART_H
#define CPU_ATTENTION_PART_H

#include "attention.h"

#include <stdlib.h>

enum {
    BLOCK = 4, /* rows that are computed together */
#if defined(HAS_PIECES)
    TILE = 64, /* of a type of 8 bits at most */
#else
    /* keys between two updates of the maximum; this tile and the next one, of all heads, have to
     * stay in the second-level cache */
    TILE = 32,
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
    SUMS = 16, /* numbers of vectors of sums that stay in registers */
#else
    SUMS = 8,
#endif
    VECTORS = SUMS / LANES, /* that SUMS floats are */
    COLUMNS = 8, /* most vectors of columns of a value that are summed up together */
    SCORES = TILE * BLOCK
};

struct row {
    struct span seen;
    int64_t query, head, position;
    const char *bias;
    float slope, top, sum; /* the largest score so far; the sum relative to it */
};

/* Memory to prefetch while a tile is read. `packed`: it is contiguous and is fetched in order.
 * Otherwise its keys are `step` bytes apart. An integer, not a pointer: there may be no object at
 * that address. */
struct ahead {
    uintptr_t base;
    int64_t step;
    bool packed;
};

struct part {
    const struct attention_args *a;
    const char *k, *v; /* of the first key */
    int64_t first, n;  /* keys first .. first + n - 1 */
    struct ahead k_ahead, v_ahead;
    int64_t dim, value_dim; /* floats from row to row of `query`, of `out` */
    const float *query;     /* scale * q */
    const char *bytes;      /* the same, rounded (attention_bytes.h); NULL: not rounded */
    float *out;             /* weighted values, relative to `top` */
    float *score;           /* [SCORES] */
    struct row *row;
};

/* The index of the score of key k and row r. */
INLINE int64_t place_of(int rows, int r, int64_t k)
{
    const int keys = SUMS / rows;
    return k / keys * SUMS + r * keys + k % keys;
}

INLINE void fetch(uintptr_t from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        ASK_FOR(from, i, 2);
}

/* ---- products ---- */

/* sum[r][k] += query[r] . key[k], for one vector of each. */
INLINE void multiply_vector(int rows, int keys, vf *sum, const float *query, int64_t pitch,
                            const vf *key)
{
    for (int r = 0; r < rows; r++) {
        const vf q = vf_load(query + r * pitch);
        for (int k = 0; k < keys; k++)
            sum[r * keys + k] = vf_fma(q, key[k], sum[r * keys + k]);
    }
}

/* sum[r][k] = query[r] . key[k], as vectors that are still to be reduced. Meanwhile, prefetches the
 * same number of bytes per key from `next` on. */
INLINE void multiply_keys(int type, int rows, vf *sum, const struct part *p,
                          const char *const *from, uintptr_t next)
{
    const int keys = SUMS / rows;
    const int64_t dim = p->a->head_dim;
    vf key[SUMS], scale[SUMS];
    for (int i = 0; i < SUMS; i++)
        sum[i] = vf_set(0);
    int64_t d = 0;
    for (int64_t at = 0; d + RUN <= dim; d += RUN, at += run_bytes(type)) {
        for (int k = 0; k < keys; k++) {
            fetch(next + (uintptr_t)(k * p->k_ahead.step + at), run_bytes(type));
            scale[k] = load_scale(type, from[k] + at);
        }
        for (int v = 0; v < RUN_VECTORS; v++) {
            for (int k = 0; k < keys; k++)
                key[k] = load_run(type, from[k] + at, v, scale[k]);
            multiply_vector(rows, keys, sum, p->query + d + v * LANES, p->dim, key);
        }
    }
    for (; d < dim && !has_scale(type); d += LANES) {
        const int64_t left = dim - d;
        for (int k = 0; k < keys; k++) {
            fetch(next + (uintptr_t)(k * p->k_ahead.step + d * run_bytes(type) / RUN),
                  LANES * run_bytes(type) / RUN);
            key[k] = left < LANES ? vf_load_part_as(type, from[k], d, left)
                                  : vf_load_as(type, from[k], d);
        }
        multiply_vector(rows, keys, sum, p->query + d, p->dim, key);
    }
}

/* The last keys may be computed more than once. */
INLINE void multiply(int type, int rows, const struct part *p)
{
    const int keys = SUMS / rows;
    const int64_t stride = p->a->k.stride[1];
    for (int64_t t = 0; t < p->n; t += keys) {
        const char *key[SUMS];
        vf sum[SUMS];
        for (int i = 0; i < keys; i++)
            key[i] = p->k + least(t + i, p->n - 1) * stride;
        multiply_keys(type, rows, sum, p, key,
                      p->k_ahead.base + (uintptr_t)(t * p->k_ahead.step));
        for (int i = 0; i < SUMS; i += LANES)
            vf_store(p->score + t * rows + i, vf_sums(sum + i));
    }
}

/* ---- scores ---- */

/* slope * bias of LANES keys, from key i on. */
INLINE vf added_to(const struct part *p, const struct row *row, int64_t i)
{
    const struct attention_args *a = p->a;
    float apart[LANES];
    if (a->bias_type)
        return scaled_mask(
            vf_load_part_as(a->bias_type, row->bias, p->first + i, least(p->n - i, LANES)),
            vf_set(row->slope));
    for (int l = 0; l < LANES; l++)
        apart[l] = (float)llabs(p->first + i + l - row->position);
    return -vf_set(row->slope) * vf_load(apart);
}

/* Turns products into scores. */
INLINE void adjust(int rows, const struct part *p)
{
    const struct attention_args *a = p->a;
    for (int64_t i = 0; a->softcap > 0.0f && i < p->n * rows; i += SUMS)
        for (int v = 0; v < SUMS; v += LANES)
            vf_store(p->score + i + v, softcapped(vf_load(p->score + i + v), a->softcap));
    if (!a->bias_type && !a->has_slopes)
        return;
    for (int r = 0; r < rows; r++)
        for (int64_t i = 0; i < p->n; i += LANES) {
            float more[LANES];
            vf_store(more, added_to(p, &p->row[r], i));
            for (int l = 0; l < LANES && i + l < p->n; l++)
                p->score[place_of(rows, r, i + l)] += more[l];
        }
}

/* ---- the softmax, online ---- */

/* Updates each row's largest score with `most`, the new maxima. The lanes of `most` become the
 * number to subtract from scores. Returns the factors for the earlier sums. */
INLINE vf raise_tops(int rows, const struct part *p, float *most)
{
    const int keys = SUMS / rows;
    float before[LANES] = { 0 };
    for (int r = 0; r < rows; r++) {
        struct row *row = &p->row[r];
        float top = row->top;
        for (int k = 0; k < keys; k++)
            top = most[r * keys + k] > top ? most[r * keys + k] : top;
        const float from = top == -INFINITY ? 0.0f : top;
        before[r] = row->top == top ? 0.0f : row->top - from;
        for (int k = 0; k < keys; k++)
            most[r * keys + k] = from;
        row->top = top;
    }
    return vf_exp(vf_load(before));
}

INLINE void rescale(float *out, int64_t dim, float factor)
{
    for (int64_t d = 0; d < dim; d += LANES)
        vf_store(out + d, vf_load(out + d) * vf_set(factor));
}

/* Turns scores into exponentials relative to each row's largest score so far. */
INLINE void weigh(int rows, const struct part *p)
{
    const int keys = SUMS / rows;
    const int64_t all = whole(p->n, keys) * rows;
    float lane[SUMS], shrink[LANES];
    vf of_lanes[VECTORS];
    for (int64_t k = p->n; k % keys; k++)
        for (int r = 0; r < rows; r++)
            p->score[place_of(rows, r, k)] = -INFINITY;
    for (int v = 0; v < VECTORS; v++)
        of_lanes[v] = vf_set(-INFINITY);
    for (int64_t i = 0; i < all; i += SUMS)
        for (int v = 0; v < VECTORS; v++)
            of_lanes[v] = vf_max(vf_load(p->score + i + v * LANES), of_lanes[v]);
    for (int v = 0; v < VECTORS; v++)
        vf_store(lane + v * LANES, of_lanes[v]);
    vf_store(shrink, raise_tops(rows, p, lane));
    for (int v = 0; v < VECTORS; v++)
        of_lanes[v] = vf_set(0);
    for (int64_t i = 0; i < all; i += SUMS)
        for (int v = 0; v < VECTORS; v++) {
            float *at = p->score + i + v * LANES;
            const vf weight = vf_exp(vf_load(at) - vf_load(lane + v * LANES));
            vf_store(at, weight);
            of_lanes[v] += weight;
        }
    for (int v = 0; v < VECTORS; v++)
        vf_store(lane + v * LANES, of_lanes[v]);
    for (int r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (int k = 0; k < keys; k++)
            sum += lane[r * keys + k];
        p->row[r].sum = p->row[r].sum * shrink[r] + sum;
        if (shrink[r] != 1.0f)
            rescale(p->out + r * p->value_dim, p->value_dim, shrink[r]);
    }
}

/* ---- weighted values ---- */

/* A vector of columns of a value. */
INLINE vf load_value(int type, const char *row, int64_t d, int v, int64_t left)
{
    const char *run = row + d / RUN * run_bytes(type);
    if (has_scale(type))
        return load_run(type, run + v / RUN_VECTORS * run_bytes(type), v % RUN_VECTORS,
                        load_scale(type, run + v / RUN_VECTORS * run_bytes(type)));
    return left < LANES ? vf_load_part_as(type, row, d, left)
                        : vf_load_as(type, row, d + v * LANES);
}

/* out[r] += weight[r][k] * value k, for rows r .. r + some - 1 of a part of `rows`, and `vectors`
 * vectors of columns from d on. If `left` is less than LANES, there is one vector with `left`
 * columns. */
INLINE void gather_columns(int type, int rows, int some, int r, int vectors,
                           const struct part *p, int64_t d, int64_t left)
{
    const int keys = SUMS / rows;
    const int64_t stride = p->a->v.stride[1],
                  bytes = vectors * LANES * run_bytes(type) / RUN;
    const struct ahead *ahead = &p->v_ahead;
    const int64_t skip = d * run_bytes(type) / RUN;
    const int64_t step = ahead->packed ? bytes : ahead->step;
    uintptr_t next = ahead->base + (uintptr_t)(ahead->packed ? skip * p->n : skip);
    const char *value = p->v;
    float *out = p->out + r * p->value_dim + d;
    vf sum[2 * SUMS], column[COLUMNS];

    for (int i = 0; i < some; i++)
        for (int v = 0; v < vectors; v++)
            sum[i * vectors + v] = vf_load(out + i * p->value_dim + v * LANES);
    for (int64_t k = 0; k < p->n; k++, value += stride, next += (uintptr_t)step) {
        const float *weights = p->score + place_of(rows, r, k);
        if (r == 0)
            fetch(next, bytes);
        for (int v = 0; v < vectors; v++)
            column[v] = load_value(type, value, d, v, left);
        for (int i = 0; i < some; i++) {
            const vf weight = vf_set(weights[i * keys]);
            for (int v = 0; v < vectors; v++)
                sum[i * vectors + v] = vf_fma(weight, column[v], sum[i * vectors + v]);
        }
    }
    for (int i = 0; i < some; i++)
        for (int v = 0; v < vectors; v++)
            vf_store(out + i * p->value_dim + v * LANES, sum[i * vectors + v]);
}

/* All columns of some rows; block types in whole runs. */
INLINE void gather_rows(int type, int rows, int some, int r, const struct part *p)
{
    const int64_t dim = p->a->value_dim;
    const int most = SUMS / some < COLUMNS ? SUMS / some : COLUMNS;
    int64_t d = 0;
    for (; d + most * LANES <= dim; d += most * LANES)
        gather_columns(type, rows, some, r, most, p, d, LANES);
    for (; has_scale(type) && d < dim; d += RUN)
        gather_columns(type, rows, some, r, RUN_VECTORS, p, d, LANES);
    for (; !has_scale(type) && d < dim; d += LANES)
        gather_columns(type, rows, some, r, 1, p, d, dim - d);
}

/* Takes as many rows at once as keep the sums of a whole run in registers. */
INLINE void gather(int type, int rows, const struct part *p)
{
    const int most = has_scale(type) ? SUMS / RUN_VECTORS : BLOCK;
    const int some = rows < most ? rows : most;
    for (int r = 0; r < rows; r += some)
        gather_rows(type, rows, some, r, p);
}

/* ---- by type and number of rows ---- */

typedef void part_fn(const struct part *);

#define FUNCTION(name, rows)                                                               \
    static void name##_##rows(const struct part *p)                                        \
    {                                                                                      \
        name(rows, p);                                                                     \
    }
#define TYPED(name, rows, NAME)                                                            \
    static void name##_##rows##_##NAME(const struct part *p)                               \
    {                                                                                      \
        name(HW_##NAME, rows, p);                                                          \
    }
#define X(NAME)                                                                            \
    TYPED(multiply, 1, NAME)                                                               \
    TYPED(multiply, 2, NAME)                                                               \
    TYPED(multiply, 4, NAME)                                                               \
    TYPED(gather, 1, NAME)                                                                 \
    TYPED(gather, 2, NAME)                                                                 \
    TYPED(gather, 4, NAME)
CACHE_TYPES(X)
#undef X
FUNCTION(adjust, 1)
FUNCTION(adjust, 2)
FUNCTION(adjust, 4)
FUNCTION(weigh, 1)
FUNCTION(weigh, 2)
FUNCTION(weigh, 4)
#undef TYPED
#undef FUNCTION

/* Indexed by the number of rows, less one. */
#define BY_ROWS(name)                                                                      \
    {                                                                                      \
        name##_1, name##_2, NULL, name##_4                                                 \
    }
#define BY_ROWS_OF(name, NAME)                                                             \
    {                                                                                      \
        name##_1_##NAME, name##_2_##NAME, NULL, name##_4_##NAME                            \
    }
static part_fn *const adjusts[BLOCK] = BY_ROWS(adjust);
static part_fn *const weighs[BLOCK] = BY_ROWS(weigh);
#define X(NAME) [HW_##NAME] = BY_ROWS_OF(multiply, NAME),
static part_fn *const multiplies[CACHE_TYPE_END][BLOCK] = { CACHE_TYPES(X) };
#undef X
#define X(NAME) [HW_##NAME] = BY_ROWS_OF(gather, NAME),
static part_fn *const gathers[CACHE_TYPE_END][BLOCK] = { CACHE_TYPES(X) };
#undef X
#undef BY_ROWS
#undef BY_ROWS_OF

/* Products become scores. */
static void adjust_part(const struct part *p, int rows)
{
    const struct attention_args *a = p->a;
    if (a->softcap > 0.0f || a->bias_type || a->has_slopes)
        adjusts[rows - 1](p);
}

/* Adds the keys of a part with 1, 2 or 4 rows to the rows' results. */
static void attend_part(const struct part *p, int rows)
{
    multiplies[p->a->k_type][rows - 1](p);
    adjust_part(p, rows);
    weighs[rows - 1](p);
    gathers[p->a->v_type][rows - 1](p);
}

#endif
