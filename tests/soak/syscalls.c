/* SPDX-License-Identifier: MIT */
/* syscalls.c - each system call that opening a context makes fails once, with each of its errors,
 * or does less than it was asked for. COUNT is how many of these faults are tried, spread evenly;
 * a large one tries all.
 *
 * A process opens contexts, and is traced (tracer.c): one of its calls fails, or one of hw-probe's,
 * or of the process in which that runs the plugin. It must come to an end, without a crash, with
 * the descriptors and children that it had; what is not used must have a reason; and a context that
 * is opened after it must work. A call that does less has no effect. */
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

struct scenario {
    const char *name, *probe, *directory;
    bool cold; /* the cache is empty before */
    enum role role;
};

static const struct scenario scenarios[] = {
    { "opening in the process", "inproc", "locked", false, ROLE_HOST },
    { "opening, and trying a plugin", "child", "good", true, ROLE_HOST },
    { "opening, the verdict known", "child", "good", false, ROLE_HOST },
    { "hw-probe", "child", "good", true, ROLE_WATCHER },
    { "the process of the plugin", "child", "good", true, ROLE_WORKER },
};

/* ---- in the traced process ---- */

/* Whether hw_explain() says why the good plugin is not used, or that it is. */
static bool is_explained(struct hw_context *context)
{
    static char text[1 << 16];
    if (hw_explain(context, text, sizeof text) >= sizeof text)
        return false;
    const char *reason = strstr(text, "\"reason\":\""),
               *state = strstr(text, "\"state\":\"");
    return has_good(context) || (reason && reason[10] != '"') ||
           (state && strncmp(state + 9, "read\"", 5) != 0);
}

/* Opens a context and uses the good plugin. False if something is neither right nor explained. */
static enum hw_status use(const struct scenario *scenario, bool *explained)
{
    struct hw_context *context;
    struct hw_device *device;
    struct hw_queue *queue;
    struct hw_buffer *buffer;
    enum hw_status status =
        open_as((struct hw_options){ .plugin_path_only = below("%s", scenario->directory),
                                     .config = below("hw.conf"),
                                     .probe = scenario->probe,
                                     .probe_timeout = "2",
                                     .flags = HW_OPEN_ANYWAY },
                &context);
    *explained = !status || *hw_message();
    if (status)
        return status;
    *explained = is_explained(context);
    if (!(status = hw_device_find(context, "good:0", &device)) &&
        !(status = hw_queue_open(device, NULL, &queue)) &&
        !(status = hw_buffer_alloc(device, 1000, 0, &buffer)))
        status = hw_queue_wait(queue);
    *explained &= !status || *hw_message();
    hw_close(context);
    return status;
}

static void must_be_as_before(const struct scenario *scenario, int descriptors)
{
    const struct host host = host_now();
    bool explained;
    if (host.descriptors != descriptors)
        die("descriptors %d, then %d", descriptors, host.descriptors);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ; /* one that a call which failed did not wait for */
    if (waitpid(-1, NULL, WNOHANG) == 0)
        die("a process that was started still runs");
    if (scenario->role != ROLE_HOST)
        remove_tree(below("cache")); /* it may have a failure of the plugin */
    if (use(scenario, &explained))
        die("opening without a fault: %s", hw_message());
}

/* Its messages are what the others learn. */
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
    must_be_as_before(scenario, descriptors);
    if (getenv("SOAK_VERBOSE"))
        printf("    %s %s\n", hw_status_name((int32_t)status), message);
    fflush(stdout);
    _exit(0);
}

/* ---- the faults ---- */

/* Runs the scenario with this fault, or none; says so, and returns false, if it ends badly. */
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
        fprintf(stderr, "soak: %s: call %u, %s, %s: %s %d\n", scenario->name, fault->call,
                call_name(fault->number),
                fault->shorten ? "made short" : strerrorname_np(fault->error),
                WIFEXITED(status) ? "status" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return good;
}

/* How many of the faults are tried: those that are the next ones of `wanted` among `all`. */
struct turn {
    long wanted, all, seen, tried, bad;
};

static bool is_next(struct turn *turn)
{
    const long before = turn->seen++ * turn->wanted / turn->all;
    return turn->wanted >= turn->all || turn->seen * turn->wanted / turn->all != before;
}

static void try_call(const struct scenario *scenario, const struct census *census,
                     unsigned call, struct turn *turn)
{
    const struct faulty *faulty = faults_of(census->number[call]);
    for (unsigned i = 0; i < faulty->count + faulty->shorten; i++) {
        struct fault fault = { .call = call + 1,
                               .number = census->number[call],
                               .shorten = i == faulty->count,
                               .error = i < faulty->count ? faulty->error[i] : 0 };
        if (!is_next(turn))
            continue;
        turn->tried++;
        if (getenv("SOAK_VERBOSE"))
            printf("  call %u, %s: %s\n", fault.call, call_name(fault.number),
                   fault.shorten ? "short" : strerrorname_np(fault.error));
        turn->bad += !run(scenario, &fault, NULL);
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

static void prepare(void)
{
    put_good("good");
    put_good("locked");
    write_file(below("hw.conf"), "precision = fp32\n", 17, 0600);
    char command[512];
    snprintf(command, sizeof command, "cd %s && sha256sum hw_good.so >plugins.lock",
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
    printf("syscalls: %ld of %ld faults in %.1f s\n", turn.tried, all, seconds() - start);
    if (turn.bad)
        die("%ld of the faults end badly", turn.bad);
}
