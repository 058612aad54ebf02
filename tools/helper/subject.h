/* SPDX-License-Identifier: MIT */
/* subject.h - the plugin that a helper program is about: it is found, checked, loaded and started
 * in the process that may crash or hang. */
#ifndef HELPER_SUBJECT_H
#define HELPER_SUBJECT_H

#include "cache/depends.h"
#include "load/verdict.h"
#include "open/registry.h"
#include "probe/examine.h"
#include "request.h"

#include <stdatomic.h>

/* An op that failed in the admission test: struct withdrawn without pointers. */
struct finding {
    uint32_t device, op, slow;
    int32_t dtype[MAX_OPERANDS];
    char why[VERDICT_TEXT];
};

/* The last request to the plugin. */
enum phase { PHASE_START, PHASE_DEVICE, PHASE_CLOSE, PHASE_COUNT };

/* Progress and findings of the workers of one plugin, in memory shared with the watcher. */
struct progress {
    char text[400]; /* "while its device 1 was opened" */
    uint32_t phase; /* enum phase */
    /* Before the plugin is loaded, the worker sets the members of struct verdict with these names,
     * for a verdict that the watcher gives in its place. */
    char depends[DEPENDS_BYTES];
    bool examined; /* `depends` is complete */
    bool locked;
    /* Is counted up when a case of the admission test begins, and when it ends: odd while one is
     * under way, of this device of the plugin, this op and these dtypes. */
    _Atomic uint32_t step;
    uint32_t device, op;
    int32_t dtype[MAX_OPERANDS];
    /* For each device, the number of the last case that was begun, from 1. Another worker may open
     * a device that one cannot. */
    uint32_t done[MAX_DEVICES];
    uint64_t spent; /* microseconds, on cases that came to an end, or were too slow */
    uint32_t tested, untested;
    uint32_t count;
    struct finding findings[VERDICT_WITHDRAWN];
    /* The forms of the cases so far, and how many of each form a device has left out for lack of
     * time. */
    uint32_t form_count;
    struct op_form forms[VERDICT_FORMS];
    uint8_t left[MAX_DEVICES][VERDICT_FORMS];
};

struct subject {
    const struct request *request;
    struct progress *progress;
    struct verdict *verdict;
    struct hw_context context;
    struct catalog found;
    struct candidate *candidate;
    struct examined examined;
    struct witness *witness; /* while the plugin is loaded or started */
};

/* Sets what is told if the process ends now. */
void subject_say(struct subject *subject, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The rest of the verdict is zero. */
void subject_begin(struct subject *subject, const struct request *request,
                   struct progress *progress, struct verdict *verdict);
/* Whether the file is the one that was asked for, and passes the checks. */
bool subject_find(struct subject *subject);
/* Loads and starts the plugin, and fills in what it has. False if it stopped. */
bool subject_start(struct subject *subject);
/* Closes it. */
void subject_close(struct subject *subject);
/* Fills in why it stopped, if it did: the last step. */
void subject_reason(struct subject *subject);

#endif
