/* SPDX-License-Identifier: MIT */
/* watched.h - the process of a plugin, as the program sees it that watches over it: its deadline,
 * its end, what it prints, what it leaves behind. */
#ifndef HELPER_WATCHED_H
#define HELPER_WATCHED_H

#include "stopwatch.h"
#include "subject.h"

#include <sys/types.h>

enum {
    TAIL = 400, /* bytes of its output that are kept: the last ones */
    /* Its exit status if an op made a device unusable, for this process at least; if memory runs
     * out; and if its descriptors are not its own any more. */
    DEVICE_LOST = 97,
    BAD_END = 98,
    LOST_REPLY = 99
};

struct watched {
    pid_t id;
    int reply, output; /* pipes' ends to read */
    struct progress *progress;
    /* The limits: `seconds`, which is HW_PROBE_TIMEOUT, for everything but the cases of the
     * admission test together, and `case_times` as long for each case. */
    uint32_t seconds, case_times;
    uint32_t step;              /* at the last look: see struct progress */
    struct stopwatch stopwatch; /* since it began */
    uint64_t rest;              /* microseconds of the earlier steps that were not cases */
    unsigned char *bytes;       /* of the reply */
    size_t size;
    char tail[TAIL + 1];
    size_t tail_size;
    uint64_t printed; /* bytes in all */
    int status;
    bool ended, late, stopped;
    bool no_memory; /* for the reply */
};

/* ---- in the process of the plugin ---- */

/* The work of that process; it does not return. Descriptor 3 takes the reply. */
typedef void watched_fn(const struct request *request, struct progress *progress);

/* A core of one byte is none, also where a program takes them (core(5)). */
void limit_core(void);
/* Limits the private writable memory of the process to its present size (a sanitizer takes much)
 * plus half of the machine's memory, so a plugin that takes all of it harms nobody else. Memory
 * that drivers only reserve does not count. */
void limit_memory(void);
/* A sanitizer's handlers, and what the watcher blocks, are not the plugin's business. */
void plain_signals(void);

/* ---- in the program that watches ---- */

bool watched_prepare(struct watched *watched, const struct request *request);
bool watched_start(struct watched *watched, const struct request *request,
                   watched_fn *work);
/* Waits until the process ends, its time is over, or this is true; NULL: only for the first
 * two. */
typedef bool watched_done(const struct watched *watched);
void watched_wait(struct watched *watched, watched_done *done);
/* Keeps the end of what it prints. */
void take_output(struct watched *watched);
/* Leaves it a zombie, so that its number, and that of its group, stay its own. */
bool has_ended(const struct watched *watched);
/* Ends it, and all that it has started; takes its status. */
void watched_kill(struct watched *watched);
/* Takes the rest of its reply, once all are gone who could have written to it. */
void watched_close(struct watched *watched);

/* Whether a case was under way when it ended, as it says itself, or when its time was over. */
static inline bool watched_in_case(const struct watched *watched)
{
    return (watched->late ? watched->step : atomic_load(&watched->progress->step)) % 2;
}
/* Whether it has replied with a verdict, and ended well. */
bool watched_is_good(struct watched *watched);
const char *signal_words(int number);
/* Adds what it printed last to the message, which is freed. */
char *with_output(char *message, struct watched *watched);
/* Why it ended, for the one who reads the report. The caller frees it. */
char *why_it_ended(struct watched *watched, enum reason *reason);
/* A verdict that says so, with this reason instead of that of its end, unless it is REASON_NONE; or
 * that no process could be started. False if out of memory. */
bool reply_in_its_place(struct watched *watched, enum reason instead, unsigned char **bytes,
                        size_t *size);
bool reply_without_it(int error, unsigned char **bytes, size_t *size);

#endif
