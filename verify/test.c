/* SPDX-License-Identifier: MIT */
/* test.c - compares every case on every kernel row, run twice, with the oracle. */
#include "bench.h"
#include "compare.h"
#include "memory.h"

#include <hw/report.h>

#include <stdlib.h>
#include <string.h>

_Static_assert(VERIFY_OPERANDS == MAX_OPERANDS, "struct verify_result has room for them");

struct tester {
    struct hw_device *device;
    const struct verify_filter *filter;
    const char *precision;
    const struct verify_calls *calls;
    struct verify_counts *counts;
    enum hw_status status; /* the error that ended the run */
    const struct test_case *test;
    struct problem *problem; /* NULL: not made yet */
    bool computes;           /* the device says so */
    uint32_t rows;           /* whose result was reported */
};

static bool report(struct tester *t, struct verify_result *result)
{
    uint64_t *const count[] = { &t->counts->passed, &t->counts->failed, &t->counts->skipped,
                                &t->counts->unsupported };

    result->device = hw_device_name(t->device);
    result->op = t->test ? hw_op_name(t->test->op) : "memory";
    result->test = t->test ? t->test->text : "";
    if (!result->kernel)
        result->kernel = "";
    ++*count[result->verdict];
    for (int i = 0; t->problem && i < t->problem->count; i++)
        result->dtypes[i] = t->problem->operand[i].dtype;
    result->empty = t->problem && problem_is_empty(t->problem);
    t->counts->empty += result->empty && result->verdict == VERIFY_PASSED;
    return !t->calls->result || t->calls->result(t->calls->user, result);
}

/* Runs a bench twice; `arenas` gets the memory after each run. */
static enum hw_status run_twice(struct bench *bench, unsigned char *const arenas[4])
{
    static const int poisons[] = { FIRST_POISON, SECOND_POISON };
    enum hw_status status = HW_OK;

    for (int run = 0; !status && run < 2; run++) {
        status = bench_load(bench, poisons[run]);
        if (!status)
            status = bench_submit(bench);
        if (!status)
            status = hw_queue_wait(bench->queue);
        if (!status)
            status = bench_save(bench, arenas[run]);
        if (!status)
            memcpy(arenas[2 + run], bench->host, bench->problem->bytes);
    }
    return status;
}

/* The unused parts of the host's arena are poisoned, too. */
static void judge(struct tester *t, unsigned char *const arenas[4],
                  struct judgement *judgement, struct verify_result *result)
{
    const struct outcome outcome = { .device = { arenas[0], arenas[1] },
                                     .host = { arenas[2], arenas[3] } };

    if (!compare(t->problem, &outcome, t->precision, judgement)) {
        result->verdict = VERIFY_SKIPPED;
        result->text = "out of memory";
        return;
    }
    result->verdict = judgement->text[0] ? VERIFY_FAILED : VERIFY_PASSED;
    result->error = judgement->error;
    result->error_bound = judgement->error_bound;
    result->worst = judgement->worst;
    result->worst_bound = judgement->worst_bound;
    result->text = judgement->text;
}

/* The verdict on a case that failed with a status although the device claims to compute it. */
static enum verify_verdict verdict_of(enum hw_status status)
{
    return status == HW_UNSUPPORTED ? VERIFY_UNSUPPORTED
           : status == HW_NO_MEMORY ? VERIFY_SKIPPED
                                    : VERIFY_FAILED;
}

/* A row need not take every case, as long as another one does. */
static bool is_asked_for(const struct tester *t, const char *row)
{
    return !*row || t->filter->kernel;
}

static bool test_row(void *user, struct hw_queue *queue, const char *row)
{
    struct tester *t = user;
    struct verify_result result = { .kernel = row, .text = "" };
    struct judgement judgement;
    struct bench bench;
    unsigned char *arenas[4] = { 0 };
    const uint64_t before = fallbacks_of(queue, t->problem->op);
    enum hw_status status = bench_open(&bench, t->problem, queue);

    for (int i = 0; !status && i < 4; i++) {
        arenas[i] = malloc(t->problem->bytes);
        status = arenas[i] ? HW_OK : HW_NO_MEMORY;
    }
    if (!status)
        status = run_twice(&bench, arenas);
    if (status) {
        result.verdict = verdict_of(status);
        result.text = status == HW_NO_MEMORY ? "out of memory" : hw_message();
    } else if (fallbacks_of(queue, t->problem->op) != before) {
        result.verdict = VERIFY_UNSUPPORTED;
        result.text = "another device computed it";
    } else {
        judge(t, arenas, &judgement, &result);
    }
    const bool counts = result.verdict != VERIFY_UNSUPPORTED || is_asked_for(t, row);
    t->rows += counts;
    const bool go_on = !counts || report(t, &result);
    for (int i = 0; i < 4; i++)
        free(arenas[i]);
    bench_close(&bench);
    return go_on;
}

static bool test_rows(struct tester *t)
{
    bool go_on = true;

    if (!oracle_compute(t->problem->op, &t->problem->args, t->problem->operand)) {
        struct verify_result result = { .verdict = VERIFY_SKIPPED,
                                        .text = "out of memory" };
        return report(t, &result);
    }
    t->rows = 0;
    t->status = t->filter->admission ? own_row(t->device, test_row, t, &go_on)
                                     : each_row(t->device, t->problem->op,
                                                t->filter->kernel, 0, test_row, t, &go_on);
    if (!t->status && go_on && !t->rows && !t->filter->kernel) {
        struct verify_result result = { .verdict = VERIFY_UNSUPPORTED,
                                        .text = "none of the device's rows takes it" };
        go_on = report(t, &result);
    }
    return go_on && !t->status;
}

/* Makes the problem of the case, and reports a failure to make it. */
static bool with_problem(struct tester *t, enum detail detail, bool (*fn)(struct tester *t))
{
    struct problem problem;

    t->problem = NULL;
    if (!problem_make(&problem, t->test, detail)) {
        struct verify_result result = { .verdict = problem.no_memory ? VERIFY_SKIPPED
                                                                     : VERIFY_FAILED,
                                        .text = problem.error };
        return report(t, &result);
    }
    t->problem = &problem;
    const bool go_on = fn(t);
    problem_clear(&problem);
    t->problem = NULL;
    return go_on;
}

static bool ask_device(struct tester *t)
{
    const enum hw_status status = bench_supports(t->device, t->problem);
    struct verify_result result = { .verdict = verdict_of(status), .text = hw_message() };

    t->computes = !status;
    return t->computes || report(t, &result);
}

/* Queries the device before making the data and the oracle's results, which takes most of the time.
 * A plugin may have a single op. */
static bool test_case(void *user, const struct test_case *test)
{
    struct tester *t = user;

    if (t->calls->begin && !t->calls->begin(t->calls->user, test->op, test->text))
        return true;
    t->test = test;
    t->computes = false;
    const bool go_on = with_problem(t, DETAIL_SHAPES, ask_device);
    return t->computes ? with_problem(t, DETAIL_NUMBERS, test_rows) : go_on;
}

bool verify_dtypes(const char *test, int32_t dtypes[VERIFY_OPERANDS])
{
    char error[VERIFY_ERROR_TEXT];
    struct test_case parsed;
    struct problem problem;

    if (!case_parse(test, &parsed, error, sizeof error) ||
        !problem_make(&problem, &parsed, DETAIL_SHAPES))
        return false;
    for (int i = 0; i < VERIFY_OPERANDS; i++)
        dtypes[i] = i < problem.count ? problem.operand[i].dtype : HW_NONE;
    problem_clear(&problem);
    return true;
}

/* Reports only a failure, because most cases are about an op. */
static bool test_memory(struct tester *t)
{
    char why[VERIFY_ERROR_TEXT];
    struct verify_result result = { .verdict = VERIFY_FAILED, .text = why };

    return memory_is_aligned(t->device, why, sizeof why) || report(t, &result);
}

enum hw_status verify_test(struct hw_device *device, const struct verify_filter *filter,
                           const struct verify_calls *calls, struct verify_counts *counts,
                           char error[VERIFY_ERROR_TEXT])
{
    struct tester t = { .device = device,
                        .filter = filter,
                        .precision = filter->precision ? filter->precision : "fp32",
                        .calls = calls,
                        .counts = counts };
    error[0] = '\0';
    if (!filter->pattern && !filter->admission && !test_memory(&t))
        return HW_OK;
    const enum hw_status status = each_case(filter, false, test_case, &t, error);
    return status ? status : t.status;
}
