/* SPDX-License-Identifier: MIT */
/* main.c - hw-probe: tries one plugin for the library, which starts it when a context is
 * opened. core/open/child.h has the arguments; the reply, a verdict, goes to descriptor 3. */
#define _GNU_SOURCE
#include "open/child.h"
#include "watch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

enum { BAD_USAGE = 2, OTHER_BUILD = 3, NO_MEMORY = 4, NO_READER = 5 };

static const char usage[] =
    "hw-probe tries a plugin in a process of its own. The library of hw starts it; there is\n"
    "no use in starting it by hand: `hw status` shows what it found, `hw verify FILE` tests a\n"
    "plugin.\n";

/* Ends this process when the application ends. The thread that started it waits for it, so it lives
 * long enough. */
static void end_with_parent(void)
{
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

int main(int count, char **arguments)
{
    struct request request;
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (count < PROBE_SETTINGS) {
        fputs(usage, stderr);
        return BAD_USAGE;
    }
    if (strcmp(arguments[PROBE_STAMP], HW_BUILD_STAMP) != 0) {
        reply(probe_other, sizeof probe_other);
        return OTHER_BUILD;
    }
    end_with_parent();
    helper_settle();
    helper_volunteer();
    if (!request_read(&request, count, arguments))
        return BAD_USAGE;
    /* The reply's first bytes are sent at once: they distinguish a helper that cannot run from one
     * that a plugin has killed. */
    if (!reply(verdict_magic, sizeof verdict_magic))
        return NO_READER;
    if (!watch(&request, &bytes, &size))
        return NO_MEMORY;
    const bool sent = reply(bytes + sizeof verdict_magic, size - sizeof verdict_magic);
    free(bytes);
    /* This process has not loaded the plugin, so it can exit normally. */
    return sent ? 0 : NO_READER;
}
