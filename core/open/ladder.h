/* SPDX-License-Identifier: MIT */
/* ladder.h - the stages that a file passes before its devices can be used, one per source file:
 *
 *   list       scan.c       which files are there?
 *   filter     select.c     do the settings exclude the name? (The file is not opened.)
 *   trust      trust.c      who could have written the file?
 *   preflight  preflight.c  is it a plugin for this system? (It is read, not run: object/)
 *   match      match.c      does the system list hardware for it?
 *   probe      child.c      does it start, in a process of its own, and what devices has it?
 *   bind       bind.c       when one of its devices is first used:
 *              load.c       load it into this process
 *              probe.c      start it here
 *
 * A candidate that stops at a stage gets a reason (reasons.def), a message and a remedy. */
#ifndef HW_OPEN_LADDER_H
#define HW_OPEN_LADDER_H

#include "open/candidate.h"

/* Takes all candidates through the stages until they stop or can be used. */
void climb_all(struct catalog *found);

/* Whether the plugin was built together with the library, and needs neither hardware nor a vendor's
 * library: it touches no driver. For a candidate with a manifest. */
bool is_own(const struct candidate *candidate);

/* The stages up to match, which run nothing of the file; and the rest: lists the devices that
 * its verdict says, or loads and starts it in this process, and adds its plugin to those that were
 * found. False if it stopped. */
bool climb_checks(struct hw_context *context, struct candidate *candidate);
bool climb_rest(struct hw_context *context, struct candidate *candidate);

/* The same file again, for candidate->plugin, whose devices were listed from a verdict: checks it,
 * has it tried again if the verdict does not hold any more, loads and starts it. */
bool climb_again(struct hw_context *context, struct candidate *candidate);
/* The same file again, to have more of it tested: checks it, and that it and its driver are those
 * that `tested` was about. Nothing of it runs. The file stays open until let_go(). */
bool climb_to_test(struct hw_context *context, struct candidate *candidate,
                   const struct candidate *tested);
/* Closes the file, and forgets what was read of it. */
void let_go(struct candidate *candidate);

#endif
