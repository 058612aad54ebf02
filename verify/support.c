/* SPDX-License-Identifier: MIT */
/* support.c - what a device says it computes, and what there is to ask. */
#include "bench.h"

struct asker {
    struct hw_device *device;
    struct verify_matrix *matrix;
    char text[VERIFY_ERROR_TEXT];
};

/* A case counts once for each dtype among its operands; what an index or a length is stored
 * in says nothing of the op. */
static bool ask(void *user, const struct test_case *test)
{
    struct asker *a = user;
    bool involved[HW_DTYPE_END] = { false };
    struct problem problem;

    if (!problem_make(&problem, test, false))
        return true;
    const bool supported = !bench_supports(a->device, &problem);
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
    struct asker asker = { .device = device, .matrix = matrix };
    const struct verify_filter quick = { .quick = true };

    *matrix = (struct verify_matrix){ 0 };
    return each_case(&quick, false, ask, &asker, asker.text);
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
