/* SPDX-License-Identifier: MIT */
/* admission.h - what the admission test of the probe (tools/probe) found out about ops. */
#ifndef HW_OPEN_ADMISSION_H
#define HW_OPEN_ADMISSION_H

#include "open/verdict.h"

/* Withdraws what failed there from the devices that are selected for the first time: see
 * run/demotion.h; and lists what was left out: run/untested.h. */
enum hw_status admission_apply(const struct catalog *found);
/* The same for a plugin that was tried again since, before its devices are used: this verdict
 * replaces the earlier one. */
enum hw_status admission_renew(const struct plugin *plugin, const struct verdict *verdict);
/* Withdraws what a verdict says of one device, unless hw_device_reset() has cleared these bits of
 * hw_device.demoted meanwhile. */
enum hw_status admission_take(struct hw_device *device, const struct verdict *verdict,
                              uint32_t unless_cleared);

#endif
