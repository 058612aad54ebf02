/* SPDX-License-Identifier: MIT */
/* bench_threads.c - the overhead of sharing an op between two threads of the CPU plugin: an op on
 * two threads is compared with one of half the size on one thread. Calls follow each other
 * directly, as in a model, so that no thread has to be woken. */
#include "bench.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/hw.h>

#include <stdio.h>
#include <stdlib.h>

/* A sample is CALLS calls, after WARMTH calls that wake the other thread. */
enum { REPETITIONS = 200, CALLS = 200, WARMTH = 200 };

/* Elements that one thread computes, in about 1, 2 and 4 us. The data of both fit into the
 * caches. */
static const int64_t halves[] = { 4096, 8192, 16384 };
enum { HALVES = sizeof halves / sizeof *halves, MOST = 2 * 16384 };

/* A context with a number of threads. */
struct side {
    struct report report;
    struct hw_queue *queue;
};

static bool side_open(struct side *side, const char *threads)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "cpu",
                                        .threads = threads };
    side->queue = NULL;
    if (!report_open_for(&side->report, "cpu:0", &options))
        return false;
    struct hw_device *device = report_device(&side->report, "cpu:0");
    if (device && !hw_queue_open(device, NULL, &side->queue))
        return true;
    if (device)
        complain("threads: %s", hw_message());
    report_close(&side->report);
    return false;
}

static void side_close(struct side *side)
{
    hw_queue_close(side->queue);
    report_close(&side->report);
}

/* Nanoseconds of a call; false, with a complaint, if calls fail. */
static bool time_calls(const struct side *side, int64_t elements, double *ns)
{
    static float x[MOST], y[MOST];
    const struct hw_silu op = { .x = hw_host_1d(x, HW_F32, elements),
                                .y = hw_host_1d(y, HW_F32, elements) };
    enum hw_status status = HW_OK;
    for (int i = 0; i < WARMTH && !status; i++)
        status = hw_silu(side->queue, &op);
    const double start = now_ns();
    for (int i = 0; i < CALLS && !status; i++)
        status = hw_silu(side->queue, &op);
    *ns = (now_ns() - start) / CALLS;
    if (status)
        complain("threads: %s", hw_message());
    return !status;
}

/* Nanoseconds: one thread, two threads with twice the elements, and their difference. */
static void report_half(const struct bench *bench, int64_t half, double *one, double *two,
                        double *cost, size_t count)
{
    const struct spread spread = spread_of(cost, count);
    const double alone = spread_of(one, count).median, both = spread_of(two, count).median;
    json_array_append_new(
        bench->results, json_pack("{s:s, s:s, s:I, s:s, s:f, s:f, s:o}", "bench", "threads",
                                  "op", "silu", "elements", (json_int_t)half, "unit", "ns",
                                  "one", alone, "two", both, "cost", spread_json(spread)));
    if (out_is_text())
        say("  %10lld %10.0f %12.0f %s%8.0f%s %6.0f %6.0f\n", (long long)half, alone, both,
            ink(BOLD), spread.median, ink(PLAIN), spread.p10, spread.p90);
}

static bool measure_half(const struct bench *bench, const struct side *one,
                         const struct side *two, int64_t half, size_t count)
{
    double *ns = calloc(3 * count, sizeof *ns);
    bool good = ns != NULL;
    if (!ns)
        complain("threads: out of memory");
    for (size_t i = 0; i < count && good; i++) {
        good = time_calls(one, half, &ns[i]) && time_calls(two, 2 * half, &ns[count + i]);
        ns[2 * count + i] = ns[count + i] - ns[i];
    }
    if (good)
        report_half(bench, half, ns, ns + count, ns + 2 * count, count);
    free(ns);
    return good;
}

int measure_threads(const struct bench *bench)
{
    const size_t count = (size_t)(bench->repetitions ? bench->repetitions : REPETITIONS);
    struct side one, two;
    bool good = true;

    if (!side_open(&one, "1"))
        return EXIT_FAILED;
    if (!side_open(&two, "2")) {
        side_close(&one);
        return EXIT_FAILED;
    }
    if (out_is_text())
        say("\nthreads of cpu:0: nanoseconds of silu of f32, %zu times %d calls: one thread, two "
            "threads\nwith twice the elements, and the difference\n"
            "    elements        one  two, twice     cost    p10    p90\n",
            count, CALLS);
    for (int i = 0; i < HALVES && good; i++)
        good = measure_half(bench, &one, &two, halves[i], count);
    side_close(&two);
    side_close(&one);
    return good ? 0 : EXIT_FAILED;
}
