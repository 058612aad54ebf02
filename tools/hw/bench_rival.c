/* SPDX-License-Identifier: MIT */
/* bench_rival.c - products by this library and by another one on the same device, in turns. */
#define _POSIX_C_SOURCE 199309L /* nanosleep() */

#include "bench.h"
#include "command.h"
#include "measure.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "rival.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct rival *const rivals[] = { &rival_cublaslt, &rival_clblast,
                                              &rival_openblas, &rival_blis, &rival_onednn };
enum { RIVALS = sizeof rivals / sizeof rivals[0] };

enum { MOST_SETS = 8, ROUNDS = 15, TRIALS = 3, SAMPLES = 200 };

/* ---- what to multiply ---- */

static bool is_float(int32_t type)
{
    return type == HW_F32 || type == HW_F16 || type == HW_BF16;
}

bool rival_accepts(const char **words)
{
    struct product product;
    for (; *words; words++)
        if (!product_read(*words, &product) || !is_float(product.type)) {
            complain("%s: a product is TYPE:MxNxK, such as bf16:4096x4096x4096", *words);
            return false;
        }
    return true;
}

/* ---- operands: several sets take turns, so that no cache holds them ---- */

struct set {
    struct hw_matmul op, packed; /* packed: with b as hw_tensor_pack() makes it */
    struct rival_operands operands;
};

struct duel {
    const struct rival *rival;
    void *self;
    struct hw_device *device;
    struct hw_queue *queue;
    struct hw_tensor workspace;
    float *random;
    struct product product;
    struct set set[MOST_SETS];
    int sets, next;
    bool packs; /* whether the device has packed weights */
};

/* What the rival takes for a buffer. */
static enum hw_status hand_over(struct duel *d, struct hw_buffer *buffer,
                                struct hw_import *memory)
{
    *memory = (struct hw_import){ .size = sizeof *memory };
    if (d->rival->memory)
        return hw_buffer_export(buffer, d->rival->memory, memory);
    memory->handle = hw_buffer_host(buffer);
    return HW_OK;
}

static enum hw_status make(struct duel *d, int64_t rows, int64_t cols, bool input,
                           struct hw_tensor *tensor, struct hw_import *memory)
{
    const int64_t extents[2] = { rows, cols };
    enum hw_status status = hw_tensor_alloc(d->device, 0, d->product.type, 2, extents,
                                            tensor);
    if (!status)
        status = hand_over(d, tensor->buffer, memory);
    return status || !input ? status : fill_random(d->queue, d->random, tensor);
}

static void free_sets(struct duel *d)
{
    for (int i = 0; i < d->sets; i++) {
        hw_buffer_free(d->set[i].op.a.buffer);
        hw_buffer_free(d->set[i].op.b.buffer);
        hw_buffer_free(d->set[i].op.c.buffer);
        hw_buffer_free(d->set[i].packed.b.buffer);
    }
    memset(d->set, 0, sizeof d->set);
    d->sets = d->next = 0;
}

static enum hw_status pack(struct duel *d, struct set *s)
{
    s->packed = s->op;
    s->packed.b.buffer = NULL;
    const enum hw_status status = hw_tensor_pack(d->queue, &s->op.b, &s->packed.b);
    d->packs = !status;
    return status == HW_UNSUPPORTED ? HW_OK : status;
}

static enum hw_status make_sets(struct duel *d)
{
    const struct product *p = &d->product;
    const double enough = 3e8, bytes = (double)hw_dtype_bytes(p->type) *
                                       (double)(p->m * p->k + p->n * p->k + p->m * p->n);
    const int wanted = bytes * MOST_SETS < enough ? MOST_SETS : 1 + (int)(enough / bytes);
    enum hw_status status = HW_OK;
    while (d->sets < wanted && !status) {
        struct set *s = &d->set[d->sets++];
        s->op.transpose_b = 1;
        status = make(d, p->m, p->k, true, &s->op.a, &s->operands.a);
        if (!status)
            status = make(d, p->n, p->k, true, &s->op.b, &s->operands.b);
        if (!status)
            status = make(d, p->m, p->n, false, &s->op.c, &s->operands.c);
        if (!status)
            status = pack(d, s);
    }
    return status ? status : hw_queue_wait(d->queue);
}

/* ---- time ---- */

/* Our ways; those of the rival are numbered from 0. */
enum { PACKED = -2, AS_STORED = -1 };

static const char *message(enum hw_status status)
{
    return status ? hw_message() : NULL;
}

/* One product. */
static const char *multiply(struct duel *d, int way)
{
    struct set *s = &d->set[d->next];
    d->next = (d->next + 1) % d->sets;
    if (way >= 0)
        return d->rival->multiply(d->self, way, &s->operands);
    return message(hw_matmul(d->queue, way == PACKED ? &s->packed : &s->op));
}

/* The microseconds of a product, by `count` of them until all have completed. */
static const char *time_products(struct duel *d, int way, int count, double *us)
{
    const char *why = NULL;
    const double start = now_ns();
    for (int i = 0; i < count && !why; i++)
        why = multiply(d, way);
    if (!why)
        why = message(hw_queue_wait(d->queue));
    *us = (now_ns() - start) / 1000 / count;
    return why;
}

/* How many products take about 2 ms, much longer than a wait; the first of them warm up. */
static const char *count_products(struct duel *d, int way, int *count)
{
    enum { BATCH_US = 2000, MOST = 4096 };
    double us = 0;
    const char *why = time_products(d, way, d->sets, &us);
    for (*count = 1; !why && *count < MOST; *count *= 2) {
        why = time_products(d, way, *count, &us);
        if (us * *count >= BATCH_US)
            break;
    }
    return why;
}

/* The fastest of ways first .. end - 1. One that the library offers but does not compute is left
 * out. */
static const char *find_best(struct duel *d, int first, int end, int *best)
{
    const char *why = "no way to compute this product works";
    double least = HUGE_VAL;
    for (int way = first; way < end; way++) {
        double us[TRIALS];
        int count;
        const char *fails = count_products(d, way, &count);
        for (int i = 0; i < TRIALS && !fails; i++)
            fails = time_products(d, way, count, &us[i]);
        if (fails)
            continue;
        const double median = spread_of(us, TRIALS).median;
        if (median < least) {
            least = median;
            *best = way;
            why = NULL;
        }
    }
    return why;
}

/* ---- the same result? ---- */

static const char *read_matrix(struct duel *d, const struct hw_tensor *t, float *to)
{
    const struct hw_copy copy = {
        .src = *t, .dst = hw_host_2d(to, HW_F32, t->extent[0], t->extent[1])
    };
    const char *why = message(hw_copy(d->queue, &copy));
    return why ? why : message(hw_queue_wait(d->queue));
}

static const char *read_result(struct duel *d, int way, float *to)
{
    d->next = 0;
    const char *why = multiply(d, way);
    return why ? why : read_matrix(d, &d->set[0].op.c, to);
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

struct outcome {
    struct spread ours, theirs; /* us */
    int our_way, way, ways;
    double difference;             /* of the two results */
    double our_error, their_error; /* from the result in double */
};

/* `c`: both results. */
static const char *find_errors(struct duel *d, const float *c, struct outcome *o)
{
    const struct product *p = &d->product;
    float *a = malloc((size_t)(p->m * p->k) * sizeof *a);
    float *b = malloc((size_t)(p->n * p->k) * sizeof *b);
    const char *why = a && b ? NULL : "out of memory";
    if (!why)
        why = read_matrix(d, &d->set[0].op.a, a);
    if (!why)
        why = read_matrix(d, &d->set[0].op.b, b);
    if (!why) {
        o->our_error = error_of(p, c, a, b);
        o->their_error = error_of(p, c + p->m * p->n, a, b);
    }
    free(a);
    free(b);
    return why;
}

/* The difference is ||ours - theirs|| / ||ours||. */
static const char *compare_results(struct duel *d, struct outcome *o)
{
    const int64_t count = d->product.m * d->product.n;
    float *ours = malloc((size_t)count * 2 * sizeof *ours);
    double errors = 0, squares = 0;
    if (!ours)
        return "out of memory";
    float *theirs = ours + count;
    const char *why = read_result(d, o->our_way, ours);
    if (!why)
        why = read_result(d, o->way, theirs);
    for (int64_t i = 0; i < count && !why; i++) {
        errors += ((double)ours[i] - theirs[i]) * ((double)ours[i] - theirs[i]);
        squares += (double)ours[i] * ours[i];
    }
    o->difference = sqrt(errors / squares);
    if (!why)
        why = find_errors(d, ours, o);
    free(ours);
    return why || o->difference < 1e-2 ? why : "the two results differ";
}

/* ---- the duel ---- */

/* After a pause, because threads of the other side spin for a while when they are done, and a
 * product that wakes one's own. */
static const char *take_turn(struct duel *d, int way, int count, double *us)
{
    nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    const char *why = time_products(d, way, 1, us);
    return why ? why : time_products(d, way, count, us);
}

static const char *fight(struct duel *d, struct outcome *o)
{
    double ours[ROUNDS], theirs[ROUNDS];
    int our_count, their_count;
    const char *why = message(make_sets(d));
    if (!why)
        why = d->rival->prepare(d->self, &d->product, &o->ways);
    if (!why)
        why = find_best(d, 0, o->ways, &o->way);
    if (!why)
        why = find_best(d, d->packs ? PACKED : AS_STORED, 0, &o->our_way);
    if (!why)
        why = compare_results(d, o);
    if (!why)
        why = count_products(d, o->our_way, &our_count);
    if (!why)
        why = count_products(d, o->way, &their_count);
    for (int i = 0; i < ROUNDS && !why; i++) {
        why = take_turn(d, o->our_way, our_count, &ours[i]);
        if (!why)
            why = take_turn(d, o->way, their_count, &theirs[i]);
    }
    if (!why) {
        o->ours = spread_of(ours, ROUNDS);
        o->theirs = spread_of(theirs, ROUNDS);
    }
    return why;
}

/* Of ours, whether b is packed; of theirs, "way 3 of 8" if it has no name. */
struct way {
    char text[40];
};
static struct way way_of(const struct duel *d, const struct outcome *o, int way)
{
    struct way name = { "" };
    if (way < 0)
        snprintf(name.text, sizeof name.text, "%s", way == PACKED ? "packed" : "as stored");
    else if (d->rival->way_name)
        snprintf(name.text, sizeof name.text, "%s", d->rival->way_name(d->self, way));
    else
        snprintf(name.text, sizeof name.text, "way %d of %d", way + 1, o->ways);
    return name;
}

static void report_outcome(const struct bench *bench, struct duel *d,
                           const struct outcome *o)
{
    const struct product *p = &d->product;
    const double flops = product_operations(p);
    const struct way our_way = way_of(d, o, o->our_way), way = way_of(d, o, o->way);
    const double ours = o->ours.median, theirs = o->theirs.median;
    json_array_append_new(
        bench->results,
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:i, s:s, s:o, s:o, "
                  "s:f, s:f, s:f, s:f, s:f, s:f}",
                  "bench", "rival", "op", "matmul", "type", hw_dtype_name(p->type), "m",
                  (json_int_t)p->m, "n", (json_int_t)p->n, "k", (json_int_t)p->k, "rival",
                  d->rival->name(d->self), "our_way", our_way.text, "rival_way", way.text,
                  "way", o->way, "ways", o->ways, "unit", "us", "ours",
                  spread_json(o->ours), "theirs", spread_json(o->theirs), "speed",
                  theirs / ours, "gflop_per_s", flops / ours / 1e3, "rival_gflop_per_s",
                  flops / theirs / 1e3, "difference", o->difference, "error", o->our_error,
                  "rival_error", o->their_error));
    if (out_is_text())
        say("  %-5s %6lldx%lldx%-8lld %10.2f %8.2f %8.2f %10.2f %8.2f %8.2f %9.0f "
            "%s%6.3f%s  %s; %s\n",
            hw_dtype_name(p->type), (long long)p->m, (long long)p->n, (long long)p->k, ours,
            o->ours.p10, o->ours.p90, theirs, o->theirs.p10, o->theirs.p90,
            flops / ours / 1e3, ink(BOLD), theirs / ours, ink(PLAIN), our_way.text,
            way.text);
    out_flush();
}

static int fight_all(const struct bench *bench, struct duel *d)
{
    const char *const *word = bench->words[0] ? bench->words : d->rival->usual;
    if (out_is_text())
        say("\nmatmul on %s beside %s, the best ways of both: us, p10, p90\n"
            "  %-28s %10s %8s %8s %10s %8s %8s %9s %6s  %s\n",
            hw_device_name(d->device), d->rival->name(d->self), "type, MxNxK", "ours",
            "p10", "p90", "theirs", "p10", "p90", "GFLOP/s", "speed", "our way; theirs");
    for (; *word && !out_is_closed(); word++) {
        struct outcome outcome = { 0 };
        product_read(*word, &d->product);
        const char *why = fight(d, &outcome);
        if (why) {
            complain("%s: %s", *word, why);
            free_sets(d);
            return EXIT_FAILED;
        }
        report_outcome(bench, d, &outcome);
        free_sets(d);
    }
    return 0;
}

/* Of "cuda:0", "cuda" is. */
static bool fights_on(const struct rival *rival, struct hw_device *device)
{
    const size_t length = strlen(rival->backend);
    const char *name = hw_device_name(device);
    return !strncmp(name, rival->backend, length) && name[length] == ':';
}

static const char *open_duel(struct duel *d)
{
    const int64_t bytes = RIVAL_WORKSPACE;
    struct hw_import workspace;
    void *queue = NULL;
    if (!(d->random = random_numbers()))
        return "out of memory";
    if (hw_queue_open(d->device, NULL, &d->queue) ||
        (d->rival->queue && hw_queue_export(d->queue, d->rival->queue, &queue)) ||
        hw_tensor_alloc(d->device, 0, HW_I8, 1, &bytes, &d->workspace) ||
        hand_over(d, d->workspace.buffer, &workspace))
        return hw_message();
    return d->rival->open(&d->self, queue, &workspace);
}

static void close_duel(struct duel *d)
{
    if (d->queue)
        hw_queue_wait(d->queue);
    if (d->self)
        d->rival->close(d->self);
    hw_buffer_free(d->workspace.buffer);
    hw_queue_close(d->queue);
    free(d->random);
}

/* What a device's rivals are, and why some cannot be met. */
struct rivals_met {
    int known, opened;
    char missing[600];
};

static void note_missing(struct rivals_met *met, const char *why)
{
    const size_t length = strlen(met->missing);
    snprintf(met->missing + length, sizeof met->missing - length, "%s%s",
             length ? "; " : "", why);
}

/* The duels with one library. */
static int meet_rival(const struct bench *bench, struct hw_device *device,
                      const struct rival *rival, struct rivals_met *met)
{
    struct duel duel = { .rival = rival, .device = device };
    const char *why = open_duel(&duel);
    int status = 0;
    if (why)
        note_missing(met, why);
    else
        status = fight_all(bench, &duel);
    met->known++;
    met->opened += !why;
    close_duel(&duel);
    return status;
}

/* A device may have several rivals: of these, some may be missing. */
static int meet_rivals(const struct bench *bench, struct hw_device *device)
{
    const char *name = hw_device_name(device);
    struct rivals_met met = { 0 };
    int status = 0;
    for (int i = 0; i < RIVALS && !status && !out_is_closed(); i++)
        if (fights_on(rivals[i], device))
            status = meet_rival(bench, device, rivals[i], &met);
    if (!met.opened)
        complain("rival: %s: %s", name,
                 met.known ? met.missing : "no other library is known for this device");
    else if (*met.missing && out_is_text())
        say_folded(2, "\nnot measured: %s\n", met.missing);
    return met.opened ? status : EXIT_FAILED;
}

int measure_rival(const struct bench *bench)
{
    const struct hw_options options = { .size = sizeof options, .fallback = "error" };
    struct hw_device *device;
    struct report report;
    int status = EXIT_FAILED;

    if (!report_open_for(&report, bench->device, &options))
        return EXIT_FAILED;
    if ((device = report_device(&report, bench->device)))
        status = meet_rivals(bench, device);
    report_close(&report);
    return status;
}
