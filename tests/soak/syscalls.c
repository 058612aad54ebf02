/* SPDX-License-Identifier: MIT */
/* syscalls.c - each system call that a context makes, from opening to closing, fails once with each
 * of its errors, or transfers less than requested. COUNT is the number of these faults to try,
 * spread evenly; a large number tries all.
 *
 * A traced process (tracer.c) opens contexts, computes, copies and rescans. One call fails: in this
 * process, in hw-probe, in the process where hw-probe runs the plugin, or in one of the worker's
 * two processes. The traced process must end without a crash and with its original descriptors and
 * children. Its results must be right, an unused plugin must have a reason, and a context opened
 * afterwards must work. A call that transfers less must have no effect. */
#define _GNU_SOURCE
#include "hours.h"
#include "tracer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The plugin is gate.c: it has an op, and memory of its own. */
struct scenario {
    const char *name, *probe, *directory, *worker;
    bool cold; /* the cache is empty before */
    enum role role;
};

static const struct scenario scenarios[] = {
    { "in the process", "inproc", "plain", NULL, false, ROLE_HOST },
    { "trying a plugin", "child", "plain", NULL, true, ROLE_HOST },
    { "the verdict known", "child", "plain", NULL, false, ROLE_HOST },
    { "hw-probe", "child", "plain", NULL, true, ROLE_WATCHER },
    { "the process of the plugin", "child", "locked", NULL, true, ROLE_WORKER },
    { "with a worker", "inproc", "plain", "*=10", false, ROLE_HOST },
    { "hw-worker", "inproc", "plain", "*=10", false, ROLE_WATCHER },
    { "the worker", "inproc", "plain", "*=10", false, ROLE_WORKER },
};

/* ---- in the traced process ---- */

static bool has_plugin(struct hw_context *context)
{
    struct hw_device *device;
    return hw_device_find(context, "gate:0", &device) == HW_OK;
}

/* Whether hw_explain() says that the plugin is used, or why not. */
static bool is_explained(struct hw_context *context)
{
    static char text[1 << 16];
    if (hw_explain(context, text, sizeof text) >= sizeof text)
        return false;
    const char *reason = strstr(text, "\"reason\":\""),
               *state = strstr(text, "\"state\":\"");
    return has_plugin(context) || (reason && reason[10] != '"') ||
           (state && strncmp(state + 9, "read\"", 5) != 0);
}

static enum hw_status compute(struct hw_context *context)
{
    struct hw_device *device;
    struct hw_queue *queue;
    enum hw_status status;
    if ((status = hw_device_find(context, "gate:0", &device)) ||
        (status = hw_queue_open(device, NULL, &queue)) || (status = silu_right(queue)) ||
        (status = copy_right(queue)) || (status = graph_right(queue)) ||
        (status = hw_rescan(context)))
        return status;
    return silu_right(queue);
}

/* Opens a context and uses the plugin. `explained` is false if a failure has no explanation. */
static enum hw_status use(const struct scenario *scenario, bool *explained)
{
    struct hw_context *context;
    enum hw_status status =
        open_as((struct hw_options){ .plugin_path = below("%s:!", scenario->directory),
                                     .config = below("hw.conf"),
                                     .probe = scenario->probe,
                                     .probe_timeout = "2",
                                     .worker = scenario->worker,
                                     .flags = HW_OPEN_ANYWAY },
                &context);
    *explained = !status || *hw_message();
    if (status)
        return status;
    *explained = is_explained(context);
    status = compute(context);
    *explained &= !status || *hw_message();
    hw_close(context);
    return status;
}

static void must_be_as_before(const struct scenario *scenario, const struct fault *fault,
                              int descriptors)
{
    const struct host host = host_now();
    bool explained;
    if (host.descriptors != descriptors)
        die("descriptors %d, then %d", descriptors, host.descriptors);
    /* Reaps a child whose waitpid() was made to fail. If the fault was ECHILD, the library believes
     * that no child exists while it is still ending: this call waits for it, and hangs if it does
     * not end. */
    while (waitpid(-1, NULL, fault->error == ECHILD ? 0 : WNOHANG) > 0)
        ;
    if (waitpid(-1, NULL, WNOHANG) == 0)
        die("a process that was started still runs");
    if (scenario->role != ROLE_HOST)
        remove_tree(below("cache")); /* it may have a failure of the plugin */
    if (use(scenario, &explained))
        die("opening without a fault: %s", hw_message());
}

/* Runs in the traced process, and prints its own errors. */
__attribute__((noreturn)) static void live(const struct scenario *scenario,
                                           const struct fault *fault)
{
    bool explained;
    char message[300];
    tracer_submit();
    if (scenario->cold)
        remove_tree(below("cache"));
    const int descriptors = host_now().descriptors;
    tracer_begin();
    const enum hw_status status = use(scenario, &explained);
    snprintf(message, sizeof message, "%s", status ? hw_message() : "");
    tracer_end();
    if (fault->shorten && scenario->role == ROLE_HOST && status)
        die("a call that did less than it was asked for: %s", message);
    if (!explained)
        die("%s without a reason", hw_status_name((int32_t)status));
    must_be_as_before(scenario, fault, descriptors);
    if (getenv("SOAK_VERBOSE"))
        printf("    %s %s\n", hw_status_name((int32_t)status), message);
    fflush(stdout);
    _exit(0);
}

/* ---- the faults ---- */

/* Runs the scenario with this fault, or without one. After a bad end it reports that and returns
 * false. */
static bool run(const struct scenario *scenario, struct fault *fault, struct census *census)
{
    fflush(stdout);
    const pid_t id = fork();
    if (id < 0)
        die("a process cannot be started");
    if (id == 0)
        live(scenario, fault);
    const int status = trace(id, scenario->role, fault, census);
    const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!good)
        fprintf(stderr, "soak: %s: %s, call %u, %s: %s %d\n", scenario->name,
                call_name(fault->number), fault->call,
                fault->shorten ? "made short" : strerrorname_np(fault->error),
                WIFEXITED(status) ? "status" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return good;
}

/* Selects `wanted` of `all` faults, spread evenly. `missed` counts the ones whose call did not
 * occur, because the number of sleeps and polls varies. */
struct turn {
    long wanted, all, seen, tried, missed, bad;
};

static bool is_next(struct turn *turn)
{
    const long before = turn->seen++ * turn->wanted / turn->all;
    return turn->wanted >= turn->all || turn->seen * turn->wanted / turn->all != before;
}

/* The index of this call among the calls with its number, from 1. */
static unsigned turn_of(const struct census *census, unsigned call)
{
    unsigned count = 0;
    for (unsigned i = 0; i <= call; i++)
        count += census->number[i] == census->number[call];
    return count;
}

static void try_call(const struct scenario *scenario, const struct census *census,
                     unsigned call, struct turn *turn)
{
    const struct faulty *faulty = faults_of(census->number[call]);
    for (unsigned i = 0; i < faulty->count + faulty->shorten; i++) {
        struct fault fault = { .call = turn_of(census, call),
                               .number = census->number[call],
                               .shorten = i == faulty->count,
                               .error = i < faulty->count ? faulty->error[i] : 0 };
        if (!is_next(turn))
            continue;
        turn->tried++;
        if (getenv("SOAK_VERBOSE"))
            printf("  %s, call %u: %s\n", call_name(fault.number), fault.call,
                   fault.shorten ? "short" : strerrorname_np(fault.error));
        turn->bad += !run(scenario, &fault, NULL);
        turn->missed += !fault.made;
    }
}

static long count_faults(const struct census *census)
{
    long count = 0;
    for (unsigned i = 0; i < census->count; i++) {
        const struct faulty *faulty = faults_of(census->number[i]);
        count += (long)faulty->count + faulty->shorten;
    }
    return count;
}

static void put_plugin(const char *directory)
{
    make_directory(below("%s", directory));
    copy_file(SOAK_FIXTURES "/hw_gate.so", below("%s/hw_gate.so", directory), 0755);
}

static void prepare(void)
{
    put_plugin("plain");
    put_plugin("locked");
    write_file(below("hw.conf"), "precision = fp32\n", 17, 0600);
    char command[512];
    snprintf(command, sizeof command, "cd %s && sha256sum hw_gate.so >plugins.lock",
             below("locked"));
    if (system(command))
        die("no sha256sum");
}

void soak_syscalls(long count)
{
    enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };
    static struct census census[SCENARIOS];
    long all = 0;
    if (!tracer_works()) {
        printf("not applicable: no process can be traced here\n");
        exit(77);
    }
    prepare();
    for (int i = 0; i < SCENARIOS; i++) {
        if (!run(&scenarios[i], &(struct fault){ 0 }, &census[i]))
            die("it fails without a fault");
        all += count_faults(&census[i]);
    }
    struct turn turn = { .wanted = count, .all = all };
    const double start = seconds();
    for (int i = 0; i < SCENARIOS; i++) {
        const long before = turn.tried;
        for (unsigned call = 0; call < census[i].count; call++)
            try_call(&scenarios[i], &census[i], call, &turn);
        printf("syscalls: %s: %u calls, %ld of %ld faults\n", scenarios[i].name,
               census[i].count, turn.tried - before, count_faults(&census[i]));
    }
    printf("syscalls: %ld of %ld faults in %.1f s; the call of %ld did not come\n",
           turn.tried, all, seconds() - start, turn.missed);
    if (turn.bad)
        die("%ld of the faults end badly", turn.bad);
}
