/* SPDX-License-Identifier: MIT */
/* fork.c - fork() at known points (gates.c), and then at random moments while another thread goes
 * through eight phases of a context's life. In the child, calls on the parent's context return
 * HW_FORKED, hw_close() does nothing, and the child can open a context and compute, whatever locks
 * that thread held. */
#define _GNU_SOURCE
#include "gates.h"
#include "soak.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char path[2 * PATH_MAX];
static struct hw_context *common; /* the parent's context, which stays open */
static struct hw_device *device;  /* of the CPU plugin */
static atomic_int point;          /* which is looped over; negative: end */
static atomic_long rounds;

static enum hw_status compute(struct hw_queue *queue)
{
    static const float x[5] = { -2, -1, 0, 1, 2 };
    float y[5];
    enum hw_status status = hw_silu(
        queue,
        &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 5), .y = hw_host_1d(y, HW_F32, 5) });
    if (!status)
        status = hw_queue_wait(queue);
    return status || (y[4] > 1.76f && y[4] < 1.77f) ? status : HW_INTERNAL;
}

static enum hw_status use(struct hw_context *context, const char *name)
{
    struct hw_device *found;
    struct hw_queue *queue;
    enum hw_status status = hw_device_find(context, name, &found);
    if (!status && !(status = hw_queue_open(found, NULL, &queue))) {
        status = found == device || name[0] == 'c' ? compute(queue) : HW_OK;
        hw_queue_close(queue);
    }
    return status;
}

/* ---- the points ---- */

static enum hw_status open_and_close(const char *first_use)
{
    struct hw_context *context;
    enum hw_status status = open_on(path, &context);
    if (!status && first_use)
        status = use(context, first_use);
    hw_close(context);
    return status;
}

static enum hw_status scanning(void)
{
    return open_and_close(NULL);
}

static enum hw_status probing(void)
{
    remove_tree(below("cache"));
    return open_and_close(NULL);
}

static enum hw_status binding(void)
{
    return open_and_close("good:0");
}

static enum hw_status dispatching(void)
{
    return use(common, "cpu:0");
}

static enum hw_status recording(void)
{
    static float x[64], y[64];
    struct hw_queue *queue;
    struct hw_graph *graph = NULL;
    enum hw_status status = hw_queue_open(device, NULL, &queue);
    if (status)
        return status;
    if (!(status = hw_queue_record(queue)))
        status = hw_silu(queue, &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 64),
                                                   .y = hw_host_1d(y, HW_F32, 64) });
    if (!status)
        status = hw_queue_end(queue, &graph);
    hw_graph_free(graph);
    hw_queue_close(queue);
    return status;
}

static enum hw_status rescanning(void)
{
    return hw_rescan(common);
}

static enum hw_status closing(void)
{
    return open_and_close("cpu:0");
}

static enum hw_status resting(void)
{
    return HW_OK; /* between opening and first use, and with a queue open */
}

static const struct {
    const char *name;
    enum hw_status (*run)(void);
} points[] = { { "scan", scanning },        { "probe", probing },
               { "rest", resting },         { "bind", binding },
               { "dispatch", dispatching }, { "record", recording },
               { "rescan", rescanning },    { "close", closing } };
enum { POINTS = sizeof points / sizeof *points };

static void *loop(void *unused)
{
    (void)unused;
    for (int i; (i = atomic_load(&point)) >= 0; atomic_fetch_add(&rounds, 1))
        if (points[i].run())
            die("%s: %s", points[i].name, hw_message());
    return NULL;
}

/* ---- the child ---- */

static int in_child(struct hw_queue *queue)
{
    struct hw_context *own;
    struct hw_queue *none;
    alarm(60); /* a lock that nobody will release */
    if (hw_rescan(common) != HW_FORKED || hw_queue_open(device, NULL, &none) != HW_FORKED ||
        compute(queue) != HW_FORKED || hw_queue_wait(queue) != HW_FORKED)
        return 1;
    hw_queue_close(queue);
    hw_close(common);
    if (hw_explain(common, NULL, 0) == 0)
        return 2;
    if (open_on(path, &own))
        return 3;
    if (use(own, "cpu:0") || use(own, "good:0") || hw_rescan(own))
        return 4;
    hw_close(own);
    return 0;
}

static void fork_once(struct hw_queue *queue, const char *name)
{
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(in_child(queue));
    if (child < 0 || waitpid(child, &status, 0) != child)
        die("%s: no child", name);
    if (status)
        die("%s: the child ended with status 0x%x", name, (unsigned)status);
}

void soak_fork(long count)
{
    pthread_t thread;
    struct hw_queue *queue;
    const double start = seconds();
    setenv("HW_PROBE", "child", 1);
    const long steady = count / 4 + 1;
    const int gates = fork_at_gates(steady);
    put_good("plugins");
    snprintf(path, sizeof path, "%s:%s/hw_cpu.so", below("plugins"), PLUGINS);
    if (open_on(path, &common) || hw_device_find(common, "cpu:0", &device) ||
        hw_queue_open(device, NULL, &queue))
        die("hw_open: %s", hw_message());
    if (pthread_create(&thread, NULL, loop, NULL))
        die("a thread cannot be started");
    for (long i = 0; i < count; i++) {
        atomic_store(&point, (int)(i % POINTS));
        nanosleep(&(struct timespec){ .tv_nsec = (long)random_below(3000000) }, NULL);
        fork_once(queue, points[i % POINTS].name);
    }
    atomic_store(&point, -1);
    pthread_join(thread, NULL);
    if (compute(queue)) /* the children have not disturbed the parent */
        die("silu: %s", hw_message());
    hw_close(common);
    printf("fork: %ld forks at %d points; %ld in %d phases, beside %ld rounds of the other "
           "thread, in %.1f s\n",
           steady, gates, count, POINTS, atomic_load(&rounds), seconds() - start);
}
