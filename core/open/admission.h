/* SPDX-License-Identifier: MIT */
/* admission.h - what the admission test of the probe (tools/probe) found out about ops. */
#ifndef HW_OPEN_ADMISSION_H
#define HW_OPEN_ADMISSION_H

#include "core.h"

struct verdict;

/* Withdraws what failed there from the selected devices: see run/demotion.h. */
enum hw_status admission_apply(struct hw_context *context);
/* The same for a plugin that was tried again since, before its devices are used: this verdict
 * replaces the earlier one. */
enum hw_status admission_renew(const struct plugin *plugin, const struct verdict *verdict);

#endif
