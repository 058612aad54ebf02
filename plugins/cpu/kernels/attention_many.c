/* SPDX-License-Identifier: MIT */
/* attention of many queries, as in a prompt. A row is a query of one head; the lanes of a vector
 * are rows that read the same head of k and v. So keys and values are read as single numbers,
 * nothing is summed across lanes, and the softmax of all lanes is computed at once. A tile of keys
 * and values is converted to f32 once for several squares of rows. Squares skip tiles that none of
 * their rows sees. */
#include "attention.h"

DECLARE_PLAN(attention_many);

enum {
#if defined(__AVX512F__)
    VECTORS = 2, /* of rows */
    BLOCK = 12,  /* keys, or columns, whose sums stay in registers */
#elif defined(__AVX2__)
    VECTORS = 2,
    BLOCK = 6,
#else
    VECTORS = 4,
    BLOCK = 6,
#endif
    ROWS = VECTORS * LANES, /* of a square */
    LEAST_ROWS = ROWS / 4 * 3,
    TILE = 96,   /* keys; a multiple of BLOCK */
    SQUARES = 4, /* of a group, at most */
    WIDE = 512   /* from this many elements of q and v, a group has half as many rows */
};

/* Rows that are computed together: the keys they see, and their work memory. */
struct square {
    int rows;
    struct span any, all; /* the keys that some rows see, and the keys that all rows see */
    struct span seen[ROWS];
    int64_t query[ROWS], head[ROWS], position[ROWS];
    const char *bias[ROWS];
    float slope[ROWS], top[ROWS], sum[ROWS];
    float *q;   /* scale * q: [dim][ROWS] */
    float *out; /* weighted values, relative to `top`: [value_dim][ROWS] */
};

struct group {
    const struct attention_args *a;
    const struct plan *plan;
    int64_t batch, kv_head, length;
    int64_t key_pitch, value_pitch; /* floats */
    const char *k, *v;              /* of the first key */
    float *keys, *values;           /* a tile, in f32: [TILE][pitch] */
    float *score;                   /* [TILE][ROWS] */
    bool finite;                    /* whether all values of the tile are finite */
    int squares;
    struct square square[SQUARES];
};

/* ---- a tile in f32 ---- */

/* Returns whether all elements are finite. Pads columns with zeros up to a multiple of BLOCK. */
INLINE bool convert(int type, float *to, int64_t pitch, const char *from, int64_t stride,
                    int64_t n, int64_t dim)
{
    vf check = vf_set(0);
    for (int64_t k = 0; k < n; k++, to += pitch, from += stride) {
        int64_t d = 0;
        for (int64_t at = 0; d + RUN <= dim; d += RUN, at += run_bytes(type)) {
            const vf scale = load_scale(type, from + at);
            for (int v = 0; v < RUN_VECTORS; v++) {
                const vf x = load_run(type, from + at, v, scale);
                check = vf_fma(x, vf_set(0), check);
                vf_store(to + d + v * LANES, x);
            }
        }
        for (; d < dim && !has_scale(type); d += LANES) {
            const vf x = vf_load_part_as(type, from, d, least(dim - d, LANES));
            check = vf_fma(x, vf_set(0), check);
            vf_store(to + d, x);
        }
        for (d = dim; d % BLOCK; d++)
            to[d] = 0.0f;
    }
    return vf_sum(check) == 0.0f;
}

static bool convert_tile(int type, float *to, int64_t pitch, const char *from,
                         int64_t stride, int64_t n, int64_t dim)
{
    switch (type) {
#define X(NAME)                                                                            \
    case HW_##NAME:                                                                        \
        return convert(HW_##NAME, to, pitch, from, stride, n, dim);
        CACHE_TYPES(X)
#undef X
    }
    return true;
}

/* ---- scores ---- */

/* score[k] = q . key k, for BLOCK keys at a time; results past the last key are ignored. */
static void multiply(const struct group *g, const struct square *s, int64_t n)
{
    const int64_t dim = g->a->head_dim, pitch = g->key_pitch;
    for (int64_t k = 0; k < n; k += BLOCK) {
        const float *key = g->keys + k * pitch;
        vf sum[BLOCK][VECTORS];
        for (int i = 0; i < BLOCK; i++)
            for (int v = 0; v < VECTORS; v++)
                sum[i][v] = vf_set(0);
        for (int64_t d = 0; d < dim; d++) {
            vf q[VECTORS];
            for (int v = 0; v < VECTORS; v++)
                q[v] = vf_load(s->q + d * ROWS + v * LANES);
            for (int i = 0; i < BLOCK; i++) {
                const vf x = vf_set(key[i * pitch + d]);
                for (int v = 0; v < VECTORS; v++)
                    sum[i][v] = vf_fma(x, q[v], sum[i][v]);
            }
        }
        for (int i = 0; i < BLOCK; i++)
            for (int v = 0; v < VECTORS; v++)
                vf_store(g->score + (k + i) * ROWS + v * LANES, sum[i][v]);
    }
}

static void cap_scores(float *score, int64_t n, float softcap)
{
    for (int64_t i = 0; i < n * ROWS; i += LANES)
        vf_store(score + i, softcapped(vf_load(score + i), softcap));
}

/* Adds slope * bias of keys t .. t + n - 1. */
static void add_bias(const struct square *s, int type, float *score, int64_t t, int64_t n)
{
    for (int r = 0; r < ROWS; r++)
        for (int64_t k = 0; k < n; k += LANES) {
            const int64_t some = least(n - k, LANES);
            float bias[LANES];
            vf_store(bias, scaled_mask(vf_load_part_as(type, s->bias[r], t + k, some),
                                       vf_set(s->slope[r])));
            for (int64_t i = 0; i < some; i++)
                score[(k + i) * ROWS + r] += bias[i];
        }
}

/* Without a bias, slopes multiply -|key - position|. */
static void add_slopes(const struct square *s, float *score, int64_t t, int64_t n)
{
    float apart[ROWS];
    for (int r = 0; r < ROWS; r++)
        apart[r] = (float)(t - s->position[r]);
    for (int64_t k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r += LANES) {
            const vf x = vf_load(apart + r) + vf_set((float)k);
            float *to = score + k * ROWS + r;
            vf_store(to, vf_load(to) - vf_load(s->slope + r) * vf_max(x, -x));
        }
}

/* The keys of a tile that each row sees, counted from the tile's first key. */
struct bounds {
    float first[ROWS], end[ROWS];
};

static struct bounds bounds_of(const struct square *s, int64_t t)
{
    struct bounds b;
    for (int r = 0; r < ROWS; r++) {
        const struct span seen = span_within(s->seen[r], t, t + TILE);
        b.first[r] = (float)(seen.first - t);
        b.end[r] = seen.end > t ? (float)(seen.end - t) : 0.0f;
    }
    return b;
}

/* x if a row sees key k, otherwise y. */
INLINE vf if_seen(const struct bounds *b, int r, int64_t k, vf x, vf y)
{
    const vf key = vf_set((float)k);
    return vf_if_less(key, vf_load(b->first + r), y,
                      vf_if_less(key, vf_load(b->end + r), x, y));
}

static void hide_unseen(const struct bounds *b, float *score, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r += LANES) {
            float *at = score + k * ROWS + r;
            vf_store(at, if_seen(b, r, k, vf_load(at), vf_set(-INFINITY)));
        }
}

/* ---- the softmax, online ---- */

/* out *= shrink, a factor of each row. */
static void rescale(struct square *s, const vf *shrink, int64_t value_dim)
{
    for (int64_t d = 0; d < value_dim; d++)
        for (int v = 0; v < VECTORS; v++) {
            float *at = s->out + d * ROWS + v * LANES;
            vf_store(at, vf_load(at) * shrink[v]);
        }
}

/* Turns the scores of a vector of rows into exponentials relative to the largest score so far.
 * Returns the factor for the earlier sums. */
INLINE vf weigh_rows(struct square *s, float *score, int64_t n, int r)
{
    const vf top = vf_load(s->top + r);
    vf grown = top, sum = vf_set(0);
    for (int64_t k = 0; k < n; k++)
        grown = vf_max(vf_load(score + k * ROWS + r), grown);
    const vf from = vf_if_less(grown, vf_set(-FLT_MAX), vf_set(0), grown);
    for (int64_t k = 0; k < n; k++) {
        const vf weight = vf_exp(vf_load(score + k * ROWS + r) - from);
        vf_store(score + k * ROWS + r, weight);
        sum += weight;
    }
    const vf shrink = vf_exp(top - from);
    vf_store(s->sum + r, vf_fma(vf_load(s->sum + r), shrink, sum));
    vf_store(s->top + r, grown);
    return vf_if_less(top, grown, shrink, vf_set(1));
}

static void weigh(struct square *s, float *score, int64_t n, int64_t value_dim)
{
    vf shrink[VECTORS], less = vf_set(0);
    for (int v = 0; v < VECTORS; v++) {
        shrink[v] = weigh_rows(s, score, n, v * LANES);
        less = vf_max(vf_set(1) - shrink[v], less);
    }
    if (vf_greatest(less) > 0.0f)
        rescale(s, shrink, value_dim);
}

/* ---- weighted values ---- */

/* out += weight * value, of n keys, BLOCK columns at a time. */
static void gather(const struct group *g, struct square *s, int64_t n)
{
    for (int64_t d = 0; d < g->a->value_dim; d += BLOCK) {
        float *out = s->out + d * ROWS;
        const float *value = g->values + d;
        vf sum[BLOCK][VECTORS];
        for (int i = 0; i < BLOCK; i++)
            for (int v = 0; v < VECTORS; v++)
                sum[i][v] = vf_load(out + i * ROWS + v * LANES);
        for (int64_t k = 0; k < n; k++, value += g->value_pitch) {
            vf weight[VECTORS];
            for (int v = 0; v < VECTORS; v++)
                weight[v] = vf_load(g->score + k * ROWS + v * LANES);
            for (int i = 0; i < BLOCK; i++) {
                const vf x = vf_set(value[i]);
                for (int v = 0; v < VECTORS; v++)
                    sum[i][v] = vf_fma(x, weight[v], sum[i][v]);
            }
        }
        for (int i = 0; i < BLOCK; i++)
            for (int v = 0; v < VECTORS; v++)
                vf_store(out + i * ROWS + v * LANES, sum[i][v]);
    }
}

/* gather() for a tile with infinite or NaN values, which must not reach rows that do not see them:
 * a weight of 0 does not hide them. */
static void gather_seen(const struct group *g, struct square *s, const struct bounds *b,
                        int64_t n)
{
    for (int64_t d = 0; d < g->a->value_dim; d++)
        for (int64_t k = 0; k < n; k++) {
            const vf x = vf_set(g->values[k * g->value_pitch + d]);
            for (int r = 0; r < ROWS; r += LANES) {
                float *at = s->out + d * ROWS + r;
                const vf sum = vf_load(at), weight = vf_load(g->score + k * ROWS + r);
                vf_store(at, if_seen(b, r, k, vf_fma(x, weight, sum), sum));
            }
        }
}

/* ---- a group ---- */

static bool within(struct span a, struct span b)
{
    return a.first >= b.first && a.end <= b.end;
}

/* Keys t .. t + n - 1. */
static void attend_square(const struct group *g, struct square *s, int64_t t, int64_t n)
{
    const struct attention_args *a = g->a;
    const bool hidden = !within((struct span){ t, t + n }, s->all);
    struct bounds bounds;
    multiply(g, s, n);
    if (a->softcap > 0.0f)
        cap_scores(g->score, n, a->softcap);
    if (a->bias_type)
        add_bias(s, a->bias_type, g->score, t, n);
    else if (a->has_slopes)
        add_slopes(s, g->score, t, n);
    if (hidden) {
        bounds = bounds_of(s, t);
        hide_unseen(&bounds, g->score, n);
    }
    weigh(s, g->score, n, a->value_dim);
    if (hidden && !g->finite)
        gather_seen(g, s, &bounds, n);
    else
        gather(g, s, n);
}

static void attend_tile(struct group *g, int64_t t, int64_t n)
{
    const struct attention_args *a = g->a;
    convert_tile(a->k_type, g->keys, g->key_pitch, g->k + t * a->k.stride[1],
                 a->k.stride[1], n, a->head_dim);
    g->finite = convert_tile(a->v_type, g->values, g->value_pitch,
                             g->v + t * a->v.stride[1], a->v.stride[1], n, a->value_dim);
    for (int i = 0; i < g->squares; i++) {
        struct square *s = &g->square[i];
        const int64_t end = least(t + n, s->any.end);
        if (end > t && end > s->any.first)
            attend_square(g, s, t, end - t);
    }
}

/* ---- queries ---- */

static void load_queries(const struct group *g, struct square *s)
{
    const struct attention_args *a = g->a;
    for (int r = 0; r < ROWS; r += LANES)
        for (int64_t d = 0; d < a->head_dim; d += LANES) {
            const int64_t left = least(a->head_dim - d, LANES);
            vf v[LANES];
            for (int i = 0; i < LANES; i++) {
                const int row = r + i < s->rows ? r + i : s->rows - 1;
                v[i] = vf_load_part_as(a->q_type,
                                       q_of(g->plan, g->batch, s->query[row], s->head[row]),
                                       d, left);
            }
            vf_transpose(v);
            for (int i = 0; i < LANES; i++)
                vf_store(s->q + (d + i) * ROWS + r, vf_set(a->scale) * v[i]);
        }
}

/* Lanes without a row repeat the last row. A sink is a score without a value. */
static void begin_square(const struct group *g, struct square *s, int64_t first, int rows)
{
    const struct attention_args *a = g->a;
    const int64_t heads = a->heads / a->kv_heads;
    s->rows = rows;
    s->any = s->all = seen_by(a, g->length, first / heads);
    for (int r = 0; r < ROWS; r++) {
        const int64_t number = first + (r < rows ? r : rows - 1);
        const int64_t query = number / heads, head = g->kv_head * heads + number % heads;
        const float sink = sink_of(a, g->plan->pointer[6], head);
        s->query[r] = query;
        s->head[r] = head;
        s->position[r] = position_of(a, g->length, query);
        s->seen[r] = seen_by(a, g->length, query);
        s->bias[r] = a->bias_type ? bias_of(a, g->plan->pointer[4], g->batch, head, query)
                                  : NULL;
        s->slope[r] = factor_of(a, g->plan->pointer[5], head);
        s->top[r] = sink > -INFINITY ? sink : -INFINITY;
        s->sum[r] = sink == -INFINITY ? 0.0f : 1.0f + (sink - sink); /* 1, or NaN */
        s->any.end = s->seen[r].end; /* later queries see later keys */
        s->all.first = s->seen[r].first;
    }
    load_queries(g, s);
    memset(s->out, 0, (size_t)(whole(a->value_dim, BLOCK) * ROWS) * sizeof *s->out);
}

/* y = out / sum. */
static void store_square(const struct group *g, const struct square *s)
{
    const struct attention_args *a = g->a;
    for (int r = 0; r < s->rows; r += LANES) {
        const vf sum = vf_load(s->sum + r), size = vf_max(sum, -sum);
        const vf scale = vf_if_less(vf_set(0), size, vf_set(1) / sum,
                                    vf_if_less(size, vf_set(1), vf_set(0), sum));
        for (int64_t d = 0; d < a->value_dim; d += LANES) {
            const int64_t left = least(a->value_dim - d, LANES);
            vf v[LANES];
            for (int i = 0; i < LANES; i++)
                v[i] = vf_load(s->out + (d + i) * ROWS + r) * scale;
            vf_transpose(v);
            for (int i = 0; i < LANES && r + i < s->rows; i++) {
                char *row = y_of(g->plan, g->batch, s->query[r + i], s->head[r + i]);
                vf_store_part_as(a->y_type, row, d, v[i], left);
            }
        }
    }
}

/* ---- how the work is divided ---- */

struct division {
    int64_t rows, rows_each, groups; /* of one head of k and v; `rows_each` of a group */
    /* an odd number of lines, to spread rows over the sets of a cache */
    int64_t key_pitch, value_pitch;
    int64_t q, out; /* floats of a square */
};

static struct division divide(const struct attention_args *a)
{
    const int squares = a->head_dim + a->value_dim < WIDE ? SQUARES : SQUARES / 2;
    struct division d = { .rows = a->queries * (a->heads / a->kv_heads) };
    d.rows_each = squares * ROWS;
    d.groups = (d.rows + d.rows_each - 1) / d.rows_each;
    d.key_pitch = whole(a->head_dim + BLOCK, 16) | 16;
    d.value_pitch = whole(a->value_dim + BLOCK, 16) | 16;
    d.q = whole(a->head_dim, LANES) * ROWS;
    d.out = (a->value_dim + LANES + BLOCK) * ROWS;
    return d;
}

static uint64_t own_floats(const struct division *d)
{
    return (uint64_t)(d->rows_each / ROWS * (d->q + d->out) +
                      TILE * (d->key_pitch + d->value_pitch + ROWS));
}

static void set_memory(const struct division *d, struct group *g, float *at)
{
    g->score = at;
    g->keys = g->score + TILE * ROWS;
    g->values = g->keys + TILE * d->key_pitch;
    at = g->values + TILE * d->value_pitch;
    for (int i = 0; i < g->squares; i++, at += d->q + d->out) {
        g->square[i].q = at;
        g->square[i].out = at + d->q;
    }
}

static struct group group_of(const struct plan *plan, const struct division *d, int64_t i,
                             uint32_t thread)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    const int64_t head = i / d->groups, first = i % d->groups * d->rows_each;
    const int64_t batch = head / a->kv_heads, kv_head = head % a->kv_heads;
    const int64_t rows = least(d->rows - first, d->rows_each);
    struct group g = {
        .a = a,
        .plan = plan,
        .k = k_of(plan, batch, kv_head),
        .v = v_of(plan, batch, kv_head),
        .batch = batch,
        .kv_head = kv_head,
        .length = length_of(a, plan->pointer[7], batch),
        .key_pitch = d->key_pitch,
        .value_pitch = d->value_pitch,
        .squares = (int)((rows + ROWS - 1) / ROWS),
    };
    set_memory(d, &g, plan_own(plan, thread));
    for (int s = 0; s < g.squares; s++)
        begin_square(&g, &g.square[s], first + s * ROWS, (int)least(rows - s * ROWS, ROWS));
    return g;
}

static void run_many(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct division d = divide(&plan->lowered.args.attention);
    for (int64_t i = first; i < end; i++) {
        struct group g = group_of(plan, &d, i, thread);
        const int64_t last = g.square[g.squares - 1].any.end;
        for (int64_t t = g.square[0].any.first / TILE * TILE; t < last; t += TILE)
            attend_tile(&g, t, least(last - t, TILE));
        for (int s = 0; s < g.squares; s++)
            store_square(&g, &g.square[s]);
    }
}

/* ---- the row of kernels.def ---- */

const char *PLAN(attention_many)(struct plan *plan, const struct kernel_row *row,
                                 const void *args)
{
    const char *why = plan_attention(plan, row, args);
    if (why)
        return why;
    const struct division d = divide(&plan->lowered.args.attention);
    if (d.rows < LEAST_ROWS)
        return "q: this row needs more queries";
    if (plan->groups == 0)
        return NULL;
    plan->groups = heads_of(plan, d.rows) * d.groups;
    plan->own_bytes = own_floats(&d) * sizeof(float);
    plan->run = run_many;
    return NULL;
}
