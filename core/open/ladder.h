/* SPDX-License-Identifier: MIT */
/* ladder.h - the stages that a file passes before its devices can be used, and their source files:
 *
 *   list       scan.c       which files are there?
 *   filter     select.c     do the settings exclude the name? (The file is not opened.)
 *   trust      trust.c      who could have written the file?
 *   preflight  preflight.c  is it a plugin for this system? (The file is read, not run: object/)
 *   match      match.c      does the system list hardware for it?
 *   probe      probe.c      does it start in a process of its own, and which devices has it?
 *   bind       first_use.c  when one of its devices is first used:
 *              bind.c       load it into this process
 *              start.c      start it here
 *
 * A candidate that stops at a stage gets a reason (reasons.def), a message and a remedy. */
#ifndef HW_OPEN_LADDER_H
#define HW_OPEN_LADDER_H

#include "open/candidate.h"

/* Takes all candidates through the stages until they stop or can be used. */
void climb_all(struct catalog *found);

/* Whether the plugin was built together with the library and touches no driver: it needs neither
 * hardware nor a vendor's library. The candidate must have a manifest. */
bool is_own(const struct candidate *candidate);

/* climb_checks() does the stages up to match, which run nothing of the file. climb_rest() lists the
 * devices of the verdict or, without one, loads and starts the plugin in this process; then it adds
 * the plugin to the catalog. False if the candidate stopped. */
bool climb_checks(struct hw_context *context, struct candidate *candidate);
bool climb_rest(struct hw_context *context, struct candidate *candidate);

/* Binds candidate->plugin, whose devices were listed from a verdict. Checks the file again, probes
 * it again if the verdict does not hold any more, then loads and starts the plugin. */
bool climb_again(struct hw_context *context, struct candidate *candidate);
/* Checks the file again before more of its ops are tested. File and driver must be the same as for
 * `tested`. Nothing of the file runs. The file stays open until let_go(). */
bool climb_to_test(struct hw_context *context, struct candidate *candidate,
                   const struct candidate *tested);
/* Closes the file. */
void let_go(struct candidate *candidate);

#endif
