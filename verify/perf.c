/* SPDX-License-Identifier: MIT */
/* perf.c - measures ops, and compares them with the peaks of the device. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime() */

#include "bench.h"
#include "caches.h"
#include "host.h"

#include <hw/report.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MOST_SAMPLES = 200,
    LEAST_SAMPLES = 5,
    MOST_SETS = 16384,
    GRAPH_SETS = 256, /* of a graph, at most */
    GRAPH_CALLS = 64  /* at least */
};
static const double cold_least = 256e6; /* more than most caches */
static const double batch_seconds =
    2e-3; /* much longer than reading the clock and waiting */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Sets of operands that take turns. */
struct sets {
    struct bench *bench;
    int count, next;
    struct hw_graph *graph; /* of `recorded` calls; or NULL */
    int recorded;
};

static void sets_close(struct sets *s)
{
    hw_graph_free(s->graph);
    s->graph = NULL;
    while (s->count > 0)
        bench_close(&s->bench[--s->count]);
    free(s->bench);
    s->bench = NULL;
}

/* The bytes between two uses of the same set: twice the size of the caches, because caches need not
 * evict the oldest data first. */
static double cold_bytes(void)
{
    const double caches = 2 * cache_bytes("/sys/devices/system/cpu");
    return caches > cold_least ? caches : cold_least;
}

static enum hw_status sets_open(struct sets *s, const struct problem *p,
                                struct hw_queue *queue, bool cold, int most)
{
    const double all = cold ? cold_bytes() / (double)p->bytes + 2 : 1;
    const int wanted = all < most ? (int)all : most;
    enum hw_status status = HW_OK;

    *s = (struct sets){ .bench = calloc((size_t)wanted, sizeof *s->bench) };
    if (!s->bench)
        return HW_NO_MEMORY;
    while (!status && s->count < wanted) {
        struct bench *bench = &s->bench[s->count];
        status = bench_open(bench, p, queue);
        if (status)
            break;
        if (s->count++ == 0 || bench_load_as(bench, &s->bench[0]))
            status = bench_load(bench, 0x3c); /* a small number in any float */
        bench_drop_host(bench);
    }
    if (status)
        sets_close(s);
    return status;
}

static enum hw_status submit_next(struct sets *s)
{
    const int now = s->next;
    s->next = (now + 1) % s->count;
    return bench_submit(&s->bench[now]);
}

/* Records whole turns of the sets as one graph; from then on, calls launch it. */
static enum hw_status sets_record(struct sets *s, struct hw_queue *queue)
{
    enum hw_status status = HW_OK, ended;
    for (int i = 0; !status && i < s->count; i++)
        status = bench_part_constants(&s->bench[i]);
    if (!status)
        status = hw_queue_record(queue);
    if (status)
        return status;
    while (!status && (s->recorded < GRAPH_CALLS || s->next)) {
        status = submit_next(s);
        s->recorded++;
    }
    ended = hw_queue_end(queue, &s->graph);
    return status ? status : ended;
}

static enum hw_status run_next(struct sets *s, struct hw_queue *queue)
{
    return s->graph ? hw_graph_launch(s->graph, queue) : submit_next(s);
}

/* The time in seconds of `calls` calls, until their work is complete. */
static enum hw_status time_batch(struct sets *s, struct hw_queue *queue, int64_t calls,
                                 double *seconds)
{
    enum hw_status status = HW_OK;
    const double start = now();

    for (int64_t i = 0; !status && i < calls; i++)
        status = run_next(s, queue);
    if (!status)
        status = hw_queue_wait(queue);
    *seconds = now() - start;
    return status;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median and the spread of the time per call, measured for about `seconds`. */
static enum hw_status measure(struct sets *s, struct hw_queue *queue, double seconds,
                              struct verify_timing *timing)
{
    double sample[MOST_SAMPLES], taken = 0;
    int64_t calls = 1;
    const double each = s->graph ? s->recorded : 1;
    const int64_t turn = s->graph ? 1 : s->count;
    enum hw_status status = time_batch(s, queue, turn, &taken); /* warms up */

    for (taken = 0; !status && taken < batch_seconds; calls *= 2)
        status = time_batch(s, queue, calls, &taken);
    calls /= 2; /* the calls in the last batch */
    int count = (int)(seconds / (taken > 0 ? taken : batch_seconds));
    count = count < LEAST_SAMPLES  ? LEAST_SAMPLES
            : count > MOST_SAMPLES ? MOST_SAMPLES
                                   : count;
    const double end = now() +
                       4 * seconds; /* a slow device gets fewer samples, but at least one */
    int done = 0;
    while (!status && done < count && (done == 0 || now() < end)) {
        status = time_batch(s, queue, calls, &sample[done]);
        sample[done++] /= (double)calls * each;
    }
    if (status)
        return status;
    count = done;
    qsort(sample, (size_t)count, sizeof sample[0], by_size);
    timing->samples = count;
    timing->median = sample[count / 2];
    timing->low = sample[count / 10];
    timing->high = sample[count - 1 - count / 10];
    return HW_OK;
}

/* ---- peaks --------------------------------------------------------------------------------- */

/* The best time of one call of a case in seconds (the first tenth of the samples), on the row that
 * the device chooses; 0: the device cannot compute it. */
static double seconds_of(struct hw_device *device, const char *text, bool cold)
{
    char error[VERIFY_ERROR_TEXT];
    struct verify_timing timing = { 0 };
    struct hw_queue *queue = NULL;
    struct test_case test;
    struct problem problem;
    struct sets sets;

    if (!case_parse(text, &test, error, sizeof error) ||
        !problem_make(&problem, &test, DETAIL_DATA))
        return 0;
    if (!bench_supports(device, &problem) && !hw_queue_open(device, NULL, &queue)) {
        if (!sets_open(&sets, &problem, queue, cold, MOST_SETS)) {
            if (measure(&sets, queue, 0.1, &timing))
                timing.low = 0;
            sets_close(&sets);
        }
        hw_queue_close(queue);
    }
    problem_clear(&problem);
    return timing.low;
}

/* Bytes per second of a copy that exceeds all caches; of a small copy if that is already slow. */
static double copy_rate(struct hw_device *device)
{
    const double little = seconds_of(device, "copy(shape=512x1024)", false);
    const double large = little > 0 && little < 0.01
                             ? seconds_of(device, "copy(shape=4096x4096)", true)
                             : 0;
    if (large > 0)
        return 2.0 * 4096 * 4096 * 4 / large;
    return little > 0 ? 2.0 * 512 * 1024 * 4 / little : 0;
}

/* Operations per second of a square matrix product: the faster of two sizes, or only the smaller
 * one if it is already slow. */
static double flops_of(struct hw_device *device, const char *dtype)
{
    static const int sizes[] = { 256, 1024 };
    double flops = 0;

    for (int i = 0; i < 2; i++) {
        char text[CASE_TEXT];
        snprintf(text, sizeof text, "matmul(m=%d,n=%d,k=%d,tb=1,a=%s,b=same,c=same)",
                 sizes[i], sizes[i], sizes[i], dtype);
        const double seconds = seconds_of(device, text, false);
        const double rate = seconds > 0 ? 2 * pow(sizes[i], 3) / seconds : 0;
        flops = rate > flops ? rate : flops;
        if (seconds > 0.02 || seconds <= 0)
            break;
    }
    return flops;
}

/* The processor's own rates. f16 is computed as f32; so is bf16 if the processor has no unit for
 * it. */
static bool host_flops(double flops[HW_DTYPE_END])
{
    const uint32_t threads = host_threads();
    const double f32 = host_rate("f32", threads, 0.1);
    const double bf16 = host_rate("bf16", threads, 0.1);
    flops[HW_F32] = flops[HW_F16] = f32;
    flops[HW_BF16] = bf16 > f32 ? bf16 : f32;
    return f32 > 0;
}

static void host_reads(struct verify_cache cache[VERIFY_CACHES])
{
    struct host_cache found[HOST_LEVELS];
    const int count = host_caches(host_threads(), 0.05, found);
    _Static_assert(VERIFY_CACHES >= (int)HOST_LEVELS, "levels");
    for (int i = 0; i < count; i++)
        cache[i] = (struct verify_cache){ found[i].bytes, found[i].rate };
}

static bool is_host(struct hw_device *device)
{
    struct hw_device_info info = { .size = sizeof info };
    return !hw_device_info(device, &info) && info.kind == HW_DEVICE_CPU;
}

enum hw_status verify_peaks(struct hw_device *device, struct verify_peaks *peaks)
{
    *peaks = (struct verify_peaks){ 0 };
    peaks->copy = copy_rate(device);
    if (is_host(device))
        host_reads(peaks->cache);
    if (is_host(device) && host_flops(peaks->flops))
        return HW_OK;
    peaks->flops[HW_F32] = flops_of(device, "f32");
    peaks->flops[HW_F16] = flops_of(device, "f16");
    peaks->flops[HW_BF16] = flops_of(device, "bf16");
    return HW_OK;
}

/* ---- the cases ----------------------------------------------------------------------------- */

struct timer {
    struct hw_device *device;
    const struct verify_filter *filter;
    const struct verify_peaks *peaks;
    double seconds;
    bool (*timing)(void *user, const struct verify_timing *timing);
    void *user;
    enum hw_status status;
    const struct test_case *test;
    const struct problem *problem;
    bool measured; /* the last case was measured */
};

/* Bytes per second from the memory or cache of the operands; 0: not measured. For memory, the rate
 * of a copy that exceeds all caches. */
static double rate_of_bytes(const struct verify_peaks *peaks,
                            const struct verify_timing *timing)
{
    if (timing->cold)
        return peaks->copy;
    for (int i = 0; i < VERIFY_CACHES && peaks->cache[i].rate > 0; i++)
        if (timing->bytes <= peaks->cache[i].bytes)
            return peaks->cache[i].rate;
    return peaks->cache[0].rate > 0 ? peaks->copy : 0;
}

/* 0: unknown. If caches were not measured, the time for computing counts only if copies between
 * memory would not take longer. */
static double least_seconds(const struct timer *t, const struct verify_timing *timing)
{
    const double peak_flops = t->peaks->flops[t->problem->operand[0].dtype];
    const double known = rate_of_bytes(t->peaks, timing);
    const double rate = known > 0 ? known : t->peaks->copy;
    const double moving = rate > 0 ? timing->bytes / rate : 0;
    const double computing = peak_flops > 0 ? timing->flops / peak_flops : 0;

    if (computing >= moving)
        return computing;
    return known > 0 ? moving : 0;
}

static void add_rates(const struct timer *t, struct verify_timing *timing)
{
    const struct problem *p = t->problem;
    const struct cost cost = oracle_cost(p->op, &p->args, p->operand);

    timing->flops = cost.flops;
    timing->bytes = cost.read + cost.written;
    if (timing->median > 0)
        timing->peak = least_seconds(t, timing) / timing->median;
}

static bool report(struct timer *t, struct verify_timing *timing)
{
    timing->device = hw_device_name(t->device);
    timing->op = hw_op_name(t->test->op);
    timing->test = t->test->text;
    return t->timing(t->user, timing);
}

static bool time_sets(struct timer *t, struct hw_queue *queue, const char *row, bool cold)
{
    const bool graph = t->filter->graph;
    struct verify_timing timing = {
        .kernel = row, .cold = cold, .graph = graph, .text = ""
    };
    const uint64_t before = fallbacks_of(queue, t->problem->op);
    struct sets sets;
    enum hw_status status = sets_open(&sets, t->problem, queue, cold,
                                      graph ? GRAPH_SETS : MOST_SETS);
    timing.sets = sets.count;
    if (!status && graph)
        status = sets_record(&sets, queue);
    if (!status)
        status = measure(&sets, queue, t->seconds, &timing);
    if (status)
        timing.text = hw_message();
    else if (fallbacks_of(queue, t->problem->op) != before)
        timing.text = "another device computed it";
    else
        add_rates(t, &timing);
    const bool go_on = report(t, &timing), measured = !timing.text[0];
    sets_close(&sets);
    t->measured = measured;
    return go_on;
}

static bool time_row(void *user, struct hw_queue *queue, const char *row)
{
    struct timer *t = user;
    t->measured = true;
    if (t->filter->graph)
        return time_sets(t, queue, row, true);
    return time_sets(t, queue, row, false) &&
           (!t->measured || time_sets(t, queue, row, true));
}

static bool time_case(void *user, const struct test_case *test)
{
    struct timer *t = user;
    struct problem problem;
    bool go_on = true;

    t->test = test;
    if (!problem_make(&problem, test, DETAIL_DATA)) {
        struct verify_timing timing = { .kernel = "", .text = problem.error };
        return report(t, &timing);
    }
    t->problem = &problem;
    if (bench_supports(t->device, &problem)) {
        struct verify_timing timing = { .kernel = "", .text = hw_message() };
        go_on = report(t, &timing);
    } else {
        t->status = each_row(t->device, problem.op, t->filter->kernel, 0, time_row, t,
                             &go_on);
    }
    problem_clear(&problem);
    return go_on && !t->status;
}

enum hw_status verify_perf(struct hw_device *device, const struct verify_filter *filter,
                           const struct verify_peaks *peaks, double seconds,
                           bool (*timing)(void *user, const struct verify_timing *timing),
                           void *user, char error[VERIFY_ERROR_TEXT])
{
    struct timer t = { .device = device,
                       .filter = filter,
                       .peaks = peaks,
                       .seconds = seconds > 0 ? seconds : 0.2,
                       .timing = timing,
                       .user = user };
    const enum hw_status status = each_case(filter, true, time_case, &t, error);
    return status ? status : t.status;
}
