/* SPDX-License-Identifier: MIT */
/* deadline.c - see deadline.h. */
#define _POSIX_C_SOURCE 200809L
#include "deadline.h"

#include "command/output.h"
#include "util/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The lock guards all that follows, and the terminal's line. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct deadline current;
static char work[512]; /* "": none */
static double seconds; /* that the work has taken */
static double looked;  /* when they were last added up */
static bool shown, started;

static void wipe_line(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}

static void show_seconds(void)
{
    const int columns = columns_of(STDERR_FILENO);
    char line[600];
    if (seconds < 1 || out_json || !isatty(STDERR_FILENO))
        return;
    snprintf(line, sizeof line, "  %s: %.0f s", work, seconds);
    fprintf(stderr, "\r\033[K%.*s", columns > 1 ? columns - 1 : 79, line);
    shown = true;
}

/* Time in which the process was stopped, by a debugger for example, does not count. */
static void add_seconds(void)
{
    const double passed = now() - looked;
    seconds += passed < 1 ? passed : 1;
    looked += passed;
}

static void look(void)
{
    if (!work[0])
        return;
    add_seconds();
    if (current.seconds > 0 && seconds >= current.seconds) {
        wipe_line();
        current.late(current.user);
    }
    show_seconds();
}

static void *look_for_ever(void *unused)
{
    const struct timespec tick = { .tv_nsec = 200000000 };
    (void)unused;
    for (;;) {
        nanosleep(&tick, NULL);
        pthread_mutex_lock(&lock);
        look();
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Signals are for the thread that works. Without a second thread, nothing is watched. */
static void start_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, NULL, look_for_ever, NULL) == 0;
    if (started)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void deadline_begin(const struct deadline *deadline)
{
    if (!started)
        start_thread();
    pthread_mutex_lock(&lock);
    wipe_line();
    current = *deadline;
    snprintf(work, sizeof work, "%s", deadline->work);
    seconds = 0;
    looked = now();
    pthread_mutex_unlock(&lock);
}

void deadline_end(void)
{
    pthread_mutex_lock(&lock);
    wipe_line();
    work[0] = '\0';
    pthread_mutex_unlock(&lock);
}
