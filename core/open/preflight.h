/* SPDX-License-Identifier: MIT */
/* preflight.h - the stage preflight: reads the file without running it. */
#ifndef HW_OPEN_PREFLIGHT_H
#define HW_OPEN_PREFLIGHT_H

#include "open/candidate.h"

bool preflight(struct hw_context *context, struct candidate *candidate);
/* The second part, after the stage match: are the needed libraries there? */
bool preflight_libraries(struct hw_context *context, struct candidate *candidate);

#endif
