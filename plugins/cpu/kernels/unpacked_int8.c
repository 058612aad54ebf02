/* SPDX-License-Identifier: MIT */
/* matmul of few rows of a, and matmul_id, with unpacked weights of block types, for
 * HW_PRECISION=int8: rows of a are rounded to 8 bits, and integer dot products are computed with
 * rows of b, as they are in a mapped file.
 *
 * First, rows of a are rounded, in runs of 32 with a scale each. Then each run of a row of b
 * becomes one vector of codes (two with NEON); its products with a run of a are scaled and added to
 * that row's sums in f32. A row of a with numbers that bytes cannot represent, such as NaN, is
 * multiplied in floats. */
#include "unpacked.h"

DECLARE_PLAN(unpacked_int8);
DECLARE_PLAN(experts_int8);

/* A step of a row of a. Runs beyond its end are zeros. */
struct rounded_step {
    int8_t code[STEP_RUNS][PACKED_RUN];
    float scale[STEP_RUNS];
    /* of the numbers that codes represent: minima are multiplied by it */
    float sum[STEP_RUNS];
    /* the start of each lane of a sum, for each half of a run, as codes of b are unsigned */
    int32_t start[STEP_RUNS][2];
};

/* ---- rows of a ---- */

static int64_t steps_of(const struct plan *plan)
{
    return (lines_of(plan).k + STEP - 1) / STEP;
}

static struct rounded_step *row_of_steps(const struct plan *plan, int64_t r)
{
    return (struct rounded_step *)plan_shared(plan) + r * steps_of(plan);
}

/* Whether row r could not be rounded: a flag, stored after the steps of all rows. */
static uint8_t *wrong_of(const struct plan *plan, int64_t r)
{
    return (uint8_t *)row_of_steps(plan, lines_of(plan).a_rows) + r;
}

/* Rounds run i of a step. Half a run is 16 / PACKED_WORDS lanes; if both halves have the same
 * scale, all lanes are treated alike. */
static bool round_into(struct rounded_step *step, int i, const float *x, int type)
{
    enum { HALF_LANES = PACKED_RUN / 2 / PACKED_WORDS };
    const int zero = zero_code(type, DOT_ZERO);
    const struct rounded_run run = round_run(step->code[i], x);
    step->scale[i] = run.scale;
    step->sum[i] = run.scale * (float)(run.sum[0] + run.sum[1]);
    for (int h = 0; h < 2; h++)
        step->start[i][h] = -(type == HW_Q6_K ? zero / HALF_LANES * run.sum[h]
                                              : zero / LANES * (run.sum[0] + run.sum[1]));
    return run.good;
}

static void prepare_steps(const struct plan *plan, int64_t first, int64_t end,
                          uint32_t thread)
{
    const struct lines l = lines_of(plan);
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        const struct line a = line_of_a(plan, r);
        struct rounded_step *step = row_of_steps(plan, r);
        bool good = true;
        memset(&step[l.k / STEP], 0, l.k % STEP ? sizeof *step : 0);
        for (int64_t k = 0; k < l.k; k += PACKED_RUN) {
            float x[PACKED_RUN];
            run_floats(l.a_type, x, &a, k);
            good &= round_into(&step[k / STEP], (int)(k % STEP / PACKED_RUN), x, l.b_type);
        }
        *wrong_of(plan, r) = !good;
    }
}

/* ---- strips ---- */

/* A step of two halves of different scales in each run: q6_K. */
INLINE void halves_step(int tokens, int rows, const uint8_t *const *b,
                        const struct rounded_step *const *x, vf *sum)
{
    float scale[MOST_AT_ONCE][2 * STEP_RUNS];
    EACH (r, rows) {
        struct step_factors f;
        factors_of_step(HW_Q6_K, &f, b[r]);
        EACH (i, 2 * STEP_VECTORS)
            vf_store(scale[r] + i * LANES, f.scale[i]);
    }
    EACH (run, STEP_RUNS)
        EACH (r, rows)
            EACH (v, RUN_VECTORS) {
                const vi codes = codes_of_run(HW_Q6_K, b[r], run, v);
                const vf w = vf_set_half(scale[r] + 2 * run, v);
                EACH (t, tokens) {
                    vi dot = vi_set_half(x[t]->start[run], v);
                    dot = dot_add(6, dot, codes,
                                  vi_load(x[t]->code[run] + v * PACKED_WORDS * LANES));
                    sum[t * rows + r] = vf_fma(vf_of_vi(dot), w * vf_set(x[t]->scale[run]),
                                               sum[t * rows + r]);
                }
            }
}

/* The scales of `tokens` rows of a times the scales of a row of b, and the addends of minima. */
INLINE void scales_of_step(int type, int tokens, const uint8_t *b,
                           const struct rounded_step *const *x, float scale[][STEP_RUNS],
                           vf *sum, int rows)
{
    struct step_factors f;
    factors_of_step(type, &f, b);
    EACH (t, tokens)
        EACH (i, STEP_VECTORS) {
            vf_store(scale[t] + i * LANES, f.scale[i] * vf_load(x[t]->scale + i * LANES));
            if (minimum(type))
                sum[t * rows] = vf_fma(f.less[i], vf_load(x[t]->sum + i * LANES),
                                       sum[t * rows]);
        }
}

INLINE void multiply_run(int type, int tokens, int rows, int run,
                         float scale[][MOST_TOKENS][STEP_RUNS], const uint8_t *const *b,
                         const struct rounded_step *const *x, vf *sum)
{
    const int bits = code_bits(type);
    EACH (r, rows) {
        vi codes[RUN_VECTORS];
        EACH (v, RUN_VECTORS)
            codes[v] = codes_of_run(type, b[r] + run * run_bytes_of(type), run, v);
        EACH (t, tokens) {
            const int32_t start = x[t]->start[run][0];
            vi dot = dot_begin(bits, start);
            EACH (v, RUN_VECTORS)
                dot = dot_add(bits, dot, codes[v],
                              vi_load(x[t]->code[run] + v * PACKED_WORDS * LANES));
            dot = dot_end(bits, dot, start);
            sum[t * rows + r] = vf_fma(vf_of_vi(dot), vf_set(scale[r][t][run]),
                                       sum[t * rows + r]);
        }
    }
}

INLINE void runs_step(int type, int tokens, int rows, const uint8_t *const *b,
                      const struct rounded_step *const *x, vf *sum)
{
    float scale[MOST_AT_ONCE][MOST_TOKENS][STEP_RUNS];
    EACH (r, rows)
        scales_of_step(type, tokens, b[r], x, scale[r], sum + r, rows);
    if (has_shares(type))
        EACH (run, STEP_RUNS)
            multiply_run(type, tokens, rows, run, scale, b, x, sum);
    else
        for (int run = 0; run < STEP_RUNS; run++)
            multiply_run(type, tokens, rows, run, scale, b, x, sum);
}

INLINE void add_step(int type, int tokens, int rows, const uint8_t *const *b,
                     const void *const *x, vf *sum)
{
    const struct rounded_step *a[MOST_TOKENS];
    EACH (t, tokens)
        a[t] = x[t];
    if (type == HW_Q6_K)
        halves_step(tokens, rows, b, a, sum);
    else
        runs_step(type, tokens, rows, b, a, sum);
}

static const struct product in_bytes = { add_step, sizeof(struct rounded_step), true };

#define X(NAME, name, elements, head, run)                                                 \
    STRIP_FN(one_##name, NAME, 1, in_bytes)                                                \
    STRIP_FN(two_##name, NAME, 2, in_bytes)                                                \
    STRIP_FN(four_##name, NAME, MOST_TOKENS, in_bytes)                                     \
    STRIP_FN(floats_##name, NAME, 1, in_floats)
PACKED_TYPES(X)
#undef X

/* The functions of a type, and the one for a row of floats. */
static struct strip_fns fns_of(int type, strip_fn **floats)
{
    switch (type) {
#define X(NAME, name, elements, head, run)                                                 \
    case HW_##NAME:                                                                        \
        *floats = floats_##name;                                                           \
        return (struct strip_fns){ one_##name, two_##name, four_##name };
        PACKED_TYPES(X)
#undef X
    default:
        return (struct strip_fns){ 0 };
    }
}

/* ---- groups ---- */

/* A row that was not rounded, as floats in `x`. */
static void row_in_floats(const struct plan *plan, struct square *q, int64_t i, float *x,
                          strip_fn *floats)
{
    floats_of_row(plan, q->a[i], x);
    q->strip.x[0] = x;
    floats(&q->strip);
    put_sums(&q->to[i], q->col, q->strip.rows, q->strip.out[0]);
}

static void multiply(const struct plan *plan, struct square *q, uint32_t thread)
{
    strip_fn *floats = NULL;
    const struct strip_fns fns = fns_of(lines_of(plan).b_type, &floats);
    for (int64_t i = 0; i < q->count; i++)
        q->strip.x[i] = row_of_steps(plan, q->a[i]);
    multiply_by(&fns, &q->strip, q->count);
    for (int64_t i = 0; i < q->count; i++)
        put_square(q, i);
    for (int64_t i = 0; i < q->count; i++)
        if (*wrong_of(plan, q->a[i]))
            row_in_floats(plan, q, i, plan_own(plan, thread), floats);
}

static void run_groups(const struct plan *plan, int64_t group, int64_t end, uint32_t thread)
{
    for (; group < end; group++)
        multiply_group(plan, group, multiply, thread);
}

/* More rows are multiplied by panels (blocks_int8). The limits were measured for each type: panels
 * of q6_K take longest to pack. With NEON, nothing was timed. */
static int64_t most_rows(int type)
{
#if defined(__AVX512VNNI__)
    return type == HW_Q6_K ? 4 : 2;
#elif defined(__AVX2__)
    return type == HW_Q6_K ? 8 : 2;
#else
    (void)type;
    return 8;
#endif
}

const char *PLAN(unpacked_int8)(struct plan *plan, const struct kernel_row *row,
                                const void *args)
{
    const char *why = plan_unpacked(plan, row, args, most_rows);
    if (why || plan->groups == 0)
        return why;
    plan->run = run_groups;
    plan->work /= 8;
    plan_prepare(plan, prepare_steps,
                 (uint64_t)steps_of(plan) * sizeof(struct rounded_step) + 1);
    plan->own_bytes = float_row_bytes(plan);
    return NULL;
}

/* The same function for matmul_id; its row needs another name. */
const char *PLAN(experts_int8)(struct plan *plan, const struct kernel_row *row,
                               const void *args)
{
    return PLAN(unpacked_int8)(plan, row, args);
}
