/* SPDX-License-Identifier: MIT */
/* apart.c - the steps of hours.c with plugins in worker processes, and with hw_rescan(). A worker
 * that crashes, is killed or hangs costs only its device; everything else in the context
 * continues. */
#define _GNU_SOURCE
#include "../proxy/rogue.h"
#include "hours.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- workers ---- */

/* silu of a number, which may be one of enum act. */
static enum hw_status act(struct hw_queue *queue, float number)
{
    float x[4] = { number }, y[4];
    const enum hw_status status = hw_silu(
        queue,
        &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 4), .y = hw_host_1d(y, HW_F32, 4) });
    return status ? status : hw_queue_wait(queue);
}

/* The process of the context's only worker. */
static pid_t worker_of(struct hw_context *context)
{
    static char text[1 << 17];
    const char start[] = "\"worker\":{\"state\":\"running\",\"process\":";
    if (hw_explain(context, text, sizeof text) >= sizeof text)
        die("the report is too long");
    const char *at = strstr(text, start);
    if (!at)
        die("no worker runs");
    return (pid_t)atol(at + sizeof start - 1);
}

static void must_be_lost(struct stay *stay)
{
    must_fail(silu_right(stay->apart), HW_LOST, "a device whose worker has ended");
    if (!strstr(hw_message(), "the worker process"))
        die("a lost worker: %s", hw_message());
    for (int i = 0; i < QUEUES; i++)
        must(silu_right(stay->queues[i]), "a device beside a lost worker");
    stay_close(stay);
    stay_open(stay);
    must(silu_right(stay->apart), "a new worker");
}

void apart_compute(struct stay *stay)
{
    must(silu_right(stay->apart), "silu of a worker");
}

/* All plugins in workers, with their memory and with host memory. */
void apart_all(struct stay *stay)
{
    static const char *const names[] = { "discrete:0", "cpu:0", "discrete:1" };
    struct hw_context *context;
    (void)stay;
    must(open_as((struct hw_options){ .plugin_path = TEST_PLUGINS ":" PLUGINS ":!",
                                      .backends = "discrete,cpu",
                                      .worker = "*",
                                      .probe = random_below(2) ? "child" : "inproc" },
                 &context),
         "hw_open");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        must(silu_on(context, names[i]), names[i]);
    hw_close(context);
}

void apart_crash(struct stay *stay)
{
    static const int acts[] = { ACT_CRASH, ACT_LEAVE, ACT_ABORT };
    must_fail(act(stay->apart, (float)acts[random_below(sizeof acts / sizeof *acts)]),
              HW_LOST, "an op that crashes in a worker");
    must_be_lost(stay);
}

void apart_kill(struct stay *stay)
{
    const pid_t worker = worker_of(stay->context);
    if (kill(worker, SIGKILL))
        die("there is not a process %ld", (long)worker);
    must_be_lost(stay);
}

/* The worker hangs in an op, or when the context is closed, which reports nothing. */
void apart_hang(struct stay *stay)
{
    const bool closing = random_below(2);
    struct hw_context *context;
    struct hw_device *device;
    struct hw_queue *queue;
    (void)stay;
    must(open_as((struct hw_options){ .plugin_path = ROGUE ":!",
                                      .worker = "rogue=1",
                                      .probe = "inproc",
                                      .probe_timeout = "2" },
                 &context),
         "hw_open");
    must(hw_device_find(context, "rogue:0", &device), "rogue:0");
    must(hw_queue_open(device, NULL, &queue), "rogue:0");
    const pid_t worker = worker_of(context);
    if (closing)
        must(act(queue, ACT_HANG_LATER), "an op before the worker hangs");
    else
        must_fail(act(queue, ACT_HANG), HW_LOST, "an op that hangs");
    hw_close(context);
    if (!kill(worker, 0))
        die("the worker %ld is left", (long)worker);
}

/* ---- hw_rescan() ---- */

void rescan_same(struct stay *stay)
{
    const struct hw_device *first = hw_device_at(stay->context, 0);
    must(hw_rescan(stay->context), "hw_rescan");
    if (hw_device_at(stay->context, 0) != first)
        die("hw_rescan changed the order of the devices");
    must(silu_right(stay->queues[random_below(QUEUES)]), "silu after hw_rescan");
}

struct server {
    struct hw_context *context;
    atomic_bool end;
};

static void *serve(void *of)
{
    struct server *server = of;
    float x[4] = { 0, 1, 2, 3 }, y[4];
    struct hw_device *device;
    struct hw_queue *queue;
    must(hw_device_find(server->context, "cpu:0", &device), "cpu:0");
    must(hw_queue_open(device, NULL, &queue), "cpu:0");
    while (!atomic_load(&server->end)) {
        must(hw_silu(queue, &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 4),
                                               .y = hw_host_1d(y, HW_F32, 4) }),
             "silu beside hw_rescan");
        must(hw_queue_wait(queue), "silu beside hw_rescan");
        if (!(y[2] > 1.76f && y[2] < 1.77f))
            die("silu beside hw_rescan is wrong");
        usleep(500);
    }
    hw_queue_close(queue);
    return NULL;
}

/* The good plugin, once found, stays in use, whatever happens to its file. */
static void change_files(struct hw_context *context)
{
    static const struct {
        const char *name, *from;
    } files[] = { { "good", FIXTURES "/hw_good.so" },
                  { "titled", FIXTURES "/hw_titled.so" },
                  { "ends_crash", FIXTURES "/hw_ends_crash.so" },
                  { "text", NULL } };
    bool found = false;
    for (int i = 0; i < 6; i++) {
        const size_t which = random_below(sizeof files / sizeof *files);
        const char *path = below("moving/hw_%s.so", files[which].name);
        if (access(path, F_OK) == 0)
            unlink(path);
        else if (files[which].from)
            copy_file(files[which].from, path, 0755);
        else
            write_file(path, "text\n", 5, 0755);
        must(hw_rescan(context), "hw_rescan");
        found |= access(below("moving/hw_good.so"), F_OK) == 0;
        if (has_good(context) != found)
            die("hw_rescan: the good plugin is %s", found ? "lost" : "there");
        if (hw_explain(context, NULL, 0) == 0)
            die("no report after hw_rescan");
    }
}

void rescan_changes(struct stay *stay)
{
    struct server server = { .end = false };
    pthread_t thread;
    (void)stay;
    make_directory(below("moving"));
    char *path = NULL;
    if (asprintf(&path, "%s:%s/hw_cpu.so:!", below("moving"), PLUGINS) < 0)
        die("out of memory");
    must(open_as((struct hw_options){ .plugin_path = path,
                                      .probe = "child",
                                      .cache_dir = random_below(2) ? "off" : NULL },
                 &server.context),
         "hw_open");
    if (pthread_create(&thread, NULL, serve, &server))
        die("a thread cannot be started");
    change_files(server.context);
    atomic_store(&server.end, true);
    pthread_join(thread, NULL);
    hw_close(server.context);
    free(path);
    remove_tree(below("moving"));
}
