/* SPDX-License-Identifier: MIT */
/* ladder.h - the stages that a file passes before its devices can be used. docs/architecture.md
 * lists them with their source files. A candidate that stops at a stage gets a reason
 * (reasons.def), a message and a remedy. */
#ifndef HW_OPEN_LADDER_H
#define HW_OPEN_LADDER_H

#include "open/candidate.h"

/* Takes all candidates through the stages until they stop or can be used. */
void climb_all(struct catalog *found);

/* Whether the plugin was built together with the library and touches no driver: it needs neither
 * hardware nor a vendor's library. The candidate must have a manifest. */
bool is_own(const struct candidate *candidate);

/* climb_checks() does the stages up to match, which run nothing of the file. climb_to_list() lists
 * the devices of the verdict or, without one, loads and starts the plugin in this process; then it
 * adds the plugin to the catalog. False if the candidate stopped. */
bool climb_checks(struct hw_context *context, struct candidate *candidate);
bool climb_to_list(struct hw_context *context, struct candidate *candidate);

/* Binds candidate->plugin, whose devices were listed from a verdict. Checks the file again, probes
 * it again if the verdict does not hold any more, then loads and starts the plugin. */
bool climb_to_bind(struct hw_context *context, struct candidate *candidate);
/* Checks the file again before more of its ops are tested. File and driver must be the same as for
 * the latest verdict. Nothing of the file runs. The file stays open until candidate_close(). */
bool climb_to_test(struct hw_context *context, struct candidate *candidate);

#endif
