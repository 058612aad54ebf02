/* SPDX-License-Identifier: MIT */
/* watch.c - see watch.h. The signal handlers only write() prepared texts. */
#define _DEFAULT_SOURCE /* sigaltstack() */

#include "watch.h"

#include "command.h"
#include "output.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_SECONDS = 10, MOST_SECONDS = 3600, STACK_BYTES = 64 << 10 };

static char doing[6000];  /* "starting /opt/hw/hw_mine.so"; "": nothing is watched */
static char advice[600];  /* ". HW_DISABLE=mine leaves it out" */
static char patience[32]; /* "10 seconds" */
static char mapped[5000]; /* "using m.gguf, which is mapped ...", for bus errors; or "" */
static pid_t process;
static bool ended;

static const struct deadly {
    int number;
    const char *name;
} deadly[] = {
    { SIGSEGV, "segmentation fault" },
    { SIGBUS, "bus error" },
    { SIGILL, "illegal instruction" },
    { SIGFPE, "arithmetic exception" },
    { SIGABRT, "abort" },
    { SIGINT, "interrupted" },
};
enum { DEADLY = sizeof deadly / sizeof deadly[0] };
static struct sigaction before[DEADLY];

/* Writes the whole line with one call, so that lines of two threads do not mix. */
static void put_line(const char *const parts[])
{
    char line[8192];
    size_t used = 0;
    for (; *parts; parts++) {
        const size_t length = strlen(*parts);
        if (length >= sizeof line - used)
            break;
        memcpy(line + used, *parts, length);
        used += length;
    }
    line[used++] = '\n';
    (void)!write(STDERR_FILENO, line, used);
}

/* A fault repeats when its handler returns; a signal sent by somebody does not. */
static bool repeats(int number, const siginfo_t *info)
{
    return number != SIGINT && number != SIGABRT && info->si_code > 0;
}

/* Prints the line, then runs the old handler, a sanitizer's or the default, which ends the process.
 * Threads of a plugin may crash together: the first one prints, the others wait for the end. */
static void die(int number, siginfo_t *info, void *context)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    static _Thread_local bool mine; /* the old handler may raise another signal */
    const bool first = !atomic_flag_test_and_set(&taken);
    (void)context;
    out_forward();
    mine |= first;
    if (!mine && number != SIGINT)
        for (;;)
            pause();
    for (int i = 0; i < DEADLY; i++) {
        if (deadly[i].number != number)
            continue;
        const bool cut = number == SIGBUS && mapped[0];
        if (doing[0] && first)
            put_line((const char *const[]){ complainer(), ": ", deadly[i].name, " while ",
                                            cut ? mapped : doing, cut ? "" : advice,
                                            NULL });
        sigaction(number, &before[i], NULL);
    }
    if (!repeats(number, info))
        raise(number);
}

static void run_out_of_patience(int number)
{
    (void)number;
    put_line((const char *const[]){ complainer(), ": still ", doing, " after ", patience,
                                    "; Ctrl-C ends this", advice, NULL });
}

/* Reports that a plugin, or its driver, called exit() before the command was done. */
static void exit_inside(void)
{
    if (ended || getpid() != process)
        return;
    fflush(stdout);
    out_forward();
    complain("exit() was called %s%s%s",
             doing[0] ? "while " : "before the command was done", doing, advice);
    _exit(out_end(EXIT_FAILED));
}

static void handle(int number, struct sigaction *old)
{
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
    action.sa_sigaction = die;
    sigemptyset(&action.sa_mask);
    if (!sigaction(number, NULL, old) && old->sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void watch_begin(void)
{
    static char stack[STACK_BYTES]; /* the ordinary stack may be used up */
    const stack_t own = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction alarm_action = { .sa_handler = run_out_of_patience,
                                      .sa_flags = SA_RESTART };

    sigaltstack(&own, NULL);
    for (int i = 0; i < DEADLY; i++)
        if (deadly[i].number != SIGINT)
            handle(deadly[i].number, &before[i]);
    sigemptyset(&alarm_action.sa_mask);
    sigaction(SIGALRM, &alarm_action, NULL);
    process = getpid();
    atexit(exit_inside);
}

void watch_end(void)
{
    ended = true;
}

void watch_interrupt(bool on)
{
    static bool watched;
    const int index = DEADLY - 1;
    if (on && !watched)
        handle(SIGINT, &before[index]);
    else if (!on && watched)
        sigaction(SIGINT, &before[index], NULL);
    watched = on;
}

static unsigned seconds_allowed(void)
{
    const char *setting = getenv("HW_PROBE_TIMEOUT");
    const long seconds = setting ? strtol(setting, NULL, 10) : 0;
    return seconds > 0 && seconds <= MOST_SECONDS ? (unsigned)seconds : DEFAULT_SECONDS;
}

/* "/opt/hw/hw_mine.so" belongs to backend "mine". */
static void give_advice(const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const size_t length = strlen(file);

    if (length > 6 && !strncmp(file, "hw_", 3) && !strcmp(file + length - 3, ".so"))
        snprintf(advice, sizeof advice, ". HW_DISABLE=%.*s leaves it out", (int)length - 6,
                 file + 3);
}

void watch_start(void *user, const char *path)
{
    char work[sizeof doing] = "", cleaned[sizeof doing - 16];

    alarm(0);
    advice[0] = '\0';
    if (path) {
        const unsigned seconds = seconds_allowed();
        clean_text(cleaned, sizeof cleaned, path);
        snprintf(work, sizeof work, "starting %s", cleaned);
        if (!user)
            give_advice(cleaned);
        snprintf(patience, sizeof patience, "%u second%s", seconds,
                 seconds == 1 ? "" : "s");
        watch_work(work);
        watch_interrupt(true);
        alarm(seconds);
    } else {
        watch_interrupt(false);
        watch_work(NULL);
    }
}

void watch_work(const char *work)
{
    doing[0] = mapped[0] = '\0';
    if (work)
        snprintf(doing, sizeof doing, "%s", work);
    else
        advice[0] = '\0';
}

void watch_file(const char *path, struct hw_device *device)
{
    char work[sizeof doing];
    snprintf(work, sizeof work, "using %.4096s%s%s", path, device ? " on " : "",
             device ? hw_device_name(device) : "");
    watch_work(work);
    snprintf(mapped, sizeof mapped,
             "using %.4096s, which is mapped and may have been truncated", path);
    advice[0] = '\0';
    if (device)
        snprintf(advice, sizeof advice,
                 "; HW_DISABLE=%.100s leaves the plugin out, and crash.md in the "
                 "documentation says how to find the cause",
                 hw_device_backend(device));
}
