/* SPDX-License-Identifier: MIT */
/* test_late.c - a plugin in worker mode that does not return: its process is stopped, the message
 * says why, and everything else continues. A slow plugin is not stopped. */
#define _GNU_SOURCE
#include "hangs.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Limits in seconds for a call, and for a call that closes something. */
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
                                        .worker = "hangs=" LIMIT,
                                        .probe_timeout = CLOSING,
                                        .plugin_path = HANGS ":" CPU ":!",
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

/* ---- functions that hang ---- */

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

/* `then`: called after the op; NULL: hw_close(). */
static const struct {
    enum hangs what;
    const char *call, *seconds;
    enum hw_status (*then)(struct hw_queue *queue);
} places[] = {
    { HANGS_OP, "silu", LIMIT " seconds (HW_WORKER)", submit },
    { HANGS_WAIT, "queue_wait", LIMIT " seconds (HW_WORKER)", hw_queue_wait },
    { HANGS_EVENT, "event_sync", LIMIT " seconds (HW_WORKER)", await_event },
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

/* ---- slow functions ---- */

/* A chain of ops that takes longer than a single op may, and a queue that waits for it. */
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

/* A queue with a silu that the library has not waited for, and its processes. */
struct fixture {
    struct hw_context *context;
    struct hw_queue *queue;
    pid_t process, watcher;
};

static struct fixture make(void)
{
    struct fixture f = { .context = open_context() };
    f.queue = open_queue(f.context, "hangs:0");
    f.process = process_of(f.context);
    f.watcher = parent_of(f.process);
    assert_int_equal(act(f.queue, 0), HW_OK);
    return f;
}

static void *thaw(void *of)
{
    const struct fixture *f = of;
    usleep(3 * MOMENTS * MOMENT);
    kill(f->process, SIGCONT);
    kill(f->watcher, SIGCONT);
    return NULL;
}

/* Time in which the worker's processes are stopped does not count, even if the library waits. */
static void test_frozen(void **state)
{
    struct fixture f = make();
    pthread_t thread;
    (void)state;
    assert_int_equal(act(f.queue, TAKES_LONGER), HW_OK);
    usleep(6 * MOMENT);
    assert_int_equal(kill(f.watcher, SIGSTOP), 0);
    assert_int_equal(kill(f.process, SIGSTOP), 0);
    assert_int_equal(pthread_create(&thread, NULL, thaw, &f), 0);
    const enum hw_status status = hw_queue_wait(f.queue);
    pthread_join(thread, NULL);
    if (status)
        fail_msg("%s", hw_message());
    hw_close(f.context);
}

/* ---- a stopped watcher ---- */

static void check_contains(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, text);
}

/* Closing the context ends the processes. */
static void check_closes(const struct fixture *f)
{
    hw_close(f->context);
    assert_int_equal(kill(f->process, 0), -1);
    assert_int_equal(kill(f->watcher, 0), -1);
}

static void test_unwatched(void **state)
{
    static const char why[] = "it was stopped, because silu had not returned after " LIMIT
                              " seconds (HW_WORKER), while the process that watches "
                              "over it was stopped itself";
    struct fixture waits = make(), closes = make();
    (void)state;
    assert_int_equal(kill(waits.watcher, SIGSTOP), 0);
    assert_int_equal(kill(closes.watcher, SIGSTOP), 0);
    assert_int_equal(act(waits.queue, HANGS_OP), HW_OK);
    assert_int_equal(act(closes.queue, HANGS_OP), HW_OK);
    assert_int_equal(hw_queue_wait(waits.queue), HW_LOST);
    check_contains(hw_message(), why);
    log_text[0] = '\0';
    hw_queue_close(closes.queue);
    check_contains(log_text, why);
    check_closes(&waits);
    check_closes(&closes);
}

/* The end of the plugin's process is reported at once. */
static void test_unwatched_end(void **state)
{
    const struct fixture f = make();
    (void)state;
    assert_int_equal(kill(f.watcher, SIGSTOP), 0);
    assert_int_equal(act(f.queue, HANGS_OP), HW_OK);
    assert_int_equal(kill(f.process, SIGKILL), 0);
    assert_int_equal(hw_queue_wait(f.queue), HW_LOST);
    check_contains(hw_message(), "it was killed (signal 9)");
    check_closes(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_hangs),
                                        cmocka_unit_test(test_chain),
                                        cmocka_unit_test(test_frozen),
                                        cmocka_unit_test(test_unwatched),
                                        cmocka_unit_test(test_unwatched_end) };
    return cmocka_run_group_tests_name("proxy late", tests, NULL, NULL);
}
