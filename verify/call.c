/* SPDX-License-Identifier: MIT */
/* call.c - cases as calls: the cases that measure the cost of a call, and any case on host
 * memory. */
#include "problem.h"
#include "verify.h"

#include <hw/report.h>

#include <stdio.h>
#include <stdlib.h>
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

/* ---- on host memory ---- */

enum { ALIGNMENT = 256 };

struct host_call {
    struct verify_host_call call;
    union op_args args;
};

static void place(struct host_call *made, const struct problem *p)
{
    memcpy(&made->args, &p->args, sizeof made->args);
    for (int i = 0; i < p->count; i++) {
        struct hw_tensor tensor = problem_tensor(p, i);
        tensor.data = made->call.memory;
        if (tensor.dtype != HW_NONE)
            memcpy((char *)&made->args + p->field[i], &tensor, sizeof tensor);
    }
}

enum hw_status verify_host_call(const char *test, bool data, struct verify_host_call **call,
                                char error[VERIFY_ERROR_TEXT])
{
    struct test_case parsed;
    struct problem p;
    *call = NULL;
    error[0] = 0;
    if (!case_parse(test, &parsed, error, VERIFY_ERROR_TEXT))
        return HW_INVALID;
    if (!problem_make(&p, &parsed, data ? DETAIL_DATA : DETAIL_SHAPES)) {
        snprintf(error, VERIFY_ERROR_TEXT, "%s", p.error);
        return p.no_memory ? HW_NO_MEMORY : HW_INVALID;
    }
    const uint64_t bytes = data ? (p.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
                                : ALIGNMENT;
    struct host_call *made = calloc(1, sizeof *made);
    void *memory = made ? aligned_alloc(ALIGNMENT, (size_t)bytes) : NULL;
    if (memory) {
        made->call = (struct verify_host_call){ p.op, &made->args, memory,
                                                data ? p.bytes : 0 };
        if (data)
            memcpy(memory, p.image, p.bytes);
        place(made, &p);
        *call = &made->call;
    } else {
        snprintf(error, VERIFY_ERROR_TEXT, "out of memory for %s", test);
        free(made);
    }
    problem_clear(&p);
    return memory ? HW_OK : HW_NO_MEMORY;
}

void verify_host_call_free(struct verify_host_call *call)
{
    if (call)
        free(call->memory);
    free(call);
}
