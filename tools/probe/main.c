/* SPDX-License-Identifier: MIT */
/* main.c - hw-probe: tries one plugin for the library, which starts it when a plugin has no verdict
 * or an op has to be tested, and keeps the verdict in the cache. core/load/probe.h has the
 * arguments; the reply, a verdict, goes to descriptor 3. */
#define _GNU_SOURCE
#include "base/platform.h"
#include "load/probe.h"
#include "probe/record.h"
#include "probe/verdict_write.h"
#include "watch.h"

#include <build_stamp.h>
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

/* Keeps the verdict in these bytes for later starts. Forms that an older verdict knows count as
 * tested, so the bytes may be replaced. */
static void keep(struct request *request, unsigned char **bytes, size_t *size)
{
    static struct hw_context context;
    struct candidate candidate = { .key = request->key, .real = request->file };
    struct verdict verdict;
    if (!request->key || !verdict_decode(&verdict, *bytes, *size))
        return;
    const struct probe_time when = {
        request->time, (uint32_t)((microseconds_now() - request->started_us) / 1000000)
    };
    context.settings = request->settings;
    strcpy(candidate.name, request->name);
    if (request->has_only) {
        if (!verdict.reason)
            record_more(&context, &candidate, &request->only, &verdict, &when);
    } else {
        unsigned char *better = NULL;
        record(&context, &candidate, &verdict, &when);
        if (verdict_encode(&verdict, &better, size)) {
            free(*bytes);
            *bytes = better;
        }
    }
    verdict_free(&verdict);
}

/* Keeps the verdict that an earlier process could not keep, because it was killed or stopped. */
static int keep_end(struct request *request)
{
    char none[] = "";
    struct verdict verdict = { .reason = request->ended, .depends = none };
    unsigned char *bytes = NULL;
    size_t size;
    if (!verdict_encode(&verdict, &bytes, &size))
        return NO_MEMORY;
    keep(request, &bytes, &size);
    free(bytes);
    return 0;
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
    /* A row that the plugin does not have is an error of hw_queue_open(), not a fault of its
     * devices. */
    static char all_rows[] = "";
    request.settings.value[SETTING_kernel].text = all_rows;
    if (request.ended)
        return keep_end(&request);
    /* The reply's first bytes are sent at once: they distinguish a helper that cannot run from one
     * that a plugin has killed. */
    if (!reply(verdict_magic, sizeof verdict_magic))
        return NO_READER;
    if (!watch(&request, &bytes, &size))
        return NO_MEMORY;
    keep(&request, &bytes, &size);
    const bool sent = reply(bytes + sizeof verdict_magic, size - sizeof verdict_magic);
    free(bytes);
    /* This process has not loaded the plugin, so it can exit normally. */
    return sent ? 0 : NO_READER;
}
