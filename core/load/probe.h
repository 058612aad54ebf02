/* SPDX-License-Identifier: MIT */
/* probe.h - the stage probe in a process of its own. The program hw-probe (tools/probe) loads the
 * plugin, starts it, opens its devices, and replies with a verdict. */
#ifndef HW_LOAD_PROBE_H
#define HW_LOAD_PROBE_H

#include "call/ops.h"
#include "load/trust.h"
#include "open/candidate.h"
#include "settings.h"

/* The arguments of hw-probe, in order. They are followed by settings, as <field>=<value>, and by
 * any of these:
 *
 *   library=<name><path>          a library that the process has loaded (load/loaded.h)
 *   only=<device>,<op>,<dtype>,...  numbers: only this form is to be tested
 *   key=<time> <plugin>\n<key>    hw-probe keeps its verdict in the cache
 *   ended=<number of a reason>    hw-probe keeps this as its verdict, and tries nothing
 *   call_seconds=<number>         the time of a call in hw-worker; 0: no limit
 */
#define LIBRARIES_MAX 512 /* further ones are left out */
enum probe_argument {
    PROBE_PROGRAM,
    PROBE_STAMP,    /* the build of the library; hw-probe must be of the same */
    PROBE_FOUND,    /* the path of the plugin, as it was found */
    PROBE_FILE,     /* the same without links */
    PROBE_IDENTITY, /* of the file: cache/depends.h */
    PROBE_SETTINGS
};

/* The reply of hw-probe is a verdict, whose magic comes at once. hw-probe keeps the time of the
 * plugin, and the library waits for as long as hw-probe runs. */

/* A form of an op that is tested before its first use. */
struct only {
    uint32_t device; /* the plugin's index */
    struct op_form form;
};

/* The whole reply of hw-probe if it is of another build than the library. */
extern const char probe_other[8];

/* Gives the candidate the verdict in these bytes, or stops it as the verdict says. False if the
 * bytes are not a verdict. */
bool probe_accept(struct candidate *candidate, const unsigned char *bytes, size_t size);

/* Gives each candidate a verdict, or stops it. A few run at once for each processor. Tests only
 * this form, if `only` is not NULL. */
void probe_all(struct hw_context *context, struct candidate *const list[], size_t count,
               const struct only *only);

/* A helper must be as trustworthy as a plugin, because it runs as well. Returns the path of the
 * helper, which the caller frees; or NULL, with a message in `why`. `task`: "tries plugins". */
char *helper_path(const struct hw_context *context, const char *name, const char *task,
                  struct distrust *why);

/* The command that starts hw-worker (tools/worker) for the candidate, which has the arguments of
 * hw-probe; or NULL: the candidate is stopped. */
char **probe_command(struct hw_context *context, struct candidate *candidate);
void probe_command_free(char **command);
/* Takes the reply of hw-worker, a verdict. `stopped`: somebody has stopped hw-worker before it
 * replied. False if the plugin has not started there: the candidate is stopped. */
bool probe_replied(struct candidate *candidate, const unsigned char *reply, size_t size,
                   bool stopped);

#endif
