/* SPDX-License-Identifier: MIT */
/* unpacked.h - shared by products that take weights as GGML's blocks (steps.h): strips of rows of b
 * times rows of a, and the division of the work into groups. */
#ifndef CPU_UNPACKED_H
#define CPU_UNPACKED_H

#include "lines.h"
#include "steps.h"

enum {
    STRIP = 16,      /* rows of b: columns of c in a group */
    MOST_TOKENS = 4, /* rows of a that are multiplied at once */
    MOST_AT_ONCE = 4 /* rows of b that are: see rows_at_once() */
};

/* ---- products ---- */

/* Up to STRIP rows of b times up to MOST_TOKENS rows of a. */
struct strip {
    const uint8_t *b;
    int64_t b_stride, rows, k;
    const void *x[MOST_TOKENS]; /* rows of a, in the form that the product takes */
    float out[MOST_TOKENS][STRIP];
};

/* Adds the products of a step of `rows` rows of b and `tokens` rows of a to their sums. */
typedef void step_fn(int type, int tokens, int rows, const uint8_t *const *b,
                     const void *const *x, vf *sum);

/* The function for a step, the bytes of a step in a row of a, and whether a single row of b is
 * multiplied as fast as several. */
struct product {
    step_fn *add;
    int64_t x_bytes;
    bool one_stream;
};

/* Rows of b that `tokens` rows of a multiply at once: more sums would not fit in registers. With
 * one or two tokens, q8_0 waits for memory, which delivers a single stream fastest. */
INLINE int rows_at_once(int type, int tokens, struct product product)
{
    if (tokens > 2)
        return 2;
    return type == HW_Q8_0 && product.one_stream ? 1 : MOST_AT_ONCE;
}

/* Prefetches the next rows of b, or the same row half a page ahead. In a single stream, requests
 * every second line: the processor then fetches pairs, and requests for all lines sometimes disturb
 * its own prefetching. */
INLINE void fetch_step(int type, int rows, const uint8_t *at, int64_t stride)
{
    enum { LINE = 64, HALF_PAGE = 2048, TO_SECOND_CACHE = 2 };
    const int step = rows == 1 ? 2 * LINE : LINE;
    const int64_t ahead = rows == 1 ? HALF_PAGE : rows * stride;
    for (int offset = 0; offset < step_bytes(type); offset += step)
        ASK_FOR(at, ahead + offset, TO_SECOND_CACHE);
}

/* The rows of b from `row` on. If there are fewer, the last one is computed again. */
INLINE void multiply_rows(int type, int tokens, struct product product, struct strip *s,
                          int64_t row)
{
    const int rows = rows_at_once(type, tokens, product);
    const uint8_t *b[MOST_AT_ONCE];
    const void *x[MOST_TOKENS];
    uint8_t rest[MOST_AT_ONCE][STEP_BYTES];
    vf sum[MOST_TOKENS * 2];
    EACH (r, rows)
        b[r] = s->b + (row + r < s->rows ? row + r : s->rows - 1) * s->b_stride;
    EACH (t, tokens)
        x[t] = s->x[t];
    EACH (i, tokens * rows)
        sum[i] = vf_set(0);
    for (int64_t k = 0; k < s->k; k += STEP) {
        EACH (r, rows) {
            fetch_step(type, rows, b[r], s->b_stride);
            b[r] = whole_step(type, b[r], s->k - k, rest[r]);
        }
        product.add(type, tokens, rows, b, x, sum);
        EACH (r, rows)
            b[r] += step_bytes(type);
        EACH (t, tokens)
            x[t] = (const char *)x[t] + product.x_bytes;
    }
    EACH (t, tokens)
        EACH (r, rows)
            s->out[t][row + r] = vf_sum(sum[t * rows + r]);
}

INLINE void multiply_strip(int type, int tokens, struct product product, struct strip *s)
{
    for (int64_t row = 0; row < s->rows; row += rows_at_once(type, tokens, product))
        multiply_rows(type, tokens, product, s, row);
}

/* ---- in floats ---- */

INLINE void float_run(int type, int tokens, int rows, int run,
                      const struct float_factors *f, const uint8_t *const *b,
                      const void *const *x, vf *sum)
{
    EACH (r, rows) {
        _Alignas(PACKED_RUN) uint8_t code[PACKED_RUN];
        const uint8_t *block = b[r] + run * run_bytes_of(type);
        for (int v = 0; v < RUN_VECTORS && type != HW_Q8_0; v++)
            vi_store(code + v * PACKED_WORDS * LANES, codes_of_run(type, block, run, v));
        EACH (i, PACKED_RUN / LANES) {
            const vf w = weights_of(type, &f[r], block, run, code, i * LANES);
            EACH (t, tokens) {
                const float *some = (const float *)x[t] + run * PACKED_RUN + i * LANES;
                sum[t * rows + r] = vf_fma(w, vf_load(some), sum[t * rows + r]);
            }
        }
    }
}

/* A step of `tokens` rows of floats. The codes of K types are in another place for each run. */
INLINE void float_step(int type, int tokens, int rows, const uint8_t *const *b,
                       const void *const *x, vf *sum)
{
    struct float_factors f[MOST_AT_ONCE];
    EACH (r, rows)
        store_factors(type, &f[r], b[r]);
    if (has_shares(type))
        EACH (run, STEP_RUNS)
            float_run(type, tokens, rows, run, f, b, x, sum);
    else
        for (int run = 0; run < STEP_RUNS; run++)
            float_run(type, tokens, rows, run, f, b, x, sum);
}

static const struct product in_floats = { float_step, STEP * sizeof(float), false };

/* ---- the work ---- */

typedef void strip_fn(struct strip *s);

/* The function that multiplies strips of a type by that many rows of a. */
#define STRIP_FN(function, NAME, tokens, product)                                          \
    static void function(struct strip *s)                                                  \
    {                                                                                      \
        multiply_strip(HW_##NAME, tokens, product, s);                                     \
    }

/* By the number of rows of a. */
struct strip_fns {
    strip_fn *one, *two, *four;
};

/* Multiplies by n rows of a; rows beyond the last one repeat it. */
static void multiply_by(const struct strip_fns *fns, struct strip *s, int64_t n)
{
    for (int64_t t = n; t < MOST_TOKENS; t++)
        s->x[t] = s->x[n - 1];
    (n == 1 ? fns->one : n == 2 ? fns->two : fns->four)(s);
}

static inline int64_t strips_of(const struct plan *plan)
{
    const int64_t n = lines_of(plan).n;
    return n / STRIP + (n % STRIP != 0);
}

/* Some columns of up to MOST_TOKENS rows of c, by their numbers. */
struct square {
    struct strip strip;
    int64_t col, count;
    int64_t a[MOST_TOKENS]; /* rows of a */
    struct result to[MOST_TOKENS];
};

/* Multiplies the rows of a square, as `thread`. */
typedef void square_fn(const struct plan *plan, struct square *square, uint32_t thread);

static inline void put_square(const struct square *q, int64_t i)
{
    put_sums(&q->to[i], q->col, q->strip.rows, q->strip.out[i]);
}

/* Columns `col` and following of the matrix b. */
static inline void set_strip(struct square *q, const struct lines *l, int64_t col,
                             const char *b, int64_t stride)
{
    q->col = col;
    q->count = 0;
    q->strip.b = (const uint8_t *)b + col * stride;
    q->strip.b_stride = stride;
    q->strip.rows = l->n - col < STRIP ? l->n - col : STRIP;
    q->strip.k = l->k;
}

/* ---- matmul ---- */

static inline void matmul_group(const struct plan *plan, int64_t group, square_fn *multiply,
                                uint32_t thread)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct lines l = lines_of(plan);
    const int64_t rows = matrices_of(plan).rows, across = strips_of(plan);
    const int64_t matrix = group / across, end = matrix * rows + rows;
    const char *b = matrix_of_b(plan, matrix);
    for (int64_t r = matrix * rows; r < end;) {
        struct square q;
        set_strip(&q, &l, group % across * STRIP, b, m->b.stride[2]);
        for (; q.count < MOST_TOKENS && r < end; q.count++, r++) {
            q.a[q.count] = r;
            q.to[q.count] = result_of(plan, r);
        }
        multiply(plan, &q, thread);
    }
}

/* ---- matmul_id ---- */

/* The expert of a token's choice; `experts` if it does not exist. */
static inline int64_t expert_of(const struct plan *plan, int64_t token, int64_t choice)
{
    const struct matmul_id_args *m = &plan->lowered.args.matmul_id;
    const char *ids = (const char *)plan->pointer[3] + m->ids_offset +
                      token * m->ids_stride;
    const int32_t id = ((const int32_t *)(const void *)ids)[choice];
    return id >= 0 && id < m->experts ? id : m->experts;
}

/* The expert to compute addresses with: 0 if it does not exist, and then nothing is read. */
static inline int64_t existing(const struct matmul_id_args *m, int64_t expert)
{
    return expert < m->experts ? expert : 0;
}

static inline void begin_choices(const struct plan *plan, struct square *q, int64_t expert,
                                 int64_t strip)
{
    const struct matmul_id_args *m = &plan->lowered.args.matmul_id;
    const struct lines l = lines_of(plan);
    set_strip(q, &l, strip * STRIP,
              (const char *)plan->pointer[2] + m->b.offset +
                  existing(m, expert) * m->b.stride[1],
              m->b.stride[2]);
}

static inline void add_choice(const struct plan *plan, struct square *q, int64_t expert,
                              int64_t token, int64_t choice)
{
    const struct matmul_id_args *m = &plan->lowered.args.matmul_id;
    const int64_t some = rows_of_token(m);
    q->a[q->count] = token * some + choice % some;
    q->to[q->count++] = (struct result){
        .c = (char *)plan->pointer[0] + m->c.offset + token * m->c.stride[1] +
             choice * m->c.stride[2],
        .bias = (const char *)plan->pointer[4] + m->bias_offset +
                existing(m, expert) * m->bias_stride,
        .n = m->n,
        .c_type = m->c_type,
        .bias_type = expert < m->experts ? m->bias_type : 0,
    };
}

/* Multiplies the rows of a square that were added. */
static inline void end_choices(const struct plan *plan, struct square *q, int64_t expert,
                               square_fn *multiply, uint32_t thread)
{
    if (expert < plan->lowered.args.matmul_id.experts) {
        multiply(plan, q, thread);
    } else {
        memset(q->strip.out, 0, sizeof q->strip.out);
        for (int64_t i = 0; i < q->count; i++)
            put_square(q, i);
    }
    q->count = 0;
}

static inline void multiply_expert(const struct plan *plan, int64_t expert, int64_t strip,
                                   square_fn *multiply, uint32_t thread)
{
    const struct matmul_id_args *m = &plan->lowered.args.matmul_id;
    struct square q;
    begin_choices(plan, &q, expert, strip);
    for (int64_t token = 0; token < m->tokens; token++)
        for (int64_t choice = 0; choice < m->used; choice++) {
            if (expert_of(plan, token, choice) != expert)
                continue;
            add_choice(plan, &q, expert, token, choice);
            if (q.count == MOST_TOKENS)
                end_choices(plan, &q, expert, multiply, thread);
        }
    if (q.count)
        end_choices(plan, &q, expert, multiply, thread);
}

/* With few rows of c, a group is a strip of one row; otherwise, of all rows of an expert. */
static inline bool by_choice(const struct plan *plan)
{
    const struct matmul_id_args *m = &plan->lowered.args.matmul_id;
    return m->tokens * m->used <= m->experts;
}

static inline void expert_group(const struct plan *plan, int64_t group, square_fn *multiply,
                                uint32_t thread)
{
    const int64_t used = plan->lowered.args.matmul_id.used, across = strips_of(plan);
    const int64_t i = group / across, strip = group % across;
    if (!by_choice(plan)) {
        multiply_expert(plan, i, strip, multiply, thread);
        return;
    }
    const int64_t expert = expert_of(plan, i / used, i % used);
    struct square q;
    begin_choices(plan, &q, expert, strip);
    add_choice(plan, &q, expert, i / used, i % used);
    end_choices(plan, &q, expert, multiply, thread);
}

/* ---- both ---- */

static inline void multiply_group(const struct plan *plan, int64_t group,
                                  square_fn *multiply, uint32_t thread)
{
    if (has_experts(plan))
        expert_group(plan, group, multiply, thread);
    else
        matmul_group(plan, group, multiply, thread);
}

/* The most rows of a for weights of a type; with more, packing b pays off. */
typedef int64_t rows_fn(int type);

/* Fills in everything but `run` and its preparation. Returns NULL, or the reason why not. */
static inline const char *plan_unpacked(struct plan *plan, const struct kernel_row *row,
                                        const void *args, rows_fn *most)
{
    const char *why = plan_lowered(plan, row, args);
    if (why || plan->groups == 0)
        return why;
    const struct lines l = lines_of(plan);
    if ((double)l.a_rows * (double)l.k > 0x1p42)
        return "too many rows to prepare at once";
    if (has_experts(plan)) {
        const int64_t experts = plan->lowered.args.matmul_id.experts + 1;
        plan->groups = (by_choice(plan) ? l.c_rows : experts) * strips_of(plan);
        return NULL;
    }
    const struct matrices all = matrices_of(plan);
    if (all.rows > most(l.b_type))
        return "with so many rows of a, packing b is faster";
    plan->groups = all.count * strips_of(plan);
    return NULL;
}

#endif
