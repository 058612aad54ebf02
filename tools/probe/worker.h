/* SPDX-License-Identifier: MIT */
/* worker.h - what is done in the process that may crash or hang: a plugin is loaded and
 * started, and its devices are opened and compute small cases of each op. */
#ifndef PROBE_WORKER_H
#define PROBE_WORKER_H

#include "watched.h"

/* Adds a finding, unless it is there already. False if there are too many. */
bool progress_add(struct progress *progress, const struct finding *finding);
/* Counts a case of this form that the device has not computed, for want of time: the library has it
 * tested before it first needs it. */
void progress_leave_out(struct progress *progress, uint32_t device,
                        const struct op_form *form);

/* Fills the verdict, whatever happens, unless the plugin ends the process. */
void worker_run(const struct request *request, struct progress *progress,
                struct verdict *verdict);

#endif
