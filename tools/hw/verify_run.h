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
    bool verbose; /* prints every case */

    const char *device;
    struct verify_counts counts, op_counts;
    char op[32]; /* the op that op_counts and reasons are about */
    json_t *ops, *reasons,
        *failures; /* reasons: {"text": count} of the unsupported cases */
    /* when progress was last shown; 0: none is on the terminal */
    double drawn;
};

/* Runs all cases that match the filter on the device. Returns its part of the JSON result;
 * NULL, with a complaint, if it could not be tested. The outcome is in run->counts. */
json_t *verify_device(struct verify_run *run, struct hw_device *device);

#endif
