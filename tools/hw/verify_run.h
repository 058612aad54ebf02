/* SPDX-License-Identifier: MIT */
/* verify_run.h - runs the cases on one device, and prints and collects their results. */
#ifndef HW_TOOL_VERIFY_RUN_H
#define HW_TOOL_VERIFY_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <verify.h>

struct verify_run {
    const char *subject; /* how the user named the device or file */
    struct verify_filter filter;
    bool verbose;   /* prints every case */
    double timeout; /* seconds for a case; 0: no limit */
    /* Called if a case does not end in time, on another thread, with the device's part of the
     * result. It must end the process. */
    void (*give_up)(void *user, json_t *device);
    void *user;

    const char *device;
    struct verify_counts counts, op_counts;
    char op[32]; /* the op that op_counts and reasons are about */
    json_t *ops, *reasons,
        *failures;  /* reasons: {"text": count} of the unsupported cases */
    json_t *prints; /* names of the ops that printed; the caller makes and releases it */
    /* when progress was last shown; 0: none is on the terminal */
    double drawn;
    const char *doing; /* the op of the case that runs, or "open" */
    char test[400];    /* the case */
};

/* Runs all cases that match the filter on the device. Returns its part of the JSON result;
 * NULL, with a complaint, if it could not be tested. The outcome is in run->counts. */
json_t *verify_device(struct verify_run *run, struct hw_device *device);

#endif
