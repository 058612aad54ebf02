/* SPDX-License-Identifier: MIT */
/* silu, swiglu, activation, glu, add, mul, sub, div and scale, as defined by the portable kernels
 * of these names. Each function has a loop for each type of floats; the last few elements of a
 * stretch go through the same loop, padded to a vector. On f32, the portable add, mul, sub, div and
 * scale already run at the speed of memory. */
#include "curves.h"
#include "spans.h"

DECLARE_PLAN(silu);
DECLARE_PLAN(swiglu);
DECLARE_PLAN(activation);
DECLARE_PLAN(glu);
DECLARE_PLAN(add);
DECLARE_PLAN(mul);
DECLARE_PLAN(sub);
DECLARE_PLAN(div);
DECLARE_PLAN(scale);

/* The operands of a loop. `p` and `q` are the numbers of its function. */
struct work {
    char *y;
    const char *a, *b;
    float p, q;
};

/* Computes n elements, a multiple of LANES. */
typedef void loop_fn(const struct work *w, int64_t n);

/* ---- functions ---- */

INLINE vf sigmoid(vf x)
{
    return vf_set(1.0f) / (vf_set(1.0f) + vf_exp_minus(x));
}

/* x times the sigmoid of t. */
INLINE vf gated(vf x, vf t)
{
    return x / (vf_set(1.0f) + vf_exp_minus(t));
}

/* e^x - 1: near zero, the difference would cancel. */
INLINE vf expm1_of(vf x)
{
    const vf near_zero = vf_fma(vf_exp_curve(x) * x, x, x);
    return vf_if_less(vf_abs(x), vf_set(0.34657359f), near_zero, vf_exp(x) - vf_set(1.0f));
}

/* The tail of the normal distribution beyond t >= 0, like normal_tail_f32() of prelude/math.h. */
INLINE vf normal_tail(vf t)
{
    const vf k = vf_set(1.0f) / vf_fma(vf_set(0.34f), t, vf_set(1.0f));
    vf p = vf_fma(vf_set(-2.5876142085e-2f), k, vf_set(1.3835564256e-1f));
    p = vf_fma(p, k, vf_set(-2.7086815238e-1f));
    p = vf_fma(p, k, vf_set(1.9971440732e-1f));
    p = vf_fma(p, k, vf_set(-4.3104179204e-2f));
    p = vf_fma(p, k, vf_set(1.1471275240e-1f));
    p = vf_fma(p, k, vf_set(1.1535190791e-1f));
    p = vf_fma(p, k, vf_set(1.3609220088e-1f));
    p = vf_fma(p, k, vf_set(1.3562157750e-1f));
    return p * k * vf_exp(vf_set(-0.5f) * t * t);
}

INLINE vf gelu(vf x)
{
    const vf tail = normal_tail(vf_abs(x));
    return x * vf_if_less(x, vf_set(0.0f), tail, vf_set(1.0f) - tail);
}

INLINE vf gelu_tanh(vf x)
{
    const vf cubic = vf_fma(vf_set(0.044715f) * x * x, x, x);
    return gated(x, vf_set(1.59576912f) * cubic);
}

INLINE vf clip(vf x, vf lo, vf hi)
{
    return vf_if_less(x, lo, lo, vf_if_less(hi, x, hi, x));
}

/* ---- loops ---- */

#define NARROW_TYPES(X, ...) X(F16, f16, __VA_ARGS__) X(BF16, bf16, __VA_ARGS__)
#define TYPES(X, ...)        X(F32, f32, __VA_ARGS__) NARROW_TYPES(X, __VA_ARGS__)

/* X(KIND, value) of x and the numbers p and q. */
#define FUNCTIONS(X)                                                                       \
    X(RELU, vf_if_less(x, vf_set(0.0f), vf_set(0.0f), x))                                  \
    X(LEAKY_RELU, vf_if_less(x, vf_set(0.0f), p *x, x))                                    \
    X(ELU, vf_if_less(x, vf_set(0.0f), p *expm1_of(x), x))                                 \
    X(SIGMOID, sigmoid(x))                                                                 \
    X(TANH, tanh_of(x))                                                                    \
    X(GELU, gelu(x))                                                                       \
    X(GELU_TANH, gelu_tanh(x))                                                             \
    X(GELU_QUICK, gated(x, vf_set(1.702f) * x))                                            \
    X(SILU, gated(x, x))                                                                   \
    X(CLIP, clip(x, p, q))

#define LOOP(name, TYPE, value)                                                            \
    static void name(const struct work *w, int64_t n)                                      \
    {                                                                                      \
        const vf p = vf_set(w->p), q = vf_set(w->q);                                       \
        (void)p, (void)q;                                                                  \
        for (int64_t i = 0; i < n; i += LANES) {                                           \
            const vf x = vf_load_as(HW_##TYPE, w->a, i);                                   \
            vf_store_as(HW_##TYPE, w->y, i, value);                                        \
        }                                                                                  \
    }

#define OTHER(TYPE) vf_load_as(HW_##TYPE, w->b, i)
#define FUNCTION_LOOPS(TYPE, type, KIND, value)                                            \
    LOOP(KIND##_##type, TYPE, value)                                                       \
    LOOP(KIND##_times_##type, TYPE, (value)*OTHER(TYPE))
#define X(KIND, value) TYPES(FUNCTION_LOOPS, KIND, value)
FUNCTIONS(X)
#undef X

#define SUM_LOOPS(TYPE, type, name, sign)                                                  \
    LOOP(name##_##type, TYPE, x sign OTHER(TYPE))                                          \
    LOOP(name##_one_##type, TYPE, x sign p)
NARROW_TYPES(SUM_LOOPS, add, +)
NARROW_TYPES(SUM_LOOPS, mul, *)
NARROW_TYPES(SUM_LOOPS, sub, -)
NARROW_TYPES(SUM_LOOPS, div, /)

#define SCALE_LOOP(TYPE, type, value) LOOP(scale_##type, TYPE, value)
NARROW_TYPES(SCALE_LOOP, vf_fma(x, p, q))

/* By type; HW_F32 is the first. */
#define BY_TYPE(name)                                                                      \
    {                                                                                      \
        name##_f32, name##_f16, name##_bf16                                                \
    }
#define BY_NARROW(name)                                                                    \
    {                                                                                      \
        NULL, name##_f16, name##_bf16                                                      \
    }
_Static_assert(HW_F16 == HW_F32 + 1 && HW_BF16 == HW_F32 + 2, "floats are neighbours");

/* By kind, and whether the result is multiplied by another operand. */
static loop_fn *const functions[][2][3] = {
#define X(KIND, value) [ACTIVATION_##KIND] = { BY_TYPE(KIND), BY_TYPE(KIND##_times) },
    FUNCTIONS(X)
#undef X
};

/* By kind, and whether b has one value per row. */
static loop_fn *const binaries[][2][3] = {
    [BINARY_ADD] = { BY_NARROW(add), BY_NARROW(add_one) },
    [BINARY_MUL] = { BY_NARROW(mul), BY_NARROW(mul_one) },
    [BINARY_SUB] = { BY_NARROW(sub), BY_NARROW(sub_one) },
    [BINARY_DIV] = { BY_NARROW(div), BY_NARROW(div_one) },
};

static loop_fn *const scales[3] = BY_NARROW(scale);

/* ---- stretches ---- */

/* Computes n elements of `bytes` each, fewer than LANES. */
static void compute_few(loop_fn *loop, const struct work *w, int64_t n, int64_t bytes)
{
    char y[LANES * 4], a[LANES * 4] = { 0 }, b[LANES * 4] = { 0 };
    memcpy(a, w->a, (size_t)(n * bytes));
    if (w->b)
        memcpy(b, w->b, (size_t)(n * bytes));
    loop(&(struct work){ .y = y, .a = a, .b = b, .p = w->p, .q = w->q }, LANES);
    memcpy(w->y, y, (size_t)(n * bytes));
}

static void compute(loop_fn *loop, const struct work *w, int64_t n, int64_t bytes)
{
    const int64_t whole = n / LANES * LANES, done = whole * bytes;
    if (whole)
        loop(w, whole);
    if (n > whole)
        compute_few(loop,
                    &(struct work){ .y = w->y + done,
                                    .a = w->a + done,
                                    .b = w->b ? w->b + done : NULL,
                                    .p = w->p,
                                    .q = w->q },
                    n - whole, bytes);
}

/* An op: its operands (NULL if absent) and the loops of its types. `one`: b has one value per row,
 * which the loop takes as p. */
struct task {
    const struct place *y, *a, *b;
    int64_t n1, n2, cols;
    int32_t type;
    bool one;
    loop_fn *const *loops;
    float p, q;
};

static float first_of(int32_t type, const void *p)
{
    float v[LANES];
    vf_store(v, type == HW_F32   ? vf_load_part(p, 1)
                : type == HW_F16 ? vf_load_part_f16(p, 1)
                                 : vf_load_part_bf16(p, 1));
    return v[0];
}

static void run_task(const struct plan *plan, const struct task *t, int64_t group,
                     int64_t end)
{
    const int64_t bytes = t->type == HW_F32 ? 4 : 2;
    while (group < end) {
        const struct stretch s = next_stretch(&group, end, t->cols);
        const int64_t skip = s.first * bytes;
        struct work w = { .p = t->p, .q = t->q };
        w.y = row_of(plan->pointer[0], t->y, t->n1, t->n2, s.row) + skip;
        w.a = row_of(plan->pointer[1], t->a, t->n1, t->n2, s.row) + skip;
        if (t->b) {
            const char *b = row_of(plan->pointer[2], t->b, t->n1, t->n2, s.row);
            if (t->one)
                w.p = first_of(t->type, b);
            else
                w.b = b + skip;
        }
        compute(t->loops[t->type - HW_F32], &w, s.count, bytes);
    }
}

/* ---- the rows of kernels.def ---- */

#define RUN(name)                                                                          \
    static void run_##name(const struct plan *plan, int64_t first, int64_t end,            \
                           uint32_t thread)

#define PLAN_OF(name)                                                                      \
    const char *PLAN(name)(struct plan * plan, const struct kernel_row *row,               \
                           const void *args)                                               \
    {                                                                                      \
        const char *why = plan_lowered(plan, row, args);                                   \
        if (why)                                                                           \
            return why;                                                                    \
        plan->run = run_##name;                                                            \
        plan->work /= 5; /* measured against the portable kernel's estimate */             \
        return NULL;                                                                       \
    }

/* The members of a task that all these ops' arguments have. */
#define SHAPE_OF(s) .y = &(s)->y, .n1 = (s)->n1, .n2 = (s)->n2, .cols = (s)->cols

RUN(silu)
{
    const struct silu_args *s = &plan->lowered.args.silu;
    const struct task task = { SHAPE_OF(s), .a = &s->x,
                               .type = ((const struct hw_silu *)plan->op)->y.dtype,
                               .loops = functions[ACTIVATION_SILU][0] };
    (void)thread;
    run_task(plan, &task, first, end);
}
PLAN_OF(silu)

RUN(swiglu)
{
    const struct swiglu_args *s = &plan->lowered.args.swiglu;
    const struct task task = { SHAPE_OF(s), .a = &s->gate, .b = &s->up,
                               .type = ((const struct hw_swiglu *)plan->op)->y.dtype,
                               .loops = functions[ACTIVATION_SILU][1] };
    (void)thread;
    run_task(plan, &task, first, end);
}
PLAN_OF(swiglu)

/* The first number of a function. */
static float number_of(const struct activation *f)
{
    return f->kind == ACTIVATION_CLIP ? f->lo : f->alpha;
}

RUN(activation)
{
    const struct activation_args *s = &plan->lowered.args.activation;
    const struct task task = { SHAPE_OF(s),           .a = &s->x,
                               .type = s->type,       .loops = functions[s->f.kind][0],
                               .p = number_of(&s->f), .q = s->f.hi };
    (void)thread;
    run_task(plan, &task, first, end);
}
PLAN_OF(activation)

RUN(glu)
{
    const struct glu_args *s = &plan->lowered.args.glu;
    const struct task task = { SHAPE_OF(s),
                               .a = &s->gate,
                               .b = &s->up,
                               .type = s->type,
                               .loops = functions[s->f.kind][1],
                               .p = number_of(&s->f),
                               .q = s->f.hi };
    (void)thread;
    run_task(plan, &task, first, end);
}
PLAN_OF(glu)

RUN(scale)
{
    const struct scale_args *s = &plan->lowered.args.scale;
    const struct task task = { SHAPE_OF(s),
                               .a = &s->x,
                               .type = ((const struct hw_scale *)plan->op)->y.dtype,
                               .loops = scales,
                               .p = s->scale,
                               .q = s->bias };
    (void)thread;
    run_task(plan, &task, first, end);
}
PLAN_OF(scale)

/* These four ops have the same layout of arguments, including the type of the output. */
static void run_binary(const struct plan *plan, enum binary_kind kind, int64_t first,
                       int64_t end)
{
    const struct binary_args *s = &plan->lowered.args.add;
    const struct task task = { SHAPE_OF(s),       .a = &s->a,
                               .b = &s->b,        .type = plan->lowered.operand[0]->dtype,
                               .one = !s->b_step, .loops = binaries[kind][!s->b_step] };
    run_task(plan, &task, first, end);
}

#define BINARY(NAME, name)                                                                 \
    RUN(name)                                                                              \
    {                                                                                      \
        (void)thread;                                                                      \
        run_binary(plan, BINARY_##NAME, first, end);                                       \
    }                                                                                      \
    const char *PLAN(name)(struct plan * plan, const struct kernel_row *row,               \
                           const void *args)                                               \
    {                                                                                      \
        const char *why = plan_lowered(plan, row, args);                                   \
        plan->run = run_##name;                                                            \
        return why || plan->lowered.kernel == PORTABLE_##name                              \
                   ? why                                                                   \
                   : "inputs repeat or have other types";                                  \
    }
BINARY(ADD, add)
BINARY(MUL, mul)
BINARY(SUB, sub)
BINARY(DIV, div)
