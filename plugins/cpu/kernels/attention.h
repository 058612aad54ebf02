/* SPDX-License-Identifier: MIT */
/* attention.h - shared by the texts of attention: the keys that a query sees, loads of keys and
 * values, the conversion of products to scores, and plans. kernels/args.h describes the
 * arguments. */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include "curves.h"

/* The types of keys and values that these texts read; other types use the portable rows. */
#define CACHE_TYPES(X) X(F32) X(F16) X(BF16) X(Q8_0) X(Q4_0)
enum { CACHE_TYPE_END = HW_Q4_0 + 1 };

static inline bool is_cache_type(int type)
{
#define X(NAME) type == HW_##NAME ||
    return CACHE_TYPES(X) false;
#undef X
}

static inline int64_t whole(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- runs of 32 elements, which share a scale in block types ---- */

enum { RUN = 32, RUN_VECTORS = RUN / LANES };

INLINE bool has_scale(int type)
{
    return type == HW_Q8_0 || type == HW_Q4_0;
}

INLINE int64_t run_bytes(int type)
{
    return type == HW_Q8_0 ? 34 : type == HW_Q4_0 ? 18 : type == HW_F32 ? 128 : 64;
}

INLINE vf load_scale(int type, const char *run)
{
    return has_scale(type) ? vf_set_f16(run) : vf_set(1.0f);
}

/* The v-th vector of a run. */
INLINE vf load_run(int type, const char *run, int v, vf scale)
{
    const char *codes = run + 2 + v * LANES % 16;
    if (type == HW_Q8_0)
        return scale * vf_load_i8(run + 2 + v * LANES);
    if (type == HW_Q4_0)
        return scale * ((v * LANES < 16 ? vf_load_low4(codes) : vf_load_high4(codes)) -
                        vf_set(8.0f));
    return vf_load_as(type, run, v * LANES);
}

/* The addresses of the first key, of the first value of a head, and of a row. */
static inline const char *k_of(const struct plan *plan, int64_t batch, int64_t kv_head)
{
    const struct place *k = &plan->lowered.args.attention.k;
    return (const char *)plan->pointer[2] + k->offset + batch * k->stride[0] +
           kv_head * k->stride[2];
}

static inline const char *v_of(const struct plan *plan, int64_t batch, int64_t kv_head)
{
    const struct place *v = &plan->lowered.args.attention.v;
    return (const char *)plan->pointer[3] + v->offset + batch * v->stride[0] +
           kv_head * v->stride[2];
}

static inline const char *q_of(const struct plan *plan, int64_t batch, int64_t query,
                               int64_t head)
{
    const struct place *q = &plan->lowered.args.attention.q;
    return (const char *)plan->pointer[1] + q->offset + batch * q->stride[0] +
           query * q->stride[1] + head * q->stride[2];
}

static inline char *y_of(const struct plan *plan, int64_t batch, int64_t query,
                         int64_t head)
{
    const struct place *y = &plan->lowered.args.attention.y;
    return (char *)plan->pointer[0] + y->offset + batch * y->stride[0] +
           query * y->stride[1] + head * y->stride[2];
}

/* ---- which keys ---- */

/* Keys first .. end - 1. */
struct span {
    int64_t first, end;
};

/* The keys in use of a batch. */
static inline int64_t length_of(const struct attention_args *a, const void *lengths,
                                int64_t batch)
{
    int64_t n = a->length;
    if (a->has_lengths)
        n = ((const int32_t *)((const char *)lengths + a->lengths_offset))[batch];
    return n < 0 ? 0 : n < a->keys_max ? n : a->keys_max;
}

static inline int64_t position_of(const struct attention_args *a, int64_t length,
                                  int64_t query)
{
    return length - a->queries + query;
}

/* The keys that a query sees. */
static inline struct span seen_by(const struct attention_args *a, int64_t length,
                                  int64_t query)
{
    const int64_t next = position_of(a, length, query) + 1;
    const int64_t end = a->causal && next < length ? next : length;
    const int64_t first = a->window > 0 && end > a->window ? end - a->window : 0;
    return (struct span){ first, end > first ? end : first };
}

static inline struct span span_within(struct span s, int64_t first, int64_t end)
{
    s.first = s.first > first ? s.first : first;
    s.end = s.end < end ? s.end : end;
    return s;
}

/* ---- scores ---- */

static inline float factor_of(const struct attention_args *a, const void *slopes,
                              int64_t head)
{
    const char *all = (const char *)slopes + a->slopes_offset;
    return a->has_slopes ? ((const float *)all)[head] : 1.0f;
}

/* -inf if there is none. -inf and NaN do not count in a maximum. */
static inline float sink_of(const struct attention_args *a, const void *sinks, int64_t head)
{
    const char *all = (const char *)sinks + a->sinks_offset;
    return a->has_sinks ? ((const float *)all)[head] : -INFINITY;
}

static inline const char *bias_of(const struct attention_args *a, const void *bias,
                                  int64_t batch, int64_t head, int64_t query)
{
    const int64_t *n = a->bias_extents.n, *stride = a->bias.stride;
    return (const char *)bias + a->bias.offset + batch % n[0] * stride[0] +
           head % n[1] * stride[1] + query % n[2] * stride[2];
}

INLINE vf softcapped(vf score, float softcap)
{
    return vf_set(softcap) * tanh_of(score / vf_set(softcap));
}

/* ---- plans ---- */

/* A thread does several times the work of a portable one in the same time. */
enum { FASTER = 4 };

/* Returns NULL, or why these texts do not compute this. */
static inline const char *plan_attention(struct plan *plan, const struct kernel_row *row,
                                         const void *args)
{
    const char *why = plan_lowered(plan, row, args);
    const struct attention_args *a = &plan->lowered.args.attention;
    if (why)
        return why;
    plan->work /= FASTER;
    return is_cache_type(a->k_type) && is_cache_type(a->v_type)
               ? NULL
               : "k and v: this row reads f32, f16, bf16, q8_0 and q4_0";
}

/* The number of heads of k and v in all batches; each has `rows` rows. */
static inline int64_t heads_of(const struct plan *plan, int64_t rows)
{
    return plan->groups / (whole(rows, ATTENTION_ROWS) / ATTENTION_ROWS);
}

#endif
