/* SPDX-License-Identifier: MIT */
/* verify_run.h - the conformance of one device: every case, its results printed and collected. */
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
    char op[32];                      /* the one that op_counts and reasons are about */
    json_t *ops, *reasons, *failures; /* reasons: {"text": count}, of unsupported cases */
    double drawn;                     /* when progress was shown last; 0: it is not shown */
};

/* Runs all cases of the filter on the device. Returns its part of the JSON result; NULL, and
 * said, if the device could not be tested. run->counts has the outcome. */
json_t *verify_device(struct verify_run *run, struct hw_device *device);

#endif
