/* SPDX-License-Identifier: MIT */
/* Blocks a signal. */
#define _POSIX_C_SOURCE 200809L
#define NAME            "changes_mask"
#define CHANGES
#include "minimal.h"

#include <signal.h>

static int32_t bad_open(const struct hw_host *host, void **self)
{
    sigset_t more;
    sigemptyset(&more);
    sigaddset(&more, SIGUSR2);
    sigprocmask(SIG_BLOCK, &more, NULL);
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
