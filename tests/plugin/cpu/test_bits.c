/* SPDX-License-Identifier: MIT */
/* test_bits.c - results do not depend on threads: every row of every op gives the same bits again,
 * for any number of threads and any division of the work, in calls and in graphs, with plain and
 * packed weights, on the cases of the conformance suite. Tiny ops do not use threads at all.
 *
 * The division of work depends on timing, and small ops are not divided. The second plugin,
 * shuffled/threads.c, therefore divides all ops at random. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include <hw/hw.h>
#include <hw/report.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verify.h>

#include <cmocka.h>

enum {
    SIDES = 7,
    CASES = 1 << 14,  /* at most */
    LARGEST = 1 << 20 /* bytes of a case's operands */
};

/* ---- the devices that are compared ---- */

/* The first one computes the expected result. `plugin` is the variable with its file name. */
static const struct {
    const char *plugin, *threads;
} kinds[SIDES] = {
    { "CPU_PLUGIN", "1" },   { "CPU_PLUGIN", "2" },   { "CPU_PLUGIN", "3" },
    { "CPU_PLUGIN", "7" },   { "CPU_SHUFFLED", "2" }, { "CPU_SHUFFLED", "3" },
    { "CPU_SHUFFLED", "7" },
};

struct side {
    struct hw_context *context;
    struct hw_device *device;
    struct hw_queue *queue;
};
static struct side sides[SIDES];
static const char *row; /* that computes now */

static void need(enum hw_status status, const char *what)
{
    if (status)
        fail_msg("%s: %s", what, hw_message());
}

static void open_sides(const char *precision)
{
    for (int i = 0; i < SIDES; i++) {
        const struct hw_options options = { .size = sizeof options,
                                            .backends = "cpu",
                                            .fallback = "error",
                                            .plugin_path = getenv(kinds[i].plugin),
                                            .threads = kinds[i].threads,
                                            .precision = precision };
        assert_non_null(options.plugin_path);
        need(hw_open(&options, &sides[i].context), kinds[i].plugin);
        sides[i].device = hw_device_default(sides[i].context);
        assert_non_null(sides[i].device);
    }
}

static void close_sides(void)
{
    for (int i = 0; i < SIDES; i++)
        hw_close(sides[i].context);
}

/* Queues on which one row computes its op. */
static void open_queues(uint32_t op, const char *name)
{
    row = name;
    char kernel[128];
    snprintf(kernel, sizeof kernel, "%s=%s", hw_op_name(op), name);
    const struct hw_queue_options options = { .size = sizeof options, .kernel = kernel };
    for (int i = 0; i < SIDES; i++)
        need(hw_queue_open(sides[i].device, &options, &sides[i].queue), kernel);
}

static void close_queues(void)
{
    for (int i = 0; i < SIDES; i++)
        hw_queue_close(sides[i].queue);
}

/* ---- a case ---- */

union args {
#define X(NAME, name) struct hw_##name name;
    HW_OPS(X)
#undef X
};

/* The same call twice, each with its own memory, so that a graph can compute both at once. */
struct work {
    const char *text;
    uint32_t op;
    struct verify_host_call *call[2];
    union args args[2];
    unsigned char *before, *expected; /* contents of the memory */
    uint64_t bytes;
};

static void free_work(struct work *work)
{
    verify_host_call_free(work->call[0]);
    verify_host_call_free(work->call[1]);
    free(work->before);
    free(work->expected);
}

static void make_call(struct work *work, int i)
{
    char error[VERIFY_ERROR_TEXT];
    if (verify_host_call(work->text, true, &work->call[i], error))
        fail_msg("%s: %s", work->text, error);
    work->op = work->call[i]->op;
    memcpy(&work->args[i], work->call[i]->args, hw_op_size(work->op));
}

/* Makes the first call only. Cases that the row takes get their second one later. */
static void make_work(struct work *work, const char *text)
{
    *work = (struct work){ .text = text };
    make_call(work, 0);
    work->bytes = work->call[0]->bytes;
    work->before = malloc(work->bytes);
    work->expected = malloc(work->bytes);
    assert_true(work->before && work->expected);
    memcpy(work->before, work->call[0]->memory, work->bytes);
}

static void restore(const struct work *work)
{
    for (int i = 0; i < 2 && work->call[i]; i++)
        memcpy(work->call[i]->memory, work->before, work->bytes);
}

static enum hw_status submit(const struct side *side, const struct work *work, int i)
{
    return hw_submit(side->queue, work->op, &work->args[i], hw_op_size(work->op));
}

static void compare(const struct side *side, const struct work *work, int i,
                    const char *how)
{
    const unsigned char *got = work->call[i]->memory;
    if (!memcmp(got, work->expected, work->bytes))
        return;
    uint64_t byte = 0;
    while (got[byte] == work->expected[byte])
        byte++;
    fail_msg("%s, %s, %s threads of %s, %s: byte %llu of the operands is %x, not %x", row,
             work->text, kinds[side - sides].threads, kinds[side - sides].plugin, how,
             (unsigned long long)byte, got[byte], work->expected[byte]);
}

static void check_call(const struct side *side, const struct work *work)
{
    restore(work);
    need(submit(side, work, 0), work->text);
    compare(side, work, 0, "a call");
}

static void check_graph(const struct side *side, const struct work *work)
{
    struct hw_graph *graph = NULL;
    need(hw_queue_record(side->queue), work->text);
    need(submit(side, work, 0), work->text);
    need(submit(side, work, 1), work->text);
    need(hw_queue_end(side->queue, &graph), work->text);
    for (int launch = 0; launch < 2; launch++) {
        restore(work);
        need(hw_graph_launch(graph, side->queue), work->text);
        for (int i = 0; i < 2; i++)
            compare(side, work, i, "a graph");
    }
    hw_graph_free(graph);
}

/* Computes the expected result on the first side. False if the row does not take the case. */
static bool expect(const struct work *work)
{
    restore(work);
    const enum hw_status status = submit(&sides[0], work, 0);
    if (status == HW_UNSUPPORTED)
        return false;
    need(status, work->text);
    memcpy(work->expected, work->call[0]->memory, work->bytes);
    return true;
}

static void check_side(const struct side *side, const struct work *work)
{
    check_call(side, work);
    check_graph(side, work);
}

static bool check_plain(struct work *work)
{
    if (!expect(work))
        return false;
    make_call(work, 1);
    for (int i = 0; i < SIDES; i++)
        check_side(&sides[i], work);
    return true;
}

/* False if the row does not take packed weights. The first side decides that for all. */
static bool pack(const struct side *side, struct work *work)
{
    struct hw_tensor packed, *b = &work->args[0].matmul.b;
    restore(work);
    const enum hw_status status = hw_tensor_pack(side->queue, b, &packed);
    if (status == HW_UNSUPPORTED && side == sides)
        return false;
    need(status, work->text);
    work->args[0].matmul.b = work->args[1].matmul.b = packed;
    return true;
}

static void unpack(struct work *work)
{
    hw_buffer_free(work->args[0].matmul.b.buffer);
    for (int i = 0; i < 2; i++)
        memcpy(&work->args[i], work->call[i]->args, hw_op_size(work->op));
}

static bool check_packed(struct work *work)
{
    bool taken = work->op == HW_OP_MATMUL;
    if (taken && !work->call[1])
        make_call(work, 1);
    for (int i = 0; i < SIDES && taken; i++) {
        if (!pack(&sides[i], work))
            return false;
        if (i == 0)
            taken = expect(work);
        if (taken)
            check_side(&sides[i], work);
        unpack(work);
    }
    return taken;
}

/* ---- all rows ---- */

static char *cases[CASES];
static int case_count;

static bool keep_case(void *user, const char *test, bool perf)
{
    (void)user;
    assert_true(case_count < CASES);
    if (!perf)
        cases[case_count++] = strdup(test);
    return true;
}

/* In an order unrelated to the registry's. */
static void shuffle_cases(void)
{
    uint32_t seed = 1;
    for (int i = case_count - 1; i > 0; i--) {
        seed = seed * 1664525u + 1013904223u;
        const int other = (int)((seed >> 8) % (unsigned)(i + 1));
        char *const text = cases[i];
        cases[i] = cases[other];
        cases[other] = text;
    }
}

static int list_cases(void **state)
{
    const struct verify_filter filter = { .quick = getenv("HW_TEST_QUICK") != NULL };
    char error[VERIFY_ERROR_TEXT];
    (void)state;
    if (verify_list(&filter, keep_case, NULL, error))
        return -1;
    shuffle_cases();
    return 0;
}

static int free_cases(void **state)
{
    (void)state;
    while (case_count > 0)
        free(cases[--case_count]);
    return 0;
}

static bool is_of(const char *text, uint32_t op)
{
    const size_t n = strlen(hw_op_name(op));
    return !strncmp(text, hw_op_name(op), n) && text[n] == '(';
}

/* How many cases a row has taken. */
struct taken {
    int plain, packed;
};

static void check_case(const char *text, struct taken *taken)
{
    struct work work;
    make_work(&work, text);
    if (work.bytes <= LARGEST) {
        taken->plain += check_plain(&work);
        taken->packed += check_packed(&work);
    }
    free_work(&work);
}

/* Rows for packed weights. */
static bool takes_packed(const char *name)
{
    return !strncmp(name, "gemm", 4) || !strncmp(name, "blocks", 6);
}

static bool is_enough(const char *name, const struct taken *taken)
{
    const int enough = getenv("HW_TEST_QUICK") ? 3 : 12;
    return taken->plain + taken->packed >= enough && (taken->packed || !takes_packed(name));
}

/* Checks enough of the cases that the row takes. */
static void check_row(uint32_t op, const char *name)
{
    struct taken taken = { 0, 0 };
    open_queues(op, name);
    for (int i = 0; i < case_count && !is_enough(name, &taken); i++)
        if (is_of(cases[i], op))
            check_case(cases[i], &taken);
    close_queues();
    if (!taken.plain && !taken.packed)
        fail_msg("%s takes no case of %s", name, hw_op_name(op));
    if (!taken.packed && takes_packed(name))
        fail_msg("%s takes no packed weights", name);
}

/* With a precision other than fp32, only the rows that require it. */
static void check_rows(const char *precision)
{
    const bool exact = !strcmp(precision, "fp32");
    struct hw_kernel_info info = { .size = sizeof info };
    open_sides(precision);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t i = 0; !hw_device_kernel(sides[0].device, op, i, &info); i++)
            if (info.eligible && (exact || strstr(info.needs, "HW_PRECISION")))
                check_row(op, info.name);
    close_sides();
}

static void exact_rows(void **state)
{
    (void)state;
    check_rows("fp32");
}

static void rows_of_8_bits(void **state)
{
    (void)state;
    check_rows("int8");
}

/* ---- ops of hardly any work ---- */

static int count_tasks(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    if (!tasks)
        skip();
    while (readdir(tasks))
        count++;
    closedir(tasks);
    return count;
}

static void call_all(const struct side *side, struct hw_buffer *buffer)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (int i = 0; i < VERIFY_CALLS; i++) {
            union args args;
            uint64_t bytes;
            assert_true(verify_call(op, i, buffer, &args, &bytes));
            need(hw_submit(side->queue, op, &args, hw_op_size(op)), hw_op_name(op));
        }
}

/* The first op that is divided starts the threads. */
static void small_ops_stay_on_the_caller(void **state)
{
    enum { SEVEN = 3 };
    struct side *side = &sides[SEVEN];
    struct hw_buffer *buffer;
    struct hw_graph *graph;
    (void)state;
    open_sides("fp32");
    const int before = count_tasks();
    need(hw_queue_open(side->device, NULL, &side->queue), "queue");
    need(hw_buffer_alloc(side->device, LARGEST, HW_BUFFER_ZEROED, &buffer), "buffer");
    call_all(side, buffer);
    need(hw_queue_record(side->queue), "record");
    call_all(side, buffer);
    need(hw_queue_end(side->queue, &graph), "graph");
    need(hw_graph_launch(graph, side->queue), "graph");
    assert_int_equal(count_tasks(), before);

    const struct hw_tensor x = { .buffer = buffer,
                                 .dtype = HW_F32,
                                 .rank = 1,
                                 .extent = { LARGEST / 4 },
                                 .stride = { 4 } };
    need(hw_silu(side->queue, &(struct hw_silu){ .x = x, .y = x }), "silu");
    assert_true(count_tasks() >= before + 6); /* ThreadSanitizer has one of its own */
    hw_graph_free(graph);
    hw_buffer_free(buffer);
    close_sides();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ops_stay_on_the_caller),
        cmocka_unit_test(exact_rows),
        cmocka_unit_test(rows_of_8_bits),
    };
    return cmocka_run_group_tests(tests, list_cases, free_cases);
}
