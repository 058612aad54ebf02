/* SPDX-License-Identifier: MIT */
/* trust.h - the stage trust: who could have written the file. */
#ifndef HW_OPEN_TRUST_H
#define HW_OPEN_TRUST_H

#include "open/candidate.h"

bool trust_check(struct hw_context *context, struct candidate *candidate);

#endif
