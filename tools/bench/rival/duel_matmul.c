/* SPDX-License-Identifier: MIT */
/* duel_matmul.c - products by this library and by another one. */
#include "duel.h"

#include "command/output.h"

#include <hw/report.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SETS = 8, SAMPLES = 200 };

static bool is_float(int32_t type)
{
    return type == HW_F32 || type == HW_F16 || type == HW_BF16;
}

static bool accepts(const char *word)
{
    struct product product;
    return product_read(word, &product) && is_float(product.type);
}

/* ---- operands: several sets in turn, too many for a cache ----
 *
 * Weights are in read-only buffers, as in models: a kernel may read those before earlier work is
 * done. */

struct set {
    struct hw_matmul op, packed; /* packed: with b as hw_tensor_pack() makes it */
    struct rival_operands operands;
};

struct products {
    struct duel *duel; /* whose `state` this is */
    struct product product;
    struct set set[MOST_SETS];
    int sets, next;
    bool packs; /* whether the device has packed weights */
};

static void free_sets(struct products *p)
{
    for (int i = 0; i < p->sets; i++) {
        hw_buffer_free(p->set[i].op.a.buffer);
        hw_buffer_free(p->set[i].op.b.buffer);
        hw_buffer_free(p->set[i].op.c.buffer);
        hw_buffer_free(p->set[i].packed.b.buffer);
    }
}

static enum hw_status pack(struct products *p, struct set *s)
{
    s->packed = s->op;
    s->packed.b.buffer = NULL;
    const enum hw_status status = hw_tensor_pack(p->duel->queue, &s->op.b, &s->packed.b);
    p->packs = !status;
    return status == HW_UNSUPPORTED ? HW_OK : status;
}

static enum hw_status make_set(struct products *p, struct set *s)
{
    const struct product *of = &p->product;
    const struct duel_matrix a = { of->type, of->m, of->k, .input = true };
    const struct duel_matrix b = { of->type,      of->n,         of->k,
                                   .input = true, .from = 12345, .constant = true };
    const struct duel_matrix c = { of->type, of->m, of->n, .input = false };
    s->op.transpose_b = 1;
    enum hw_status status = duel_make(p->duel, &a, &s->op.a, &s->operands.a);
    if (!status)
        status = duel_make(p->duel, &b, &s->op.b, &s->operands.b);
    if (!status)
        status = duel_make(p->duel, &c, &s->op.c, &s->operands.c);
    return status ? status : pack(p, s);
}

static enum hw_status make_sets(struct products *p)
{
    const struct product *of = &p->product;
    const double enough = 3e8,
                 bytes = (double)hw_dtype_bytes(of->type) *
                         (double)(of->m * of->k + of->n * of->k + of->m * of->n);
    const int wanted = bytes * MOST_SETS < enough ? MOST_SETS : 1 + (int)(enough / bytes);
    enum hw_status status = HW_OK;
    while (p->sets < wanted && !status)
        status = make_set(p, &p->set[p->sets++]);
    return status ? status : hw_queue_wait(p->duel->queue);
}

/* One product. */
static const char *multiply(struct duel *d, int way)
{
    struct products *p = d->state;
    struct set *s = &p->set[p->next];
    p->next = (p->next + 1) % p->sets;
    if (way >= 0)
        return d->rival->multiply(d->self, way, &s->operands);
    return duel_message(hw_matmul(d->queue, way == PACKED ? &s->packed : &s->op));
}

/* ---- the same result? ---- */

static const char *read_result(struct products *p, int way, float *to)
{
    p->next = 0;
    const char *why = multiply(p->duel, way);
    return why ? why : duel_read(p->duel, &p->set[0].op.c, to);
}

/* ||c - a . b^T|| / ||a . b^T||, computed in double, over some elements of c. */
static double error_of(const struct product *p, const float *c, const float *a,
                       const float *b)
{
    double errors = 0, squares = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        const int64_t row = i * 7919 % p->m, col = i * 104729 % p->n;
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++)
            sum += (double)a[row * p->k + k] * b[col * p->k + k];
        errors += (c[row * p->n + col] - sum) * (c[row * p->n + col] - sum);
        squares += sum * sum;
    }
    return sqrt(errors / squares);
}

/* `c`: room for both results. */
static const char *find_errors(struct products *d, const float *c, struct outcome *o)
{
    const struct product *p = &d->product;
    float *a = malloc((size_t)(p->m * p->k) * sizeof *a);
    float *b = malloc((size_t)(p->n * p->k) * sizeof *b);
    const char *why = a && b ? NULL : "out of memory";
    if (!why)
        why = duel_read(d->duel, &d->set[0].op.a, a);
    if (!why)
        why = duel_read(d->duel, &d->set[0].op.b, b);
    if (!why) {
        o->our_error = error_of(p, c, a, b);
        o->their_error = error_of(p, c + p->m * p->n, a, b);
    }
    free(a);
    free(b);
    return why;
}

static const char *compare_results(struct products *p, struct outcome *o)
{
    const int64_t count = p->product.m * p->product.n;
    float *ours = malloc((size_t)count * 2 * sizeof *ours);
    if (!ours)
        return "out of memory";
    const char *why = read_result(p, o->our_way, ours);
    if (!why)
        why = read_result(p, o->way, ours + count);
    if (!why)
        why = find_errors(p, ours, o);
    if (!why)
        why = duel_compare(p->duel, ours, ours + count, o, count);
    free(ours);
    return why;
}

/* ---- the duel ---- */

/* TF32 causes an error of 2.6e-4 on each side that uses it, if numbers are rounded to the nearest;
 * a product in f32 must be much closer. Results of 16 bits are rounded themselves. */
static double bound_of(const struct product *p)
{
    return p->type != HW_F32 ? 1e-2 : p->tf32 ? 1e-3 : 5e-5;
}

static const char *measure(struct products *p, struct outcome *o)
{
    struct duel *d = p->duel;
    const char *why = duel_message(make_sets(p));
    d->warm_up = p->sets;
    if (!why)
        why = d->rival->prepare(d->self, &p->product, &o->ways);
    if (!why)
        why = duel_find_ways(d, p->packs ? PACKED : AS_STORED, o);
    if (!why)
        why = compare_results(p, o);
    return why ? why : duel_take_turns(d, o);
}

static void report_outcome(const struct bench *bench, const struct products *products,
                           const struct outcome *o)
{
    const struct product *p = &products->product;
    const struct duel *d = products->duel;
    const double flops = product_operations(p);
    const struct way_name our_way = duel_way(d, o, o->our_way),
                          way = duel_way(d, o, o->way);
    const double ours = o->ours.median, theirs = o->theirs.median;
    json_array_append_new(
        bench->results,
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:i, s:s, s:o, "
                  "s:o, s:f, s:f, s:f, s:f, s:f, s:f}",
                  "bench", "rival", "op", "matmul", "precision", d->precision, "type",
                  hw_dtype_name(p->type), "m", (json_int_t)p->m, "n", (json_int_t)p->n, "k",
                  (json_int_t)p->k, "rival", d->rival->name(d->self), "our_way",
                  our_way.text, "rival_way", way.text, "way", o->way, "ways", o->ways,
                  "unit", "us", "ours", spread_json(o->ours), "theirs",
                  spread_json(o->theirs), "speed", d->speed, "gflop_per_s",
                  flops / ours / 1e3, "rival_gflop_per_s", flops / theirs / 1e3,
                  "difference", o->difference, "error", o->our_error, "rival_error",
                  o->their_error));
    if (out_is_text())
        say("  %-5s %6lldx%lldx%-8lld %10.2f %8.2f %8.2f %10.2f %8.2f %8.2f %9.0f "
            "%s%6.3f%s  %s; %s\n",
            hw_dtype_name(p->type), (long long)p->m, (long long)p->n, (long long)p->k, ours,
            o->ours.p10, o->ours.p90, theirs, o->theirs.p10, o->theirs.p90,
            flops / ours / 1e3, ink(BOLD), d->speed, ink(PLAIN), our_way.text, way.text);
    out_flush();
}

static void print_header(const struct duel *d)
{
    say("\nmatmul on %s beside %s, precision %s, the best ways of both: us, p10, p90\n"
        "  %-28s %10s %8s %8s %10s %8s %8s %9s %6s  %s\n",
        hw_device_name(d->device), d->rival->name(d->self), d->precision, "type, MxNxK",
        "ours", "p10", "p90", "theirs", "p10", "p90", "GFLOP/s", "speed",
        "our way; theirs");
}

static const char *measure_word(const struct bench *bench, struct duel *d, const char *word)
{
    struct products products = { .duel = d };
    struct outcome outcome = { 0 };
    product_read(word, &products.product);
    products.product.tf32 = d->rival->tf32 && products.product.type == HW_F32 &&
                            strcmp(d->precision, "fp32") != 0;
    d->bound = bound_of(&products.product);
    d->state = &products;
    d->run = multiply;
    d->calls = 1;
    const char *why = measure(&products, &outcome);
    if (!why)
        report_outcome(bench, &products, &outcome);
    free_sets(&products);
    return why;
}

const struct duel_op duel_matmul = {
    .op = HW_OP_MATMUL,
    .accepts = accepts,
    .print_header = print_header,
    .measure = measure_word,
};
