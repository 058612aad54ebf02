/* SPDX-License-Identifier: MIT */
/* admission.h - brings the results of the probe's admission test (tools/probe) to the devices. */
#ifndef HW_OPEN_ADMISSION_H
#define HW_OPEN_ADMISSION_H

#include "load/verdict.h"

/* For the devices that are selected for the first time: withdraws the ops that failed the test,
 * and lists the forms that it skipped (route/op_state.h). */
enum hw_status admission_apply(const struct catalog *found);
/* Replaces the results for a plugin that has been tried again, before its devices are used. */
enum hw_status admission_renew(const struct plugin *plugin, const struct verdict *verdict);
/* Tests one form of an op that the admission test skipped, in hw-probe; withdraws the op if it
 * fails. Called with no lock held. */
void admission_test(struct hw_device *device, const struct op_form *form);

#endif
