/* SPDX-License-Identifier: MIT */
/* watch.c - the processes of one plugin. If one ends or hangs in an op of the admission test, it is
 * followed by another one, which goes on behind that op. */
#define _GNU_SOURCE
#include "watch.h"

#include "base/process.h"
#include "open/child.h"
#include "watched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in the worker ---- */

/* What the first descriptors lead to, to see whether the plugin leaves them alone. */
struct files {
    struct stat info[PROCESS_ANSWER + 1];
};

static bool same_files(const struct files *before)
{
    struct stat now;
    for (int fd = 0; fd <= PROCESS_ANSWER; fd++)
        if (fstat(fd, &now) || now.st_dev != before->info[fd].st_dev ||
            now.st_ino != before->info[fd].st_ino)
            return false;
    return true;
}

__attribute__((noreturn)) static void work(const struct request *request,
                                           struct progress *progress)
{
    struct verdict verdict = { 0 };
    struct files files;
    unsigned char *bytes;
    size_t size;
    close_from(PROCESS_ANSWER + 1);
    plain_signals();
    limit_core();
    limit_time(request);
    limit_memory();
    for (int fd = 0; fd <= PROCESS_ANSWER; fd++)
        fstat(fd, &files.info[fd]);
    worker_run(request, progress, &verdict);
    if (!same_files(&files))
        _exit(LOST_REPLY);
    if (!verdict_encode(&verdict, &bytes, &size) || !reply(bytes, size))
        _exit(BAD_END);
    _exit(0);
}

/* ---- after it ---- */

/* A case that is too slow may be so for its compiler, and says nothing about other dtypes. If it
 * had more time than once HW_PROBE_TIMEOUT, it hangs, and others of the op would as well. */
static void blame_form(const struct watched *watched, struct finding *finding)
{
    const struct progress *progress = watched->progress;
    bool known = watched->case_stretch == 1;
    for (int i = 0; i < MAX_OPERANDS; i++)
        known = known && progress->dtype[i] >= 0 && progress->dtype[i] < HW_DTYPE_END;
    if (known)
        memcpy(finding->dtype, progress->dtype, sizeof finding->dtype);
}

/* Withdraws the op that ended the worker. False if there was none: what the plugin wrote into the
 * memory that is shared is not trusted. */
static bool blame_op(struct watched *watched, const struct request *request)
{
    struct progress *progress = watched->progress;
    struct finding finding = { .device = progress->device, .op = progress->op };
    if (!atomic_load(&progress->begun) || finding.device >= MAX_DEVICES ||
        finding.op >= HW_OP_COUNT)
        return false;
    if (watched->late && !watched->stopped) {
        finding.seconds = request->settings.probe_timeout * watched->case_stretch;
        progress->spent += finding.seconds * UINT64_C(1000000);
        blame_form(watched, &finding);
    }
    enum reason reason;
    char *why = why_it_ended(watched, request, &reason);
    snprintf(finding.why, sizeof finding.why, "%s", why ? why : "");
    const bool added = why && progress_add(progress, &finding);
    free(why);
    return added;
}

static void prepare_again(struct watched *watched)
{
    free(watched->bytes);
    *watched = (struct watched){ .progress = watched->progress,
                                 .patience = watched->patience,
                                 .stretch = watched->stretch,
                                 .case_stretch = watched->case_stretch };
    atomic_store(&watched->progress->begun, 0);
    (void)!reply(verdict_magic, sizeof verdict_magic); /* a sign of life */
}

bool watch(const struct request *request, unsigned char **bytes, size_t *size)
{
    struct watched watched;
    if (!watched_prepare(&watched, request))
        return reply_without_it(errno, bytes, size);
    for (int starts = 1;; starts++) {
        if (!watched_start(&watched, request, work))
            return reply_without_it(errno, bytes, size);
        watched_wait(&watched, NULL);
        watched_kill(&watched);
        watched_close(&watched);
        if (watched_is_good(&watched))
            break;
        const bool by_op = blame_op(&watched, request);
        if (starts == PROBE_STARTS || !by_op)
            return reply_in_its_place(
                &watched, request, by_op ? REASON_FAILING_OPS : REASON_NONE, bytes, size);
        prepare_again(&watched);
    }
    *bytes = watched.bytes;
    *size = watched.size;
    return true;
}
