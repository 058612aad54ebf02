/* SPDX-License-Identifier: MIT */
/* load.h - threads that launch at once on a stand-in, each on a queue of its own, two on each
 * device: for tests, which then count what reached the vendor. */
#ifndef STANDIN_LOAD_H
#define STANDIN_LOAD_H

#include <hw/hw.h>

enum { LOAD_THREADS = 4, LOAD_LAUNCHES = 1000, LOAD_DEVICES = 2 };

/* They start together, so that all want to load the same kernels. Fails the test if a call fails,
 * a result is wrong or another device computes it. */
void threads_launch_at_once(struct hw_context *context);

#endif
