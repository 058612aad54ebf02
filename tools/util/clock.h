/* SPDX-License-Identifier: MIT */
/* clock.h - a monotonic clock. */
#ifndef HW_MODEL_CLOCK_H
#define HW_MODEL_CLOCK_H

/* The time since some moment, in seconds or in nanoseconds. */
double now(void);
double now_ns(void);

#endif
