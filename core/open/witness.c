/* SPDX-License-Identifier: MIT */
/* witness.c - detects a plugin that changes process state of the application. Checks only the state
 * that is cheap to check. */
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
    int directory; /* descriptor of the working directory */
    char *locale;
    struct sigaction actions[sizeof watched / sizeof *watched];
    sigset_t blocked;
    mode_t mask;
    char *variables; /* "NAME=value" strings, one after the other; NULL: not known */
    size_t variable_count;
    bool floats;
};

extern char **environ;

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

static void keep_variables(struct witness *witness)
{
    size_t bytes = 1, used = 0;
    for (char **entry = environ; entry && *entry; entry++)
        bytes += strlen(*entry) + 1;
    witness->variables = malloc(bytes);
    for (char **entry = environ; witness->variables && entry && *entry; entry++) {
        const size_t length = strlen(*entry) + 1;
        memcpy(witness->variables + used, *entry, length);
        used += length;
        witness->variable_count++;
    }
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
    keep_variables(witness);
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

static bool restore_blocked(const struct witness *witness)
{
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&now, i) != sigismember(&witness->blocked, i)) {
            pthread_sigmask(SIG_SETMASK, &witness->blocked, NULL);
            return true;
        }
    return false;
}

static bool restore_mask(const struct witness *witness)
{
    return umask(witness->mask) != witness->mask;
}

/* Whether the environment has this variable with this value. */
static bool has_variable(const char *text)
{
    for (char **entry = environ; entry && *entry; entry++)
        if (strcmp(*entry, text) == 0)
            return true;
    return false;
}

/* Restores variables that existed before, and does not blame the plugin. Run-time libraries add
 * variables of their own, and one library cuts the list in a variable into parts in place. */
static void restore_variables(const struct witness *witness)
{
    char *text = witness->variables;
    for (size_t i = 0; text && i < witness->variable_count; i++) {
        const size_t length = strlen(text);
        char *equals = strchr(text, '=');
        if (!has_variable(text) && equals && equals != text) {
            *equals = '\0';
            setenv(text, equals + 1, 1);
        }
        text += length + 1;
    }
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

enum reason witness_end(struct witness *witness, bool handlers)
{
    enum reason what = REASON_NONE;
    if (!witness)
        return REASON_NONE;
    if (handlers && restore_handlers(witness))
        what = REASON_CHANGED_HANDLER;
    if (restore_blocked(witness))
        what = REASON_CHANGED_SIGNALS;
    restore_variables(witness);
    if (restore_mask(witness))
        what = REASON_CHANGED_UMASK;
    if (witness->floats && !floats_are_plain())
        what = REASON_CHANGED_FLOATS;
    if (restore_locale(witness))
        what = REASON_CHANGED_LOCALE;
    if (restore_directory(witness))
        what = REASON_CHANGED_DIRECTORY;
    if (witness->directory >= 0)
        close(witness->directory);
    free(witness->variables);
    free(witness->locale);
    free(witness);
    return what;
}
