/* SPDX-License-Identifier: MIT */
/* bench.c - see bench.h. */
#include "bench.h"

#include "storage.h"

#include <hw/report.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

static bool needs(const struct problem *p, bool host)
{
    for (int i = 0; i < p->count; i++)
        if (p->operand[i].dtype != HW_NONE && p->layout[i].host == host)
            return true;
    return false;
}

enum hw_status bench_open(struct bench *b, const struct problem *p, struct hw_queue *queue)
{
    *b = (struct bench){ .problem = p, .queue = queue };
    b->allocation = malloc(p->bytes + ALIGNMENT);
    if (!b->allocation)
        return HW_NO_MEMORY;
    b->host = b->allocation + (ALIGNMENT - (uintptr_t)b->allocation % ALIGNMENT);
    if (!needs(p, false))
        return HW_OK;
    const enum hw_status status = hw_buffer_alloc(hw_queue_device(queue), p->bytes, 0,
                                                  &b->buffer);
    if (status)
        bench_close(b);
    return status;
}

void bench_close(struct bench *b)
{
    hw_buffer_free(b->buffer);
    hw_buffer_free(b->constants);
    free(b->allocation);
    *b = (struct bench){ 0 };
}

/* A whole arena as plain bytes. */
static struct hw_tensor bytes_of(struct hw_buffer *buffer, unsigned char *host,
                                 uint64_t bytes)
{
    return (struct hw_tensor){ .buffer = buffer,
                               .data = buffer ? NULL : host,
                               .dtype = HW_I8,
                               .rank = 1,
                               .extent = { (int64_t)bytes },
                               .stride = { 1 } };
}

static enum hw_status transfer(struct bench *b, struct hw_tensor dst, struct hw_tensor src)
{
    const enum hw_status status = hw_copy(b->queue,
                                          &(struct hw_copy){ .src = src, .dst = dst });
    return status ? status : hw_queue_wait(b->queue);
}

enum hw_status bench_load(struct bench *b, int poison)
{
    const struct problem *p = b->problem;

    memcpy(b->host, p->image, p->bytes);
    for (int i = 0; i < p->count; i++) {
        const struct hw_tensor tensor = problem_tensor(p, i);
        if (tensor.dtype != HW_NONE && p->operand[i].role == HW_ROLE_OUT &&
            p->layout[i].same_as < 0 && p->operand[i].count)
            storage_set(&tensor, b->host + tensor.offset, poison);
    }
    if (!b->buffer)
        return HW_OK;
    return transfer(b, bytes_of(b->buffer, NULL, p->bytes),
                    bytes_of(NULL, b->host, p->bytes));
}

enum hw_status bench_load_as(struct bench *b, const struct bench *other)
{
    const uint64_t count = b->problem->bytes;

    if (!b->buffer || needs(b->problem, true))
        return HW_UNSUPPORTED;
    return transfer(b, bytes_of(b->buffer, NULL, count),
                    bytes_of(other->buffer, NULL, count));
}

enum hw_status bench_part_constants(struct bench *b)
{
    const uint64_t count = b->problem->bytes;
    if (!b->buffer)
        return HW_OK;
    const enum hw_status status = hw_buffer_alloc(hw_queue_device(b->queue), count,
                                                  HW_BUFFER_READ_ONLY, &b->constants);
    return status ? status
                  : transfer(b, bytes_of(b->constants, NULL, count),
                             bytes_of(b->buffer, NULL, count));
}

void bench_drop_host(struct bench *b)
{
    if (needs(b->problem, true))
        return;
    free(b->allocation);
    b->allocation = b->host = NULL;
}

enum hw_status bench_save(struct bench *b, unsigned char *bytes)
{
    const uint64_t count = b->problem->bytes;

    if (!b->buffer) { /* the device has no arena, so nothing changed there */
        memcpy(bytes, b->problem->image, count);
        return HW_OK;
    }
    return transfer(b, bytes_of(NULL, bytes, count), bytes_of(b->buffer, NULL, count));
}

/* Whether an operand is only read, and no output shares its memory. */
static bool is_constant(const struct problem *p, int operand)
{
    for (int i = 0; i < p->count; i++)
        if (p->layout[i].same_as == operand)
            return false;
    return !role_is_output(p->operand[operand].role) && p->layout[operand].same_as < 0;
}

union op_args bench_args(const struct bench *b)
{
    const struct problem *p = b->problem;
    union op_args args = p->args;

    for (int i = 0; i < p->count; i++) {
        struct hw_tensor tensor = problem_tensor(p, i);
        if (tensor.dtype == HW_NONE)
            continue;
        if (p->layout[i].host)
            tensor.data = b->host;
        else
            tensor.buffer = b->constants && is_constant(p, i) ? b->constants : b->buffer;
        memcpy((char *)&args + p->field[i], &tensor, sizeof tensor);
    }
    return args;
}

enum hw_status bench_submit(struct bench *b)
{
    const struct problem *p = b->problem;
    const union op_args args = bench_args(b);

    return hw_submit(b->queue, p->op, &args, op_args_size(p->op));
}

enum hw_status bench_supports(struct hw_device *device, const struct problem *p)
{
    union op_args args = p->args;

    for (int i = 0; i < p->count; i++) {
        struct hw_tensor tensor = problem_tensor(p, i);
        tensor.data = p->image; /* any address: nothing is computed */
        if (tensor.dtype != HW_NONE)
            memcpy((char *)&args + p->field[i], &tensor, sizeof tensor);
    }
    return hw_device_supports(device, p->op, &args, op_args_size(p->op));
}

uint64_t fallbacks_of(struct hw_queue *queue, uint32_t op)
{
    struct hw_call_stats stats = { .size = sizeof stats };
    return hw_queue_calls(queue, op, &stats) ? 0 : stats.fallbacks;
}

/* ---- kernel rows --------------------------------------------------------------------------- */

static enum hw_status with_row(struct hw_device *device, const char *force, uint32_t flags,
                               bool (*fn)(void *user, struct hw_queue *queue,
                                          const char *row),
                               void *user, const char *row, bool *go_on)
{
    const struct hw_queue_options options = { .size = sizeof options,
                                              .flags = flags,
                                              .kernel = force };
    struct hw_queue *queue = NULL;
    const enum hw_status status = hw_queue_open(device, &options, &queue);

    if (status)
        return status;
    *go_on = fn(user, queue, row);
    hw_queue_close(queue);
    return HW_OK;
}

enum hw_status own_row(struct hw_device *device,
                       bool (*fn)(void *user, struct hw_queue *queue, const char *row),
                       void *user, bool *go_on)
{
    return with_row(device, NULL, 0, fn, user, "", go_on);
}

enum hw_status each_row(struct hw_device *device, uint32_t op, const char *only,
                        uint32_t flags,
                        bool (*fn)(void *user, struct hw_queue *queue, const char *row),
                        void *user, bool *go_on)
{
    struct hw_kernel_info info = { .size = sizeof info };
    enum hw_status status = HW_OK, listed = HW_OK;
    uint32_t index = 0;

    *go_on = true;
    for (; !status && *go_on && !(listed = hw_device_kernel(device, op, index, &info));
         index++) {
        char force[128];
        if (!info.eligible || (only && strcmp(only, info.name)))
            continue;
        snprintf(force, sizeof force, "%s=%s", hw_op_name(op), info.name);
        status = with_row(device, force, flags, fn, user, info.name, go_on);
    }
    if (listed && listed != HW_END && listed != HW_UNSUPPORTED)
        return listed; /* an error, not the end of the list */
    if (index == 0 && !only)
        status = with_row(device, NULL, flags, fn, user, "", go_on);
    return status;
}

/* ---- filters ------------------------------------------------------------------------------- */

struct sieve {
    const struct verify_filter *filter;
    bool stopped;
    uint64_t kept;
    bool (*fn)(void *user, const struct test_case *test);
    void *user;
};

static bool sift(void *user, const struct test_case *test)
{
    struct sieve *s = user;
    const struct verify_filter *f = s->filter;

    if ((f->op && strcmp(f->op, hw_op_name(test->op))) ||
        (f->pattern && !case_matches(test->text, f->pattern)))
        return true;
    s->kept++;
    s->stopped = !s->fn(s->user, test);
    return !s->stopped;
}

static uint32_t levels_of(const struct verify_filter *filter, bool perf)
{
    const uint32_t quick = 1u << CASE_QUICK | 1u << CASE_CALL | 1u << CASE_ADMISSION;
    return perf                ? 1u << CASE_PERF
           : filter->admission ? 1u << CASE_ADMISSION
           : filter->quick     ? quick
                               : quick | 1u << CASE_FULL;
}

static bool is_op(const char *name)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (!strcmp(name, hw_op_name(op)))
            return true;
    return false;
}

bool is_one_case(const struct verify_filter *filter)
{
    const char *pattern = filter->pattern;
    return pattern && !strpbrk(pattern, "*?") && strchr(pattern, '(') &&
           strchr(pattern, ')');
}

enum hw_status each_case(const struct verify_filter *filter, bool perf,
                         bool (*fn)(void *user, const struct test_case *test), void *user,
                         char error[VERIFY_ERROR_TEXT])
{
    struct sieve sieve = { .filter = filter, .fn = fn, .user = user };
    struct test_case test;

    error[0] = 0;
    if (filter->op && !is_op(filter->op)) {
        snprintf(error, VERIFY_ERROR_TEXT, "no op is called '%s'; --list has all cases",
                 filter->op);
        return HW_INVALID;
    }
    if (is_one_case(filter)) {
        struct problem problem;
        if (!case_parse(filter->pattern, &test, error, VERIFY_ERROR_TEXT))
            return HW_INVALID;
        if (!problem_make(&problem, &test, DETAIL_SHAPES)) {
            snprintf(error, VERIFY_ERROR_TEXT, "%s", problem.error);
            return HW_INVALID;
        }
        problem_clear(&problem);
        fn(user, &test);
        return HW_OK;
    }
    case_each(levels_of(filter, perf), sift, &sieve);
    if (sieve.kept)
        return HW_OK;
    snprintf(error, VERIFY_ERROR_TEXT, "no case%s%s%s%s%s", perf ? " to measure" : "",
             filter->op ? " of " : "", filter->op ? filter->op : "",
             filter->pattern ? " matches " : "", filter->pattern ? filter->pattern : "");
    return HW_INVALID;
}
