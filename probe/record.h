/* SPDX-License-Identifier: MIT */
/* record.h - keeps verdicts for later starts. If that fails, the next start tries the plugin
 * again. */
#ifndef HW_PROBE_RECORD_H
#define HW_PROBE_RECORD_H

#include "load/probe.h"
#include "load/verdict.h"

/* When the application started the probe, in seconds since 1970 by its clock, and for how many
 * seconds it has run. */
struct probe_time {
    int64_t began;
    uint32_t took;
};

/* Stores a new verdict in the cache. Forms that passed by the old verdict count as tested, in
 * `verdict` as well. The candidate needs only a name, a key and the path without links.
 */
void record(struct hw_context *context, const struct candidate *candidate,
            struct verdict *verdict, const struct probe_time *time);

/* Adds the result of a later test of one form to the verdict in the cache. If two processes do so
 * at once, one result may get lost; that form is then tested again. */
void record_more(struct hw_context *context, const struct candidate *candidate,
                 const struct only *only, const struct verdict *found,
                 const struct probe_time *time);

#endif
