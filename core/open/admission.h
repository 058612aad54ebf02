/* SPDX-License-Identifier: MIT */
/* admission.h - applies the results of the probe's admission test (tools/probe) to devices. */
#ifndef HW_OPEN_ADMISSION_H
#define HW_OPEN_ADMISSION_H

#include "open/verdict.h"

/* For the devices that are selected for the first time: withdraws the ops that failed the test
 * (run/demotion.h), and lists the ops that it skipped (run/untested.h). */
enum hw_status admission_apply(const struct catalog *found);
/* Replaces the results for a plugin that has been tried again, before its devices are used. */
enum hw_status admission_renew(const struct plugin *plugin, const struct verdict *verdict);
/* Withdraws the ops that failed on one device by this verdict. Does nothing if hw_device_reset()
 * has cleared the bits `unless_cleared` of hw_device.demoted meanwhile. */
enum hw_status admission_take(struct hw_device *device, const struct verdict *verdict,
                              uint32_t unless_cleared);

#endif
