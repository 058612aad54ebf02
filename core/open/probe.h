/* SPDX-License-Identifier: MIT */
/* probe.h - the stage probe: starts a plugin and lists its devices. */
#ifndef HW_OPEN_PROBE_H
#define HW_OPEN_PROBE_H

#include "open/candidate.h"

bool probe(struct hw_context *context, struct candidate *candidate);

#endif
