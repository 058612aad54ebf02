/* SPDX-License-Identifier: MIT */
/* test_ends.c - worker mode when memory, file sizes or time run out: the application continues and
 * gets the reason. */
#define _GNU_SOURCE
#include "rogue.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- simulating a system that lacks memory for a moment ---- */

static int shortage; /* the error number; 0: none */

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    static ssize_t (*next)(int, const struct msghdr *, int);
    *(void **)&next = dlsym(RTLD_NEXT, "sendmsg");
    errno = shortage;
    return shortage ? -1 : next(socket, message, flags);
}

/* ---- contexts ---- */

static char last_line[256];

static void keep_line(void *user, int32_t level, const char *text)
{
    (void)user, (void)level;
    snprintf(last_line, sizeof last_line, "%s", text);
}

static struct hw_context *open_with(const char *path)
{
    struct hw_context *context;
    char alone[4096];
    snprintf(alone, sizeof alone, "%s:!", path);
    const struct hw_options options = { .size = sizeof options,
                                        .worker = "*",
                                        .plugin_path = alone,
                                        .cache_dir = "off",
                                        .log = "error",
                                        .log_fn = keep_line,
                                        .probe_timeout = "5",
                                        .threads = "1",
                                        .flags = HW_OPEN_ANYWAY };
    if (hw_open(&options, &context))
        fail_msg("%s", hw_message());
    return context;
}

static struct hw_device *first_device(struct hw_context *context)
{
    return hw_device_at(context, 0);
}

static enum hw_status act(struct hw_queue *queue, float what)
{
    float x[4] = { what };
    struct hw_tensor t = { .data = x, .dtype = HW_F32, .rank = 1 };
    t.extent[0] = 4;
    t.stride[0] = sizeof *x;
    const enum hw_status status = hw_silu(queue, &(struct hw_silu){ .x = t, .y = t });
    return status ? status : hw_queue_wait(queue);
}

static json_t *report_of(struct hw_context *context)
{
    const size_t size = hw_explain(context, NULL, 0) + 1;
    char *text = malloc(size);
    assert_non_null(text);
    hw_explain(context, text, size);
    json_t *report = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(report);
    return report;
}

static json_t *first_candidate(const json_t *report)
{
    return json_array_get(json_object_get(report, "candidates"), 0);
}

static pid_t process_of(struct hw_context *context)
{
    json_t *report = report_of(context);
    const pid_t process = (pid_t)json_integer_value(
        json_object_get(json_object_get(first_candidate(report), "worker"), "process"));
    json_decref(report);
    return process;
}

/* Fails unless the plugin stopped for lack of memory, with that message. */
static void check_no_memory(int error)
{
    struct hw_context *context = open_with(CPU);
    json_t *report = report_of(context);
    const json_t *entry = first_candidate(report);
    const char *message = json_string_value(json_object_get(entry, "message"));
    assert_string_equal(json_string_value(json_object_get(entry, "reason")), "no-memory");
    if (!strstr(message, strerror(error)))
        fail_msg("%s", message);
    json_decref(report);
    hw_close(context);
}

static struct hw_queue *open_queue(struct hw_context *context)
{
    struct hw_queue *queue;
    if (hw_queue_open(first_device(context), NULL, &queue))
        fail_msg("%s", hw_message());
    return queue;
}

/* ---- the tests ---- */

/* Sharing a buffer fails now and works later: the device is not lost. */
static void test_shortage(void **state)
{
    struct hw_context *context = open_with(CPU);
    struct hw_device *device = first_device(context);
    struct hw_buffer *buffer;
    (void)state;
    open_queue(context);
    shortage = ENOBUFS;
    const enum hw_status status = hw_buffer_alloc(device, 64 << 20, HW_BUFFER_HOST_VISIBLE,
                                                  &buffer);
    shortage = 0;
    assert_int_equal(status, HW_NO_MEMORY);
    assert_non_null(strstr(hw_message(), strerror(ENOBUFS)));
    assert_int_equal(hw_buffer_alloc(device, 64 << 20, HW_BUFFER_HOST_VISIBLE, &buffer),
                     HW_OK);
    hw_close(context);
    shortage = ENOMEM; /* and no process is started */
    check_no_memory(ENOMEM);
    shortage = 0;
}

/* The size of files is limited, but no signal ends the application. */
static void test_file_size(void **state)
{
    struct rlimit before, less;
    struct hw_context *context = open_with(CPU);
    struct hw_buffer *buffer;
    (void)state;
    open_queue(context);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    less = before;
    less.rlim_cur = 1 << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    assert_int_equal(
        hw_buffer_alloc(first_device(context), 64 << 20, HW_BUFFER_HOST_VISIBLE, &buffer),
        HW_NO_MEMORY);
    assert_non_null(strstr(hw_message(), strerror(EFBIG)));
    check_no_memory(EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    hw_close(context);
}

/* The message names the worker's end, however much the worker has logged. */
static void test_babble(void **state)
{
    struct hw_context *context = open_with(ROGUE);
    struct hw_queue *queue = open_queue(context);
    (void)state;
    assert_int_equal(act(queue, ACT_BABBLE), HW_LOST);
    if (!strstr(hw_message(), "segmentation fault (signal 11)"))
        fail_msg("%s", hw_message());
    hw_close(context);
}

/* The worker process continues, and its plugin's queue is closed like any other. */
static void test_closes_lost_queue(void **state)
{
    struct hw_context *context = open_with(ROGUE);
    struct hw_queue *queue = open_queue(context);
    (void)state;
    assert_int_equal(act(queue, ACT_LOSE), HW_LOST);
    assert_non_null(strstr(hw_message(), "rogue has lost its device"));
    hw_queue_close(queue);
    hw_close(context);
    assert_non_null(strstr(last_line, "rogue: a queue was closed"));
}

static volatile sig_atomic_t hung;
static pid_t process;

static void kill_hung(int number)
{
    (void)number;
    hung = 1;
    kill(process, SIGKILL);
}

static void test_hangs_at_its_end(void **state)
{
    struct hw_context *context = open_with(ROGUE);
    struct hw_queue *queue = open_queue(context);
    (void)state;
    assert_int_equal(act(queue, ACT_HANG_LATER), HW_OK);
    process = process_of(context);
    signal(SIGALRM, kill_hung);
    alarm(60);
    hw_close(context);
    alarm(0);
    signal(SIGALRM, SIG_DFL);
    assert_false(hung);
    assert_true(kill(process, 0));
}

static int sacrifice(pid_t of)
{
    char path[64];
    int value = -2000;
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)of);
    FILE *file = fopen(path, "r");
    assert_true(file && fscanf(file, "%d", &value) == 1);
    fclose(file);
    return value;
}

/* If memory runs out, the kernel must not kill the worker before the application. */
static void test_sacrifice(void **state)
{
    struct hw_context *context = open_with(CPU);
    (void)state;
    open_queue(context);
    assert_int_equal(sacrifice(process_of(context)), sacrifice(getpid()));
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortage),         cmocka_unit_test(test_file_size),
        cmocka_unit_test(test_babble),           cmocka_unit_test(test_closes_lost_queue),
        cmocka_unit_test(test_hangs_at_its_end), cmocka_unit_test(test_sacrifice)
    };
    return cmocka_run_group_tests_name("proxy ends", tests, NULL, NULL);
}
