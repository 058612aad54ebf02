/* SPDX-License-Identifier: MIT */
/* checks.h - the checks of `hw doctor`. */
#ifndef HW_TOOL_CHECKS_H
#define HW_TOOL_CHECKS_H

#include "command/report.h"

/* Runs the checks, computing a small op on each selected device. Returns a new array of rows
 * {"subject", "state", "text", "remedy"}: state is "good", "note" (worth knowing, but maybe
 * intended) or "problem"; remedy is null if there is nothing to do. A withdrawn op has a row for
 * each combination of types, with "device" and "op" in it. */
json_t *checks_of(const struct report *report);
/* The number of problems. All rows of one withdrawn op on one device count as one. */
double checks_problems(const json_t *rows);
/* Whether the reason why a file is not used may be intended: something is not installed here, or
 * excluded. */
bool may_be_meant(const char *reason);

#endif
