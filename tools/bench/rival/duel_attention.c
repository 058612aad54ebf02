/* SPDX-License-Identifier: MIT */
/* duel_attention.c - attention by this library and by another one. Computing one query takes about
 * as long as submitting it, so a run is a graph of many calls on both sides. */
#include "duel.h"

#include "command/output.h"

#include <hw/interop.h>
#include <hw/report.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 64, MOST_WAYS = 8, SAMPLES = 200 };

static bool accepts(const char *word)
{
    struct attention_shape s;
    return attention_read(word, &s) &&
           (s.type == HW_F32 || s.type == HW_F16 || s.type == HW_BF16);
}

/* ---- operands: several sets in turn, too many for a cache ---- */

struct set {
    struct hw_tensor q, k, v, y, rival_y; /* matrices: a row is a query or key */
    struct hw_attention op;
    struct rival_operands operands;
};

/* A call of the rival, in a graph. */
struct call {
    struct attention *attention;
    const struct set *set;
    int way;
};

struct attention {
    struct duel *duel; /* whose `state` this is */
    struct attention_shape shape;
    struct set set[MOST_CALLS];
    int sets;
    struct hw_graph *graph[1 + MOST_WAYS]; /* ours, then one for each way of the rival */
    struct call call[MOST_WAYS][MOST_CALLS];
};

static void free_all(struct attention *a)
{
    for (int i = 0; i <= MOST_WAYS; i++)
        hw_graph_free(a->graph[i]);
    for (int i = 0; i < a->sets; i++) {
        hw_buffer_free(a->set[i].q.buffer);
        hw_buffer_free(a->set[i].k.buffer);
        hw_buffer_free(a->set[i].v.buffer);
        hw_buffer_free(a->set[i].y.buffer);
        hw_buffer_free(a->set[i].rival_y.buffer);
    }
    free(a);
}

static enum hw_status make_set(struct attention *a, struct set *s)
{
    const struct attention_shape *of = &a->shape;
    struct hw_import own_y;
    struct duel_matrix q = { of->type, of->queries, of->heads * of->size, .input = true };
    struct duel_matrix k = { of->type, of->keys, of->kv_heads * of->size, .input = true };
    struct duel_matrix v = k, y = q;
    k.from = 12345;
    v.from = 54321;
    y.input = false;
    enum hw_status status = duel_make(a->duel, &q, &s->q, &s->operands.q);
    if (!status)
        status = duel_make(a->duel, &k, &s->k, &s->operands.k);
    if (!status)
        status = duel_make(a->duel, &v, &s->v, &s->operands.v);
    if (!status)
        status = duel_make(a->duel, &y, &s->y, &own_y);
    if (!status)
        status = duel_make(a->duel, &y, &s->rival_y, &s->operands.y);
    s->op = (struct hw_attention){
        .q = hw_view_3d(s->q.buffer, 0, of->type, of->queries, of->heads, of->size),
        .k = hw_view_3d(s->k.buffer, 0, of->type, of->keys, of->kv_heads, of->size),
        .v = hw_view_3d(s->v.buffer, 0, of->type, of->keys, of->kv_heads, of->size),
        .y = hw_view_3d(s->y.buffer, 0, of->type, of->queries, of->heads, of->size),
        .causal = 1
    };
    return status;
}

/* Bytes that a call reads and writes. */
static double bytes_of(const struct attention_shape *s)
{
    return (double)hw_dtype_bytes(s->type) * 2 * (double)s->size *
           (double)(s->queries * s->heads + s->keys * s->kv_heads);
}

static enum hw_status make_sets(struct attention *a)
{
    const double enough = 640e6, wanted = 1 + floor(enough / bytes_of(&a->shape));
    const int calls = a->duel->calls, most = wanted < calls ? (int)wanted : calls;
    enum hw_status status = HW_OK;
    while (a->sets < most && !status)
        status = make_set(a, &a->set[a->sets++]);
    return status ? status : hw_queue_wait(a->duel->queue);
}

/* ---- a run ---- */

/* Leaves the reason in the duel, because hw_queue_call() passes on only a status. */
static int32_t call_rival(void *user, void *handle)
{
    const struct call *call = user;
    struct duel *d = call->attention->duel;
    const char *why = d->rival->attend(d->self, call->way, handle, &call->set->operands);
    if (why)
        snprintf(d->reason, sizeof d->reason, "%s", why);
    return why ? HW_UNSUPPORTED : HW_OK;
}

static enum hw_status submit(struct attention *a, int way, int number)
{
    const struct duel *d = a->duel;
    struct set *set = &a->set[number % a->sets];
    if (way < 0)
        return hw_attention(d->queue, &set->op);
    struct call *call = &a->call[way][number];
    *call = (struct call){ .attention = a, .set = set, .way = way };
    return hw_queue_call(d->queue, d->rival->queue, call_rival, call);
}

/* Calls once before recording: a library may load code at its first call, which a graph cannot
 * record. */
static enum hw_status record(struct attention *a, int way, struct hw_graph **graph)
{
    struct duel *d = a->duel;
    enum hw_status status = submit(a, way, 0);
    if (!status)
        status = hw_queue_wait(d->queue);
    if (!status)
        status = hw_queue_record(d->queue);
    if (status)
        return status;
    for (int i = 0; i < d->calls && !status; i++)
        status = submit(a, way, i);
    const enum hw_status ended = hw_queue_end(d->queue, graph);
    return status ? status : ended;
}

static const char *run(struct duel *d, int way)
{
    struct attention *a = d->state;
    struct hw_graph **graph = &a->graph[way + 1];
    enum hw_status status = HW_OK;
    *d->reason = '\0';
    if (!*graph)
        status = record(a, way, graph);
    if (!status)
        status = hw_graph_launch(*graph, d->queue);
    return status && *d->reason ? d->reason : duel_message(status);
}

/* ---- the same result? ---- */

/* Operands and results on the host, as f32. */
struct values {
    float *q, *k, *v, *ours, *theirs;
};

/* softmax(q k^T / sqrt(size)) v of one query and head, in double; `weight` has room for all
 * keys. */
static void attend(const struct attention_shape *s, const struct values *x, int64_t query,
                   int64_t head, double *weight, double *y)
{
    const int64_t keys = s->keys - s->queries + query + 1, row = s->kv_heads * s->size,
                  from = head / (s->heads / s->kv_heads) * s->size;
    const float *q = x->q + (query * s->heads + head) * s->size;
    double most = -HUGE_VAL, sum = 0;
    for (int64_t key = 0; key < keys; key++) {
        double score = 0;
        for (int64_t i = 0; i < s->size; i++)
            score += (double)q[i] * x->k[key * row + from + i];
        weight[key] = score / sqrt((double)s->size);
        most = fmax(most, weight[key]);
    }
    memset(y, 0, (size_t)s->size * sizeof *y);
    for (int64_t key = 0; key < keys; key++) {
        const double w = exp(weight[key] - most);
        sum += w;
        for (int64_t i = 0; i < s->size; i++)
            y[i] += w * x->v[key * row + from + i];
    }
    for (int64_t i = 0; i < s->size; i++)
        y[i] /= sum;
}

static double squares_of(const float *y, const double *right, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (y[i] - right[i]) * (y[i] - right[i]);
    return squares;
}

/* Sets the errors of both results, over some rows of heads. */
static const char *find_errors(const struct attention_shape *s, const struct values *x,
                               struct outcome *o)
{
    double ours = 0, theirs = 0, squares = 0, right[HW_MAX_HEAD];
    const float none[HW_MAX_HEAD] = { 0 };
    double *weight = malloc((size_t)s->keys * sizeof *weight);
    if (!weight)
        return "out of memory";
    for (int64_t i = 0; i < SAMPLES; i++) {
        const int64_t query = s->queries - 1 - i * 7919 % s->queries, head = i % s->heads;
        const int64_t at = (query * s->heads + head) * s->size;
        attend(s, x, query, head, weight, right);
        ours += squares_of(x->ours + at, right, s->size);
        theirs += squares_of(x->theirs + at, right, s->size);
        squares += squares_of(none, right, s->size);
    }
    free(weight);
    o->our_error = sqrt(ours / squares);
    o->their_error = sqrt(theirs / squares);
    return NULL;
}

static const char *read_all(struct attention *a, const struct outcome *o,
                            const struct values *x)
{
    struct duel *d = a->duel;
    const struct set *s = &a->set[0];
    const char *why = run(d, o->our_way);
    if (!why)
        why = run(d, o->way);
    if (!why)
        why = duel_read(d, &s->y, x->ours);
    if (!why)
        why = duel_read(d, &s->rival_y, x->theirs);
    if (!why)
        why = duel_read(d, &s->q, x->q);
    if (!why)
        why = duel_read(d, &s->k, x->k);
    return why ? why : duel_read(d, &s->v, x->v);
}

static const char *compare_results(struct attention *a, struct outcome *o)
{
    const struct attention_shape *s = &a->shape;
    const int64_t rows = s->queries * s->heads * s->size,
                  keys = s->keys * s->kv_heads * s->size;
    float *all = malloc((size_t)(3 * rows + 2 * keys) * sizeof *all);
    const struct values x = { .q = all,
                              .ours = all + rows,
                              .theirs = all + 2 * rows,
                              .k = all + 3 * rows,
                              .v = all + 3 * rows + keys };
    if (!all)
        return "out of memory";
    const char *why = read_all(a, o, &x);
    if (!why)
        why = find_errors(s, &x, o);
    if (!why)
        why = duel_compare(a->duel, x.ours, x.theirs, o, rows);
    free(all);
    return why;
}

/* ---- the duel ---- */

static const char *measure(struct attention *a, struct outcome *o)
{
    struct duel *d = a->duel;
    const char *why = duel_message(make_sets(a));
    if (!why)
        why = d->rival->prepare_attention(d->self, &a->shape, &o->ways);
    if (o->ways > MOST_WAYS)
        o->ways = MOST_WAYS;
    if (!why)
        why = duel_find_ways(d, AS_STORED, o);
    if (!why)
        why = compare_results(a, o);
    return why ? why : duel_take_turns(d, o);
}

static void report_outcome(const struct bench *bench, const struct attention *a,
                           const struct outcome *o)
{
    const struct attention_shape *s = &a->shape;
    const struct duel *d = a->duel;
    const double flops = attention_operations(s), bytes = bytes_of(s);
    const struct way_name way = duel_way(d, o, o->way);
    const double ours = o->ours.median, theirs = o->theirs.median;
    json_array_append_new(
        bench->results,
        json_pack(
            "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:i, s:i, s:i, s:s, "
            "s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
            "bench", "rival", "op", "attention", "precision", d->precision, "type",
            hw_dtype_name(s->type), "queries", (json_int_t)s->queries, "keys",
            (json_int_t)s->keys, "heads", (json_int_t)s->heads, "kv_heads",
            (json_int_t)s->kv_heads, "size", (json_int_t)s->size, "rival",
            d->rival->name(d->self), "rival_way", way.text, "way", o->way, "ways", o->ways,
            "calls", d->calls, "unit", "us", "ours", spread_json(o->ours), "theirs",
            spread_json(o->theirs), "speed", d->speed, "gflop_per_s", flops / ours / 1e3,
            "rival_gflop_per_s", flops / theirs / 1e3, "gb_per_s", bytes / ours / 1e3,
            "rival_gb_per_s", bytes / theirs / 1e3, "difference", o->difference, "error",
            o->our_error, "rival_error", o->their_error));
    if (out_is_text()) {
        char shape[64];
        snprintf(shape, sizeof shape, "%lldx%lldx%lld/%lldx%lld", (long long)s->queries,
                 (long long)s->keys, (long long)s->heads, (long long)s->kv_heads,
                 (long long)s->size);
        say("  %-5s %-22s %10.2f %8.2f %8.2f %10.2f %8.2f %8.2f %9.0f %7.0f "
            "%s%6.3f%s  %s\n",
            hw_dtype_name(s->type), shape, ours, o->ours.p10, o->ours.p90, theirs,
            o->theirs.p10, o->theirs.p90, flops / ours / 1e3, bytes / ours / 1e3, ink(BOLD),
            d->speed, ink(PLAIN), way.text);
    }
    out_flush();
}

static void print_header(const struct duel *d)
{
    say("\nattention on %s beside %s, precision %s, causal, a call of a graph of many: "
        "us, p10, p90\n"
        "(queries x keys x heads / heads of keys x elements of a head)\n"
        "  %-28s %10s %8s %8s %10s %8s %8s %9s %7s %6s  %s\n",
        hw_device_name(d->device), d->rival->name(d->self), d->precision, "type, QxKxH/GxD",
        "ours", "p10", "p90", "theirs", "p10", "p90", "GFLOP/s", "GB/s", "speed", "theirs");
}

static const char *measure_word(const struct bench *bench, struct duel *d, const char *word)
{
    struct attention *a = calloc(1, sizeof *a);
    struct outcome outcome = { 0 };
    if (!a)
        return "out of memory";
    attention_read(word, &a->shape);
    a->duel = d;
    d->bound = 1e-2; /* results have 16 bits; bf16 has 8 significant ones */
    d->state = a;
    d->run = run;
    d->calls = a->shape.queries == 1 ? MOST_CALLS : MOST_CALLS / 4;
    d->warm_up = 1;
    const char *why = measure(a, &outcome);
    if (!why)
        report_outcome(bench, a, &outcome);
    free_all(a);
    return why;
}

const struct duel_op duel_attention = {
    .op = HW_OP_ATTENTION,
    .accepts = accepts,
    .print_header = print_header,
    .measure = measure_word,
};
