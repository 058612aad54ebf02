/* SPDX-License-Identifier: MIT */
/* witness.c - whether a plugin changed state of the process that belongs to the
 * application: the part of it that can be checked cheaply. */
#define _DEFAULT_SOURCE
#include "open/witness.h"

#include <fcntl.h>
#include <float.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define ALONE (__libc_single_threaded != 0)
#endif
#endif
#ifndef ALONE
#define ALONE false
#endif

static const int watched[] = { SIGINT,  SIGTERM, SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                               SIGABRT, SIGPIPE, SIGCHLD, SIGHUP, SIGALRM, SIGUSR1 };
#define WATCHED (int)(sizeof watched / sizeof *watched)

struct witness {
    int directory; /* a descriptor of the working directory */
    char *locale;
    struct sigaction actions[sizeof watched / sizeof *watched];
    bool floats;
};

/* Whether the mode is rounding to nearest, with denormal numbers in inputs and results. */
static bool floats_are_plain(void)
{
    volatile float one = 1.0f, half_step = FLT_EPSILON / 4, tiny = FLT_MIN, half = 0.5f;
    volatile float up = one + half_step, down = -one - half_step, denormal = tiny * half;
    volatile float twice = denormal + denormal;
    return up == one && down == -one && denormal != 0.0f && twice == tiny;
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
    for (int i = 0; i < WATCHED; i++)
        sigaction(watched[i], NULL, &witness->actions[i]);
    return witness;
}

static bool restore_handlers(const struct witness *witness)
{
    bool changed = false;
    for (int i = 0; i < WATCHED; i++) {
        struct sigaction now;
        if (sigaction(watched[i], NULL, &now) == 0 &&
            now.sa_handler != witness->actions[i].sa_handler) {
            sigaction(watched[i], &witness->actions[i], NULL);
            changed = true;
        }
    }
    return changed;
}

static bool restore_locale(const struct witness *witness)
{
    const char *now = setlocale(LC_ALL, NULL);
    if (!now || !witness->locale || strcmp(now, witness->locale) == 0)
        return false;
    setlocale(LC_ALL, witness->locale);
    return true;
}

static bool restore_directory(const struct witness *witness)
{
    struct stat before, now;
    if (witness->directory < 0 || fstat(witness->directory, &before) || stat(".", &now) ||
        (before.st_dev == now.st_dev && before.st_ino == now.st_ino))
        return false;
    /* If going back fails, the report still says what the plugin changed. */
    int back = fchdir(witness->directory);
    (void)back;
    return true;
}

const char *witness_end(struct witness *witness, bool handlers)
{
    const char *what = NULL;
    if (!witness)
        return NULL;
    if (handlers && restore_handlers(witness))
        what = "a signal handler";
    if (witness->floats && !floats_are_plain())
        what = "the floating-point mode";
    if (restore_locale(witness))
        what = "the locale";
    if (restore_directory(witness))
        what = "the working directory";
    if (witness->directory >= 0)
        close(witness->directory);
    free(witness->locale);
    free(witness);
    return what;
}
