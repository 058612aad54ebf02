/* SPDX-License-Identifier: MIT */
/* witness.c - detects a plugin that changes the state of its process while it starts. Checks only
 * the state that is cheap to check. */
#define _DEFAULT_SOURCE
#include "probe/witness.h"

#include "base/alone.h"

#include <fcntl.h>
#include <float.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int watched[] = { SIGINT,  SIGTERM, SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                               SIGABRT, SIGPIPE, SIGCHLD, SIGHUP, SIGALRM, SIGUSR1 };
#define WATCHED (int)(sizeof watched / sizeof *watched)

struct witness {
    int directory; /* descriptor of the working directory */
    char *locale;
    struct sigaction actions[sizeof watched / sizeof *watched];
    sigset_t blocked;
    mode_t mask;
    bool floats;
};

/* Whether the mode is: round to nearest, keep denormal numbers in inputs and results. */
static bool floats_are_plain(void)
{
    volatile float one = 1.0f, half_step = FLT_EPSILON / 4, tiny = FLT_MIN, half = 0.5f;
    volatile float up = one + half_step, down = -one - half_step, denormal = tiny * half;
    volatile float twice = denormal + denormal;
    return up == one && down == -one && denormal != 0.0f && twice == tiny;
}

/* The umask can only be read by setting it. */
static mode_t file_mask(void)
{
    const mode_t mask = umask(0);
    umask(mask);
    return mask;
}

struct witness *witness_begin(void)
{
    struct witness *witness = ALONE ? calloc(1, sizeof *witness) : NULL;
    if (!witness)
        return NULL;
    const char *locale = setlocale(LC_ALL, NULL);
    witness->directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    witness->locale = locale ? strdup(locale) : NULL;
    witness->floats = floats_are_plain();
    witness->mask = file_mask();
    pthread_sigmask(SIG_SETMASK, NULL, &witness->blocked);
    for (int i = 0; i < WATCHED; i++)
        sigaction(watched[i], NULL, &witness->actions[i]);
    return witness;
}

static bool handlers_changed(const struct witness *witness)
{
    bool changed = false;
    for (int i = 0; i < WATCHED; i++) {
        struct sigaction now;
        changed = changed || (sigaction(watched[i], NULL, &now) == 0 &&
                              now.sa_handler != witness->actions[i].sa_handler);
    }
    return changed;
}

static bool blocked_changed(const struct witness *witness)
{
    sigset_t now;
    bool changed = false;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int i = 1; i < NSIG; i++)
        changed = changed || sigismember(&now, i) != sigismember(&witness->blocked, i);
    return changed;
}

static bool locale_changed(const struct witness *witness)
{
    const char *now = setlocale(LC_ALL, NULL);
    return now && witness->locale && strcmp(now, witness->locale) != 0;
}

static bool directory_changed(const struct witness *witness)
{
    struct stat before, now;
    return witness->directory >= 0 && !fstat(witness->directory, &before) &&
           !stat(".", &now) && (before.st_dev != now.st_dev || before.st_ino != now.st_ino);
}

static enum reason changed(const struct witness *witness, bool handlers)
{
    return directory_changed(witness)               ? REASON_CHANGED_DIRECTORY
           : locale_changed(witness)                ? REASON_CHANGED_LOCALE
           : witness->floats && !floats_are_plain() ? REASON_CHANGED_FLOATS
           : file_mask() != witness->mask           ? REASON_CHANGED_UMASK
           : blocked_changed(witness)               ? REASON_CHANGED_SIGNALS
           : handlers && handlers_changed(witness)  ? REASON_CHANGED_HANDLER
                                                    : REASON_NONE;
}

enum reason witness_end(struct witness *witness, bool handlers)
{
    const enum reason reason = witness ? changed(witness, handlers) : REASON_NONE;
    if (!witness)
        return REASON_NONE;
    if (witness->directory >= 0)
        close(witness->directory);
    free(witness->locale);
    free(witness);
    return reason;
}
