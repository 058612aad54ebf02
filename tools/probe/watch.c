/* SPDX-License-Identifier: MIT */
/* watch.c - the processes of one plugin. If one ends or hangs in an op of the admission test, it is
 * followed by another one, which goes on behind that op. */
#define _GNU_SOURCE
#include "watch.h"

#include "base/process.h"
#include "load/probe.h"
#include "probe/verdict_write.h"
#include "watched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in the worker ---- */

/* The files behind the first descriptors, to see whether the plugin leaves them alone. */
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

/* Reads which case was under way. False if there was none: memory that the plugin can write is not
 * trusted. */
static bool read_case(const struct watched *watched, struct finding *finding)
{
    const struct progress *progress = watched->progress;
    bool known = watched_in_case(watched) && progress->device < MAX_DEVICES &&
                 progress->op < HW_OP_COUNT;
    for (int i = 0; i < MAX_OPERANDS; i++)
        known = known && progress->dtype[i] >= 0 && progress->dtype[i] < HW_DTYPE_END;
    *finding = (struct finding){ .device = progress->device, .op = progress->op };
    memcpy(finding->dtype, progress->dtype, sizeof finding->dtype);
    return known;
}

/* Withdraws the op that ended the worker, with any dtypes. False if there was none. */
static bool withdraw_op(struct watched *watched, struct finding *finding)
{
    enum reason reason;
    char *why = why_it_ended(watched, &reason);
    memset(finding->dtype, 0, sizeof finding->dtype);
    finding->slow = watched->late && !watched->stopped;
    snprintf(finding->why, sizeof finding->why, "%s", why ? why : "");
    const bool added = why && progress_add(watched->progress, finding);
    free(why);
    return added;
}

/* A case that is slow may be so for its compiler, or for a device that is busy: it is left out, and
 * tested with more time before the op is first used. Its time counts, so that no other is begun. */
static bool blame_op(struct watched *watched, const struct request *request)
{
    struct progress *progress = watched->progress;
    struct finding finding;
    if (!read_case(watched, &finding))
        return false;
    if (!watched->late || watched->stopped || request->patient)
        return withdraw_op(watched, &finding);
    progress->spent += watched->seconds * UINT64_C(1000000);
    struct op_form form = { .op = finding.op };
    memcpy(form.dtype, finding.dtype, sizeof form.dtype);
    progress_leave_out(progress, finding.device, &form);
    return true;
}

static void prepare_again(struct watched *watched)
{
    free(watched->bytes);
    *watched = (struct watched){ .progress = watched->progress,
                                 .seconds = watched->seconds,
                                 .case_times = watched->case_times };
    atomic_store(&watched->progress->step, 0);
}

enum { STARTS = 5 }; /* of one plugin, at most */

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
        if (starts == STARTS || !by_op)
            return reply_in_its_place(&watched, by_op ? REASON_FAILING_OPS : REASON_NONE,
                                      bytes, size);
        prepare_again(&watched);
    }
    *bytes = watched.bytes;
    *size = watched.size;
    return true;
}
