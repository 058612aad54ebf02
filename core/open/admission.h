/* SPDX-License-Identifier: MIT */
/* admission.h - what the admission test of the probe (tools/probe) found out about ops. */
#ifndef HW_OPEN_ADMISSION_H
#define HW_OPEN_ADMISSION_H

#include "core.h"

/* Withdraws what failed there from the selected devices: see run/demotion.h. */
enum hw_status admission_apply(struct hw_context *context);

#endif
