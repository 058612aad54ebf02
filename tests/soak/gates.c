/* SPDX-License-Identifier: MIT */
/* gates.c - fork() at known points: either another thread is inside a function of the library,
 * where a plugin (gate.c) stops it, or the context is in a lasting state. In the child, calls on
 * the context return HW_FORKED, and a context of its own works. In the parent, the thread then
 * continues, and its results are right. */
#define _GNU_SOURCE
#include "gates.h"

#include "hours.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct gate {
    const char *name;
    const char *place;  /* of gate.c; NULL: no other thread */
    const char *probe;  /* how plugins are tried */
    const char *device; /* that is used */
    bool opened; /* the context is open before the fork, and its queue unless `unused` */
    bool unused; /* the queue is not open */
    enum hw_status (*meanwhile)(struct stay *stay); /* the thread; or this one, before */
    enum hw_status (*then)(struct stay *stay);      /* afterwards */
};

/* The gate being tested. Its stay only uses `context` and `apart`, the device's queue. */
static const struct gate *current;

static enum hw_status open_gate(struct stay *stay)
{
    return open_as((struct hw_options){ .plugin_path = below("gates:!"),
                                        .backends = "gate?,discrete,rogue,cpu,good",
                                        .worker = "rogue",
                                        .cache_dir = "off",
                                        .probe = current->probe },
                   &stay->context);
}

static enum hw_status open_queue(struct stay *stay)
{
    struct hw_device *device;
    const enum hw_status status = hw_device_find(stay->context, current->device, &device);
    return status ? status : hw_queue_open(device, NULL, &stay->apart);
}

static enum hw_status compute(struct stay *stay)
{
    const enum hw_status status = stay->apart ? HW_OK : open_queue(stay);
    return status ? status : silu_right(stay->apart);
}

static enum hw_status copy(struct stay *stay)
{
    return copy_right(stay->apart);
}

static enum hw_status rescan(struct stay *stay)
{
    return hw_rescan(stay->context);
}

static enum hw_status finish(struct stay *stay)
{
    hw_close(stay->context);
    stay->context = NULL;
    return HW_OK;
}

static float recorded[2][4] = { { 0, 1, 2, 3 } };

static enum hw_status record(struct stay *stay)
{
    const enum hw_status status = hw_queue_record(stay->apart);
    return status ? status
                  : hw_silu(stay->apart,
                            &(struct hw_silu){ .x = hw_host_1d(recorded[0], HW_F32, 4),
                                               .y = hw_host_1d(recorded[1], HW_F32, 4) });
}

static enum hw_status launch(struct stay *stay)
{
    struct hw_graph *graph;
    enum hw_status status = hw_queue_end(stay->apart, &graph);
    if (!status && !(status = hw_graph_launch(graph, stay->apart)))
        status = hw_queue_wait(stay->apart);
    if (!status && !(recorded[1][2] > 1.76f && recorded[1][2] < 1.77f))
        die("a graph that was recorded across fork() is wrong");
    hw_graph_free(graph);
    return status;
}

/* Half a second: the fork comes earlier. */
static enum hw_status keep_busy(struct stay *stay)
{
    const struct hw_arg time = { .kind = HW_ARG_INT, .i = 500 };
    return hw_extension_call(stay->apart, "discrete.sleep", &time, 1);
}

static const struct gate gates[] = {
    { "open", "start", "inproc", "gate", false, true, open_gate, compute },
    { "probe", "start", "child", "gate", false, true, open_gate, compute },
    { "bind", "open", "child", "gate", true, true, compute, compute },
    { "dispatch", "silu", "inproc", "gate", true, false, compute, compute },
    { "copy", "transfer", "inproc", "gate", true, false, copy, copy },
    { "rescan", "start", "inproc", "cpu", true, false, rescan, compute },
    { "close", "close", "inproc", "gate", true, false, finish, NULL },
    { "record", NULL, "inproc", "cpu", true, false, record, launch },
    { "pending", NULL, "inproc", "discrete", true, false, keep_busy, compute },
    { "worker", NULL, "inproc", "rogue", true, false, compute, compute },
};
enum { GATES = sizeof gates / sizeof *gates };

/* ---- the other thread ---- */

static void *run(void *stay)
{
    if (current->meanwhile(stay))
        die("%s: %s", current->name, hw_message());
    return NULL;
}

static void touch(const char *fifo, int flags)
{
    char byte = 0;
    const int fd = open(below("%s", fifo), flags | O_CLOEXEC);
    if (fd < 0 || (flags == O_RDONLY ? read(fd, &byte, 1) : write(fd, &byte, 1)) != 1)
        die("%s: the plugin does not come to its gate", current->name);
    close(fd);
}

/* ---- the child ---- */

static bool is_forked(const struct stay *stay)
{
    if (!strcmp(current->name, "close") || !stay->context)
        return true; /* nobody may use it any more, or yet */
    return hw_rescan(stay->context) == HW_FORKED &&
           (!stay->apart || (silu_right(stay->apart) == HW_FORKED &&
                             hw_queue_wait(stay->apart) == HW_FORKED));
}

static int in_child(struct stay *stay)
{
    struct stay own = { 0 };
    alarm(60); /* a lock that nobody will release */
    unsetenv("HW_TEST_GATE");
    if (!is_forked(stay))
        return 1;
    if (stay->context && strcmp(current->name, "close") != 0) {
        hw_queue_close(stay->apart);
        hw_close(stay->context);
    }
    if (open_gate(&own) || compute(&own) || copy(&own))
        return 2;
    if (hw_rescan(own.context) || silu_on(own.context, "cpu"))
        return 3;
    hw_close(own.context);
    return 0;
}

static void fork_here(struct stay *stay)
{
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(in_child(stay));
    if (child < 0 || waitpid(child, &status, 0) != child)
        die("%s: no child", current->name);
    if (status)
        die("%s: the child ended with status 0x%x", current->name, (unsigned)status);
}

/* ---- the parent ---- */

static void put_plugins(void)
{
    make_directory(below("gates"));
    copy_file(FIXTURES "/hw_good.so", below("gates/hw_good.so"), 0755);
    copy_file(TEST_PLUGINS "/hw_discrete.so", below("gates/hw_discrete.so"), 0755);
    copy_file(ROGUE, below("gates/hw_rogue.so"), 0755);
    copy_file(PLUGINS "/hw_cpu.so", below("gates/hw_cpu.so"), 0755);
    copy_file(SOAK_FIXTURES "/hw_gate.so", below("gates/hw_gate.so"), 0755);
}

/* A plugin that hw_rescan() is to find must be absent before. */
static void hide(bool hidden)
{
    const char *shown = below("gates/hw_gate.so"), *away = below("gate");
    if (rename(hidden ? shown : away, hidden ? away : shown))
        die("the plugin cannot be moved");
}

static void fork_at(const struct gate *gate)
{
    struct stay stay = { 0 };
    pthread_t thread;
    const bool finds = !strcmp(gate->name, "rescan");
    current = gate;
    if (finds)
        hide(true);
    if (gate->opened)
        must(open_gate(&stay), gate->name);
    if (gate->opened && !gate->unused)
        must(open_queue(&stay), gate->name);
    if (finds)
        hide(false);
    if (!gate->place) {
        must(gate->meanwhile(&stay), gate->name);
        fork_here(&stay);
    } else {
        setenv("HW_TEST_GATE", gate->place, 1);
        if (pthread_create(&thread, NULL, run, &stay))
            die("a thread cannot be started");
        touch("here", O_RDONLY);
        fork_here(&stay);
        unsetenv("HW_TEST_GATE");
        touch("go", O_WRONLY);
        pthread_join(thread, NULL);
    }
    if (gate->then)
        must(gate->then(&stay), gate->name);
    hw_close(stay.context);
}

int fork_at_gates(long count)
{
    put_plugins();
    setenv("HW_TEST_HERE", below("here"), 1);
    setenv("HW_TEST_GO", below("go"), 1);
    if (mkfifo(below("here"), 0600) || mkfifo(below("go"), 0600))
        die("no FIFO");
    for (long i = 0; i < count; i++)
        fork_at(&gates[i % GATES]);
    return GATES;
}
