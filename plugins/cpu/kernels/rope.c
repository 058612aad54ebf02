/* SPDX-License-Identifier: MIT */
/* rope, as kernels/rope.c defines it. The frequency of a pair is computed once for all tokens,
 * sines and cosines once for all heads of a token, and heads are rotated in vectors. */
#include "words.h"

DECLARE_PLAN(rope);

/* A thread's memory, a->dims elements each, but half as many for `turn`. With `interleaved`,
 * cosines are in both places of a pair, and sines as -sine, sine. */
struct tables {
    uint64_t *frequency; /* of each pair, in 2^-64 of a turn */
    float *cosine, *sine;
    uint32_t *turn; /* of each pair at a token's position, in 2^-32 of a turn */
};

static struct tables tables_of(const struct plan *plan, uint32_t thread)
{
    const int64_t dims = plan->lowered.args.rope.dims;
    struct tables t = { .frequency = plan_own(plan, thread) };
    t.cosine = (float *)(t.frequency + dims / 2);
    t.sine = t.cosine + dims;
    t.turn = (uint32_t *)(t.sine + dims);
    return t;
}

static uint64_t tables_bytes(int64_t dims)
{
    return (uint64_t)dims / 2 * (sizeof(uint64_t) + 4 * sizeof(float) + sizeof(uint32_t));
}

/* ---- angles ---- */

/* a * b / 2^64. */
static uint64_t scaled(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
}

/* frequency / factor. The factor is m * 2^(e - 23); long division divides by m. */
static uint64_t divided(uint64_t frequency, float factor)
{
    uint32_t u;
    memcpy(&u, &factor, sizeof u);
    const uint64_t m = (u & 0x7fffff) | 0x800000;
    const int e = (int)(u >> 23 & 255) - 127;
    const uint64_t quotient = (frequency / m << 23) + ((frequency % m << 23) / m);
    if (e >= 0)
        return e < 64 ? quotient >> e : 0;
    return e > -64 ? quotient << -e : 0;
}

/* The frequency of a pair after YaRN's reduction. */
static uint64_t reduced(const struct rope_args *a, uint64_t frequency, int64_t pair)
{
    const int64_t n = pair - a->ramp_first;
    const int64_t steps = n < 0 ? 0 : n < a->ramp_length ? n : a->ramp_length;
    return frequency - scaled(frequency, a->reduction + (uint64_t)steps * a->step);
}

static void set_frequencies(const struct plan *plan, const struct tables *t)
{
    const struct rope_args *a = &plan->lowered.args.rope;
    const float *factors = (float *)((char *)plan->pointer[3] + a->factors_offset);
    uint64_t frequency = a->frequency;
    for (int64_t i = 0; i < a->dims / 2; i++) {
        const uint64_t f = a->ramped ? reduced(a, frequency, i) : frequency;
        t->frequency[i] = a->has_factors ? divided(f, factors[i]) : f;
        frequency = scaled(frequency, a->ratio);
    }
}

/* Sine and cosine of turn / 2^32 of a turn, by polynomials around each quarter of a turn. Scalar
 * code: compilers vectorise the loops over it. */
struct both {
    float sine, cosine;
};

INLINE struct both sine_and_cosine(uint32_t turn)
{
    const uint32_t quadrant = (turn + 0x20000000u) >> 30;
    const float x = (float)(int32_t)(turn - (quadrant << 30)) * 1.46291807926715968e-9f;
    const float s = x * x;
    float sine = -1.9515295891e-4f;
    sine = sine * s + 8.3321608736e-3f;
    sine = sine * s - 1.6666654611e-1f;
    sine = sine * s * x + x;
    float cosine = 2.443315711809948e-5f;
    cosine = cosine * s - 1.388731625493765e-3f;
    cosine = cosine * s + 4.166664568298827e-2f;
    cosine = cosine * s * s - 0.5f * s + 1.0f;
    const float u = quadrant & 1 ? cosine : sine, v = quadrant & 1 ? sine : cosine;
    return (struct both){ quadrant & 2 ? -u : u, (quadrant + 1) & 2 ? -v : v };
}

static void set_sines(const struct rope_args *a, const struct tables *t, uint64_t position)
{
    const int64_t pairs = a->dims / 2;
    for (int64_t i = 0; i < pairs; i++)
        t->turn[i] = (uint32_t)(position * t->frequency[i] >> 32);
    for (int64_t i = 0; i < pairs; i++) {
        const struct both at = sine_and_cosine(t->turn[i]);
        t->sine[i] = a->magnitude * at.sine;
        t->cosine[i] = a->magnitude * at.cosine;
    }
    for (int64_t i = pairs - 1; i >= 0 && a->interleaved; i--) {
        const float sine = t->sine[i], cosine = t->cosine[i];
        t->sine[2 * i] = -sine;
        t->sine[2 * i + 1] = sine;
        t->cosine[2 * i] = t->cosine[2 * i + 1] = cosine;
    }
}

/* ---- a head ---- */

/* Pairs are neighbours. */
INLINE void rotate_neighbours(int type, char *y, const char *x, const struct tables *t,
                              int64_t dims)
{
    int64_t i = 0;
    for (; i + LANES <= dims; i += LANES) {
        const vf v = vf_load_as(type, x, i);
        vf_store_as(type, y, i,
                    vf_fma(v, vf_load(t->cosine + i), vf_swap(v) * vf_load(t->sine + i)));
    }
    if (i < dims) {
        const vf v = vf_load_part_as(type, x, i, dims - i);
        const vf c = vf_load_part(t->cosine + i, dims - i);
        const vf s = vf_load_part(t->sine + i, dims - i);
        vf_store_part_as(type, y, i, vf_fma(v, c, vf_swap(v) * s), dims - i);
    }
}

/* The second of a pair is half the dimensions away. */
INLINE void rotate_halves(int type, char *y, const char *x, const struct tables *t,
                          int64_t half)
{
    int64_t i = 0;
    for (; i + LANES <= half; i += LANES) {
        const vf u = vf_load_as(type, x, i), v = vf_load_as(type, x, half + i);
        const vf c = vf_load(t->cosine + i), s = vf_load(t->sine + i);
        vf_store_as(type, y, i, vf_fma(u, c, -(v * s)));
        vf_store_as(type, y, half + i, vf_fma(v, c, u * s));
    }
    if (i < half) {
        const int64_t n = half - i;
        const vf u = vf_load_part_as(type, x, i, n);
        const vf v = vf_load_part_as(type, x, half + i, n);
        const vf c = vf_load_part(t->cosine + i, n), s = vf_load_part(t->sine + i, n);
        vf_store_part_as(type, y, i, vf_fma(u, c, -(v * s)), n);
        vf_store_part_as(type, y, half + i, vf_fma(v, c, u * s), n);
    }
}

INLINE void copy_rest(int type, char *y, const char *x, int64_t from, int64_t end)
{
    for (; from + LANES <= end; from += LANES)
        vf_store_as(type, y, from, vf_load_as(type, x, from));
    if (from < end)
        vf_store_part_as(type, y, from, vf_load_part_as(type, x, from, end - from),
                         end - from);
}

INLINE void rotate(int type, const struct rope_args *a, const struct tables *t, char *y,
                   const char *x)
{
    for (int64_t h = 0; h < a->heads; h++, y += a->y.stride[2], x += a->x.stride[2]) {
        if (a->interleaved)
            rotate_neighbours(type, y, x, t, a->dims);
        else
            rotate_halves(type, y, x, t, a->dims / 2);
        copy_rest(type, y, x, a->dims, a->head_dim);
    }
}

/* ---- the row of kernels.def ---- */

static uint64_t position_of(const struct plan *plan, int64_t token)
{
    const struct rope_args *a = &plan->lowered.args.rope;
    const char *positions = (const char *)plan->pointer[2] + a->positions_offset;
    return (uint64_t)(a->has_positions ? ((const int32_t *)positions)[token]
                                       : a->start + token);
}

static void run_rope(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct rope_args *a = &plan->lowered.args.rope;
    const int32_t type = ((const struct hw_rope *)plan->op)->x.dtype;
    const struct tables t = tables_of(plan, thread);
    set_frequencies(plan, &t);
    for (int64_t i = first; i < end; i++) {
        const int64_t batch = i / a->tokens, token = i % a->tokens;
        char *y = (char *)plan->pointer[0] + a->y.offset + batch * a->y.stride[0] +
                  token * a->y.stride[1];
        const char *x = (const char *)plan->pointer[1] + a->x.offset +
                        batch * a->x.stride[0] + token * a->x.stride[1];
        set_sines(a, &t, position_of(plan, token));
        if (type == HW_F32)
            rotate(HW_F32, a, &t, y, x);
        else if (type == HW_F16)
            rotate(HW_F16, a, &t, y, x);
        else
            rotate(HW_BF16, a, &t, y, x);
    }
}

const char *PLAN(rope)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    const char *why = plan_lowered(plan, row, args);
    if (why)
        return why;
    plan->run = run_rope;
    plan->own_bytes = tables_bytes(plan->lowered.args.rope.dims);
    return NULL;
}
