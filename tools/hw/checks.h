/* SPDX-License-Identifier: MIT */
/* checks.h - what `hw doctor` looks at. */
#ifndef HW_TOOL_CHECKS_H
#define HW_TOOL_CHECKS_H

#include "report.h"

/* A new array of rows {"subject", "state", "text", "remedy"}: state is "good", "note" (worth
 * knowing, and it may be meant) or "problem"; remedy is null if there is nothing to do. One small
 * op is computed on each selected device. */
json_t *checks_of(const struct report *report);

#endif
