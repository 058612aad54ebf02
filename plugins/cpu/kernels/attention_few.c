/* SPDX-License-Identifier: MIT */
/* attention of few queries, as in decoding: the cache is read once, in memory order. All rows (a
 * row is a query of one head) that read the same head of k and v do so in one pass, see
 * attention_part.h. If the heads of a key are neighbours, tiles of keys are read head after head,
 * while the next tile of all heads is prefetched.
 *
 * Caches are split into chunks of keys; the number of chunks depends only on the shape. First each
 * chunk is attended to separately, then the chunks of a row are merged in order. */
#include "attention_bytes.h"

DECLARE_PLAN(attention_few);

enum {
    ROWS = 16,         /* of a head that are computed in one pass */
    CHUNK = 64,        /* keys of the smallest chunk */
    CHUNKS = 32,       /* at most */
    STATE = 128 * 1024 /* bytes of queries and results of heads that are read together */
};
_Static_assert(CHUNK % TILE == 0, "chunks are whole tiles");

/* ---- how the work is divided ---- */

/* Does not depend on the number of threads. */
struct division {
    int64_t rows;           /* that read one head of k and v */
    int64_t groups;         /* of them */
    int64_t together;       /* heads whose keys are read tile by tile: 1 or all */
    int64_t chunks;         /* 1: the whole cache is read at once */
    int64_t dim, value_dim; /* in whole vectors */
    int64_t slot;           /* floats of a chunk's results */
};

static bool heads_are_neighbours(const struct attention_args *a)
{
    return a->k.stride[2] < a->k.stride[1] && a->v.stride[2] < a->v.stride[1];
}

static struct division divide(const struct attention_args *a)
{
    struct division d = { .rows = a->queries * (a->heads / a->kv_heads), .together = 1 };
    d.groups = (d.rows + ROWS - 1) / ROWS;
    d.chunks = d.groups > 1 || a->keys_max <= 2 * CHUNK
                   ? 1
                   : least((a->keys_max + CHUNK - 1) / CHUNK, CHUNKS);
    d.dim = whole(a->head_dim, RUN);
    d.value_dim = whole(a->value_dim, RUN);
    d.slot = d.rows * (d.value_dim + 2);
    if (d.chunks > 1 && heads_are_neighbours(a) &&
        a->kv_heads * d.rows * (d.dim + d.value_dim) * (int64_t)sizeof(float) <= STATE)
        d.together = a->kv_heads;
    return d;
}

/* ---- heads ---- */

/* A head of k and v, and the rows that read it: at most ROWS. */
struct head {
    const char *k, *v; /* of the first key */
    int64_t number, first_row;
    int rows;
    struct row *row;
    float *query; /* scale * q */
    float *out;   /* weighted values */
    char *bytes;  /* queries, rounded */
    bool rounded; /* all of them */
};

/* Shared by the heads of a group. */
struct group {
    const struct plan *plan;
    const struct attention_args *a;
    const struct division *d;
    int64_t batch, length;
    float *score;
    struct head *head; /* heads whose keys are read together */
};

/* A thread's memory has scores, the heads, and for each head rows, queries and values. With chunks,
 * it has the values of only one row. */
static uint64_t rows_bytes(const struct division *d)
{
    const int64_t floats = ROWS * d->dim + (d->chunks > 1 ? 1 : ROWS) * d->value_dim;
    return in_lines(ROWS * sizeof(struct row)) + (uint64_t)floats * sizeof(float) +
           in_lines((uint64_t)(ROWS * bytes_of_query(d->dim)));
}

static uint64_t heads_bytes(const struct division *d)
{
    return in_lines((uint64_t)d->together * sizeof(struct head));
}

static uint64_t own_bytes(const struct division *d)
{
    return SCORES * sizeof(float) + heads_bytes(d) + (uint64_t)d->together * rows_bytes(d);
}

static struct group group_of(const struct plan *plan, const struct division *d,
                             int64_t batch, uint32_t thread)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    float *score = plan_own(plan, thread);
    return (struct group){ .plan = plan,
                           .a = a,
                           .d = d,
                           .batch = batch,
                           .length = length_of(a, plan->pointer[7], batch),
                           .score = score,
                           .head = (struct head *)(void *)(score + SCORES) };
}

/* The n-th head that is read by a group. */
static struct head *set_head(const struct group *g, int64_t n, int64_t number,
                             int64_t first_row)
{
    char *own = (char *)g->head + heads_bytes(g->d) + (uint64_t)n * rows_bytes(g->d);
    struct head *h = &g->head[n];
    *h = (struct head){
        .k = k_of(g->plan, g->batch, number),
        .v = v_of(g->plan, g->batch, number),
        .number = number,
        .first_row = first_row,
        .rows = (int)least(g->d->rows - first_row, ROWS),
        .row = (struct row *)(void *)own,
        .bytes = own + in_lines(ROWS * sizeof(struct row)),
    };
    h->query = (float *)(void *)(h->bytes +
                                 in_lines((uint64_t)(ROWS * bytes_of_query(g->d->dim))));
    h->out = h->query + ROWS * g->d->dim;
    return h;
}

static struct row row_at(const struct group *g, const struct head *h, int r)
{
    const struct attention_args *a = g->a;
    const int64_t heads = a->heads / a->kv_heads, number = h->first_row + r;
    const int64_t query = number / heads, head = h->number * heads + number % heads;
    return (struct row){
        .seen = seen_by(a, g->length, query),
        .query = query,
        .head = head,
        .position = position_of(a, g->length, query),
        .bias = a->bias_type ? bias_of(a, g->plan->pointer[4], g->batch, head, query)
                             : NULL,
        .slope = factor_of(a, g->plan->pointer[5], head),
    };
}

static void load_query(const struct group *g, const struct row *row, float *to)
{
    const struct attention_args *a = g->a;
    const char *q = q_of(g->plan, g->batch, row->query, row->head);
    for (int64_t d = 0; d < g->d->dim; d += LANES) {
        const int64_t left = a->head_dim - d < 0 ? 0 : least(a->head_dim - d, LANES);
        vf_store(to + d, vf_set(a->scale) * vf_load_part_as(a->q_type, q, d, left));
    }
}

static void begin_head(const struct group *g, struct head *h)
{
    const int64_t dim = g->d->dim;
    h->rounded = true;
    for (int r = 0; r < h->rows; r++) {
        h->row[r] = row_at(g, h, r);
        load_query(g, &h->row[r], h->query + r * dim);
        h->rounded &= round_query(h->query + r * dim, dim,
                                  h->bytes + r * bytes_of_query(dim));
    }
}

/* A sink is a score that has no value. */
static void begin_values(const struct group *g, const struct head *h, bool with_sink)
{
    for (int r = 0; r < h->rows; r++) {
        const float sink = with_sink ? sink_of(g->a, g->plan->pointer[6], h->row[r].head)
                                     : -INFINITY;
        h->row[r].top = sink > -INFINITY ? sink : -INFINITY;
        h->row[r].sum = sink == -INFINITY ? 0.0f : 1.0f + (sink - sink); /* 1, or NaN */
    }
    memset(h->out, 0, (size_t)(h->rows * g->d->value_dim) * sizeof *h->out);
}

/* The keys that some rows of a head see. */
static struct span seen_of(const struct head *h)
{
    return (struct span){ h->row[0].seen.first, h->row[h->rows - 1].seen.end };
}

/* ---- tiles ---- */

/* The bytes of a head of a key or a value. */
static int64_t bytes_of(int type, int64_t dim)
{
    return dim * run_bytes(type) / RUN;
}

/* The memory to prefetch while a tile is read; the next tile begins with key `next`. `place` is of
 * k or v, and `k` is the address of key 0 of the n-th head. */
static struct ahead next_tile(const struct division *d, const struct place *place,
                              const char *k, int64_t bytes, int64_t n, int64_t next)
{
    const int64_t stride = place->stride[1];
    if (place->stride[2] == bytes && stride == bytes * d->together)
        return (struct ahead){
            (uintptr_t)k + (uintptr_t)(next * stride + n * (TILE - 1) * bytes), bytes, true
        };
    return (struct ahead){ (uintptr_t)k + (uintptr_t)(next * stride), stride, false };
}

/* Prefetches memory that is in the cache already. */
static struct ahead nothing(const char *k)
{
    return (struct ahead){ (uintptr_t)k, 0, true };
}

static bool same(struct span a, struct span b)
{
    return a.first == b.first && a.end == b.end;
}

/* How many rows from r on, 4, 2 or 1, see the same keys of a tile. */
static int rows_alike(const struct head *h, int r, struct span keys, struct span tile)
{
    int n = 1;
    while (n < BLOCK && r + n < h->rows &&
           same(span_within(h->row[r + n].seen, tile.first, tile.end), keys))
        n++;
    return n == 3 ? 2 : n;
}

/* Reads a tile of the n-th head. A row is never multiplied with values of keys that it does not
 * see: they may be infinite. */
static void attend_tile(const struct group *g, int64_t n, struct span tile, int64_t next)
{
    const struct head *h = &g->head[n];
    const struct attention_args *a = g->a;
    const struct division *d = g->d;
    struct part p = { .a = a, .dim = d->dim, .value_dim = d->value_dim, .score = g->score };
    p.k_ahead = next_tile(d, &a->k, h->k, bytes_of(a->k_type, a->head_dim), n, next);
    p.v_ahead = next_tile(d, &a->v, h->v, bytes_of(a->v_type, a->value_dim), n, next);
    for (int r = 0; r < h->rows;) {
        const struct span keys = span_within(h->row[r].seen, tile.first, tile.end);
        const int rows = rows_alike(h, r, keys, tile);
        p.first = keys.first;
        p.n = keys.end - keys.first;
        p.k = h->k + p.first * a->k.stride[1];
        p.v = h->v + p.first * a->v.stride[1];
        p.query = h->query + r * d->dim;
        p.bytes = h->rounded ? h->bytes + r * bytes_of_query(d->dim) : NULL;
        p.out = h->out + r * d->value_dim;
        p.row = h->row + r;
        if (p.n > 0) {
            if (next < 0 || r > 0) {
                p.k_ahead = nothing(p.k);
                p.v_ahead = nothing(p.v);
            }
            attend_in_bytes(&p, rows);
        }
        r += rows;
    }
}

/* Reads `keys` of all heads of a group, whose rows see the same keys. Keys up to `end` are read
 * next. */
static void attend(const struct group *g, struct span keys, int64_t end)
{
    for (int64_t t = keys.first / TILE * TILE; t < keys.end; t += TILE) {
        const struct span tile = span_within(keys, t, t + TILE);
        for (int64_t n = 0; n < g->d->together; n++)
            attend_tile(g, n, tile, t + TILE < end ? t + TILE : -1);
    }
}

/* y = out / sum. */
static void store_row(const struct group *g, const struct row *row, const float *out)
{
    const struct attention_args *a = g->a;
    char *y = y_of(g->plan, g->batch, row->query, row->head);
    const vf scale = vf_set(row->sum == 0.0f ? 0.0f : 1.0f / row->sum);
    int64_t d = 0;
    for (; d + LANES <= a->value_dim; d += LANES)
        vf_store_as(a->y_type, y, d, vf_load(out + d) * scale);
    if (d < a->value_dim)
        vf_store_part_as(a->y_type, y, d, vf_load(out + d) * scale, a->value_dim - d);
}

/* ---- caches of one chunk ---- */

static void run_whole(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    const struct division d = divide(a);
    for (int64_t i = first; i < end; i++) {
        const int64_t number = i / d.groups;
        const struct group g = group_of(plan, &d, number / a->kv_heads, thread);
        struct head *h = set_head(&g, 0, number % a->kv_heads, i % d.groups * ROWS);
        begin_head(&g, h);
        begin_values(&g, h, true);
        attend(&g, seen_of(h), seen_of(h).end);
        for (int r = 0; r < h->rows; r++)
            store_row(&g, &h->row[r], h->out + r * d.value_dim);
    }
}

/* ---- chunks, and merging them ---- */

/* The keys of a chunk: all chunks of a batch have the same number. */
static struct span keys_of(const struct group *g, int64_t chunk)
{
    const int64_t n = whole((g->length + g->d->chunks - 1) / g->d->chunks, CHUNK);
    return (struct span){ chunk * n, (chunk + 1) * n };
}

/* The results of a chunk: weighted values of all rows, then their maxima and sums. `head` counts
 * the heads of all batches. */
static float *slot_of(const struct plan *plan, const struct division *d, int64_t head,
                      int64_t chunk)
{
    return (float *)plan_shared(plan) + (head * d->chunks + chunk) * d->slot;
}

/* The largest score of a row of a chunk, and its sum. */
static float *found_of(const struct division *d, float *slot, int r)
{
    return slot + d->rows * d->value_dim + 2 * r;
}

/* Begins the heads from number `first` on. */
static void begin_heads(const struct group *g, int64_t first)
{
    for (int64_t n = 0; n < g->d->together; n++)
        begin_head(g, set_head(g, n, first + n, 0));
}

/* Attends to a chunk; `more`: the next keys are read afterwards. */
static void run_chunk(const struct group *g, int64_t chunk, bool more)
{
    const struct division *d = g->d;
    for (int64_t n = 0; n < d->together; n++) {
        struct head *h = &g->head[n];
        h->out = slot_of(g->plan, d, g->batch * g->a->kv_heads + h->number, chunk);
        begin_values(g, h, chunk == 0);
    }
    const struct span seen = seen_of(g->head), all = keys_of(g, chunk);
    const struct span keys = span_within(seen, all.first, all.end);
    attend(g, keys, more ? seen.end : keys.end);
    for (int64_t n = 0; n < d->together; n++)
        for (int r = 0; r < d->rows; r++) {
            float *found = found_of(d, g->head[n].out, r);
            found[0] = g->head[n].row[r].top;
            found[1] = g->head[n].row[r].sum;
        }
}

/* A group is a chunk of one head or of all heads of a batch. The chunks of a head are neighbouring
 * groups. */
static void run_chunks(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    const struct division d = divide(a);
    const int64_t sets = a->kv_heads / d.together;
    struct group g;
    for (int64_t i = first; i < end; i++) {
        const int64_t set = i / d.chunks, chunk = i % d.chunks;
        if (i == first || chunk == 0) {
            g = group_of(plan, &d, set / sets, thread);
            begin_heads(&g, set % sets * d.together);
        }
        run_chunk(&g, chunk, i + 1 < end && chunk + 1 < d.chunks);
    }
}

/* Adds up the chunks of a row, relative to the largest of their maxima. */
static void merge_row(const struct plan *plan, const struct division *d, int64_t head,
                      struct row *row, int r, float *out)
{
    float top = -INFINITY;
    for (int64_t c = 0; c < d->chunks; c++) {
        const float found = found_of(d, slot_of(plan, d, head, c), r)[0];
        top = found > top ? found : top;
    }
    row->sum = 0.0f;
    memset(out, 0, (size_t)d->value_dim * sizeof *out);
    for (int64_t c = 0; c < d->chunks; c++) {
        float *slot = slot_of(plan, d, head, c), *values = slot + r * d->value_dim;
        const float *found = found_of(d, slot, r);
        if (found[0] == -INFINITY && found[1] == 0.0f)
            continue; /* no key was seen there */
        const vf share = vf_exp(vf_set(found[0] - (top == -INFINITY ? 0.0f : top)));
        row->sum += share[0] * found[1];
        for (int64_t i = 0; i < d->value_dim; i += LANES)
            vf_store(out + i, vf_fma(share, vf_load(values + i), vf_load(out + i)));
    }
}

static void run_merge(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    const struct division d = divide(a);
    for (int64_t i = first; i < end; i++) {
        const int64_t head = i / d.rows;
        const struct group g = group_of(plan, &d, head / a->kv_heads, thread);
        const struct head *h = set_head(&g, 0, head % a->kv_heads, 0);
        struct row row = row_at(&g, h, (int)(i % d.rows));
        merge_row(plan, &d, head, &row, (int)(i % d.rows), h->out);
        store_row(&g, &row, h->out);
    }
}

/* ---- the row of kernels.def ---- */

const char *PLAN(attention_few)(struct plan *plan, const struct kernel_row *row,
                                const void *args)
{
    const char *why = plan_attention(plan, row, args);
    if (why || plan->groups == 0)
        return why;
    const struct attention_args *a = &plan->lowered.args.attention;
    const struct division d = divide(a);
    const int64_t heads = heads_of(plan, d.rows);
    plan->own_bytes = own_bytes(&d);
    plan->run = run_whole;
    plan->groups = heads * d.groups;
    if (d.chunks > 1) {
        plan->prepare = run_chunks;
        plan->prepare_groups = heads / d.together * d.chunks;
        plan->prepare_grain =
            1 + (int64_t)(WORTH_A_THREAD * (double)plan->prepare_groups / (plan->work + 1));
        plan->shared_bytes = (uint64_t)(heads * d.chunks * d.slot) * sizeof(float);
        plan->run = run_merge;
        plan->groups = heads * d.rows;
        plan->work = (double)(heads * d.rows * d.chunks * d.value_dim) / FASTER;
    }
    return NULL;
}
