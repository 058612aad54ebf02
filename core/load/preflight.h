/* SPDX-License-Identifier: MIT */
/* preflight.h - the stage preflight: reads the beginning of the file without running it. */
#ifndef HW_LOAD_PREFLIGHT_H
#define HW_LOAD_PREFLIGHT_H

#include "open/candidate.h"

bool preflight(struct hw_context *context, struct candidate *candidate);

#endif
