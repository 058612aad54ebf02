/* SPDX-License-Identifier: MIT */
/* Installs a signal handler. */
#define _POSIX_C_SOURCE 200809L
#define NAME            "changes_handlers"
#define CHANGES
#include "minimal.h"

#include <signal.h>

static void change(struct hw_plugin *table)
{
    signal(SIGUSR1, SIG_IGN);
    (void)table;
}
