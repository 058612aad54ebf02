/* SPDX-License-Identifier: MIT */
/* checks.h - what `hw doctor` looks at. */
#ifndef HW_TOOL_CHECKS_H
#define HW_TOOL_CHECKS_H

#include "command/report.h"

/* A new array of rows {"subject", "state", "text", "remedy"}: state is "good", "note" (worth
 * knowing, and it may be meant) or "problem"; remedy is null if there is nothing to do. One small
 * op is computed on each selected device. An op that was withdrawn has a row for each of its types
 * in which it was, with "device" and "op" in it. */
json_t *checks_of(const struct report *report);
/* How many problems the rows are: that an op was withdrawn on a device is one. */
double checks_problems(const json_t *rows);

#endif
