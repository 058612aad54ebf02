/* SPDX-License-Identifier: MIT */
/* test_late.c - a plugin in worker mode that does not return: its process is stopped, the message
 * says why, and all else goes on. One that takes its time is left alone. */
#define _GNU_SOURCE
#include "hangs.h"

#include <hw/hw.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Seconds for a call, and for one that closes. */
#define LIMIT   "2"
#define CLOSING "3"

/* ---- contexts ---- */

static char log_text[4096];

static void keep_line(void *user, int32_t level, const char *text)
{
    (void)user, (void)level;
    snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%s\n", text);
}

static struct hw_context *open_context(void)
{
    struct hw_context *context;
    const struct hw_options options = { .size = sizeof options,
                                        .worker = "hangs",
                                        .worker_timeout = LIMIT,
                                        .probe_timeout = CLOSING,
                                        .plugin_path_only = HANGS ":" CPU,
                                        .fallback = "error",
                                        .cache_dir = "off",
                                        .log_fn = keep_line };
    log_text[0] = '\0';
    if (hw_open(&options, &context))
        fail_msg("%s", hw_message());
    return context;
}

static struct hw_queue *open_queue(struct hw_context *context, const char *name)
{
    struct hw_device *device;
    struct hw_queue *queue = NULL;
    if (hw_device_find(context, name, &device) || hw_queue_open(device, NULL, &queue))
        fail_msg("%s: %s", name, hw_message());
    return queue;
}

static struct hw_tensor tensor_of(struct hw_queue *queue)
{
    struct hw_tensor t;
    const int64_t extent = 4;
    assert_int_equal(hw_tensor_alloc(hw_queue_device(queue), 0, HW_F32, 1, &extent, &t),
                     HW_OK);
    return t;
}

static enum hw_status act(struct hw_queue *queue, float what)
{
    const float x[4] = { what };
    const struct hw_tensor t = tensor_of(queue);
    const enum hw_status status = hw_tensor_write(queue, &t, x, sizeof x);
    return status ? status : hw_silu(queue, &(struct hw_silu){ .x = t, .y = t });
}

static void check_computes(struct hw_queue *queue)
{
    float x[4] = { 0, 1, 2, 3 }, y[4] = { 0 };
    if (hw_silu(queue, &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 4),
                                          .y = hw_host_1d(y, HW_F32, 4) }) ||
        hw_queue_wait(queue))
        fail_msg("%s", hw_message());
    assert_true(y[2] > 1.76f && y[2] < 1.77f);
}

static pid_t process_of(struct hw_context *context)
{
    const size_t size = hw_explain(context, NULL, 0) + 1;
    char *text = malloc(size);
    static const char before[] = "\"state\":\"running\",\"process\":";
    assert_non_null(text);
    hw_explain(context, text, size);
    const char *at = strstr(text, before);
    const pid_t process = at ? (pid_t)atol(at + sizeof before - 1) : 0;
    free(text);
    assert_true(process > 0);
    return process;
}

/* ---- what hangs ---- */

static enum hw_status submit(struct hw_queue *queue)
{
    (void)queue;
    return HW_OK;
}

static enum hw_status await_event(struct hw_queue *queue)
{
    struct hw_event *event;
    assert_int_equal(hw_event_create(hw_queue_device(queue), 0, &event), HW_OK);
    assert_int_equal(hw_event_record(event, queue), HW_OK);
    return hw_event_sync(event);
}

static enum hw_status close_queue(struct hw_queue *queue)
{
    hw_queue_close(queue);
    return HW_LOST; /* the log says so */
}

/* `then`: what is called after the op; NULL: hw_close(). */
static const struct {
    enum hangs what;
    const char *call, *seconds;
    enum hw_status (*then)(struct hw_queue *queue);
} places[] = {
    { HANGS_OP, "silu", LIMIT " seconds (HW_WORKER_TIMEOUT)", submit },
    { HANGS_WAIT, "queue_wait", LIMIT " seconds (HW_WORKER_TIMEOUT)", hw_queue_wait },
    { HANGS_EVENT, "event_sync", LIMIT " seconds (HW_WORKER_TIMEOUT)", await_event },
    { HANGS_QUEUE, "queue_close", CLOSING " seconds (HW_PROBE_TIMEOUT)", close_queue },
    { HANGS_DEVICE, "device_close", CLOSING " seconds (HW_PROBE_TIMEOUT)", NULL },
    { HANGS_CLOSE, "close", CLOSING " seconds (HW_PROBE_TIMEOUT)", NULL },
};

static void check_words(const char *text, size_t place)
{
    char because[256];
    snprintf(because, sizeof because,
             "of plugin hangs (HW_WORKER) has ended: it was stopped, because %s had not "
             "returned after %s. Its last output: hangs: the last words",
             places[place].call, places[place].seconds);
    if (!strstr(text, because))
        fail_msg("\"%s\" is not in \"%s\"", because, text);
}

static void check_lost(struct hw_queue *queue, enum hw_status status, size_t place)
{
    if (places[place].what == HANGS_QUEUE) {
        check_words(log_text, place);
        return;
    }
    assert_int_equal(status, HW_LOST);
    check_words(hw_message(), place);
    assert_int_equal(hw_queue_wait(queue), HW_LOST);
    check_words(hw_message(), place);
}

static void check_place(size_t place)
{
    struct hw_context *context = open_context();
    struct hw_queue *beside = open_queue(context, "cpu:0"),
                    *queue = open_queue(context, "hangs:0");
    const pid_t process = process_of(context);
    enum hw_status status = act(queue, (float)places[place].what);
    if (!status && places[place].then)
        status = places[place].then(queue);
    if (places[place].then)
        check_lost(queue, status, place);
    check_computes(beside);
    hw_close(context);
    if (!places[place].then)
        check_words(log_text, place);
    assert_int_equal(kill(process, 0), -1);
}

static void test_hangs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        check_place(i);
}

/* ---- what takes its time ---- */

/* A chain of ops that takes longer than one may, and a queue that waits for it. */
static void test_chain(void **state)
{
    enum { OPS = 3000000 / MOMENT };
    struct hw_context *context = open_context();
    struct hw_queue *first = open_queue(context, "hangs:0"),
                    *second = open_queue(context, "hangs:0");
    struct hw_event *event;
    (void)state;
    for (int i = 0; i < OPS; i++)
        assert_int_equal(act(first, TAKES_LONG), HW_OK);
    assert_int_equal(hw_event_create(hw_queue_device(first), 0, &event), HW_OK);
    assert_int_equal(hw_event_record(event, first), HW_OK);
    assert_int_equal(hw_event_wait(event, second), HW_OK);
    if (hw_queue_wait(second) || hw_queue_wait(first))
        fail_msg("%s", hw_message());
    check_computes(first);
    hw_close(context);
}

static pid_t parent_of(pid_t process)
{
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *file = fopen(path, "r");
    assert_true(file && fscanf(file, "%*d %*s %*c %d", &parent) == 1);
    fclose(file);
    return (pid_t)parent;
}

/* Time in which no process of the worker runs does not count. */
static void test_frozen(void **state)
{
    struct hw_context *context = open_context();
    struct hw_queue *queue = open_queue(context, "hangs:0");
    (void)state;
    assert_int_equal(act(queue, 0), HW_OK); /* so that the next one is not waited for */
    const pid_t process = process_of(context), watcher = parent_of(process);
    assert_int_equal(act(queue, TAKES_LONGER), HW_OK);
    usleep(6 * MOMENT);
    assert_int_equal(kill(watcher, SIGSTOP), 0);
    assert_int_equal(kill(process, SIGSTOP), 0);
    usleep(3 * MOMENTS * MOMENT);
    assert_int_equal(kill(process, SIGCONT), 0);
    assert_int_equal(kill(watcher, SIGCONT), 0);
    if (hw_queue_wait(queue))
        fail_msg("%s", hw_message());
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_hangs),
                                        cmocka_unit_test(test_chain),
                                        cmocka_unit_test(test_frozen) };
    return cmocka_run_group_tests_name("worker late", tests, NULL, NULL);
}
