/* SPDX-License-Identifier: MIT */
/* support.c - finds the ops and dtypes that a device computes; lists the cases. */
#include "bench.h"

struct asker {
    struct hw_queue *queue;
    struct verify_matrix *matrix;
    char text[VERIFY_ERROR_TEXT];
};

/* Whether the device itself computes the problem; tested by submitting it. */
static bool computes(struct hw_queue *queue, const struct problem *problem)
{
    struct bench bench;

    if (bench_supports(hw_queue_device(queue), problem) ||
        bench_open(&bench, problem, queue))
        return false;
    enum hw_status status = bench_load(&bench, 0);
    const uint64_t before = fallbacks_of(queue, problem->op);
    if (!status)
        status = bench_submit(&bench);
    if (!status)
        status = hw_queue_wait(queue);
    bench_close(&bench);
    return !status && fallbacks_of(queue, problem->op) == before;
}

/* A case counts once for each dtype among its operands, except for indices and lengths.
 */
static bool ask(void *user, const struct test_case *test)
{
    struct asker *a = user;
    bool involved[HW_DTYPE_END] = { false };
    struct problem problem;

    if (!problem_make(&problem, test, DETAIL_DATA))
        return true;
    if (problem_is_empty(&problem)) {
        problem_clear(&problem);
        return true;
    }
    const bool supported = computes(a->queue, &problem);
    for (int i = 0; i < problem.count; i++)
        if (!problem.layout[i].index && problem.operand[i].dtype < HW_DTYPE_END)
            involved[problem.operand[i].dtype] = true;
    if (test->op == HW_OP_ARGMAX)
        involved[HW_I32] = false;
    problem_clear(&problem);
    for (int32_t dtype = HW_NONE + 1; dtype < HW_DTYPE_END; dtype++) {
        struct verify_cell *cell = &a->matrix->cell[test->op][dtype];
        cell->asked += involved[dtype];
        cell->supported += involved[dtype] && supported;
    }
    return true;
}

enum hw_status verify_support(struct hw_device *device, struct verify_matrix *matrix)
{
    struct asker asker = { .matrix = matrix };
    const struct verify_filter quick = { .quick = true };

    *matrix = (struct verify_matrix){ 0 };
    enum hw_status status = hw_queue_open(device, NULL, &asker.queue);
    if (!status)
        status = each_case(&quick, false, ask, &asker, asker.text);
    hw_queue_close(asker.queue);
    return status;
}

struct lister {
    bool (*fn)(void *user, const char *test, bool perf);
    void *user;
    bool perf, go_on;
};

static bool list(void *user, const struct test_case *test)
{
    struct lister *l = user;
    l->go_on = l->fn(l->user, test->text, l->perf);
    return l->go_on;
}

enum hw_status verify_list(const struct verify_filter *filter,
                           bool (*fn)(void *user, const char *test, bool perf), void *user,
                           char error[VERIFY_ERROR_TEXT])
{
    struct lister lister = { .fn = fn, .user = user, .go_on = true };
    enum hw_status tests = each_case(filter, false, list, &lister, error);

    lister.perf = true;
    if (!lister.go_on || filter->quick || is_one_case(filter))
        return tests;
    const enum hw_status perf = each_case(filter, true, list, &lister, error);
    return tests == HW_OK ? tests : perf;
}
