/* SPDX-License-Identifier: MIT */
/* call.c - the cases that show what a call costs. */
#include "problem.h"
#include "verify.h"

#include <string.h>

struct search {
    uint32_t op;
    int left; /* cases to skip */
    struct test_case found;
};

static bool find(void *user, const struct test_case *test)
{
    struct search *s = user;
    if (test->op != s->op || s->left-- > 0)
        return true;
    s->found = *test;
    return false;
}

bool verify_call(uint32_t op, int index, struct hw_buffer *buffer, void *args,
                 uint64_t *bytes)
{
    struct search s = { .op = op, .left = index, .found = { .op = HW_OP_COUNT } };
    struct problem p;

    case_each(1u << CASE_CALL, find, &s);
    if (s.found.op != op || !problem_make(&p, &s.found, DETAIL_SHAPES))
        return false;
    memcpy(args, &p.args, hw_op_size(op));
    for (int i = 0; i < p.count; i++) {
        struct hw_tensor tensor = problem_tensor(&p, i);
        tensor.buffer = buffer;
        if (tensor.dtype != HW_NONE)
            memcpy((char *)args + p.field[i], &tensor, sizeof tensor);
    }
    *bytes = p.bytes;
    problem_clear(&p);
    return true;
}
