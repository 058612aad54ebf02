/* SPDX-License-Identifier: MIT */
/* memory.h - checks a device's memory against the promises of hw.h. */
#ifndef VERIFY_MEMORY_H
#define VERIFY_MEMORY_H

#include <hw/hw.h>

#include <stdbool.h>
#include <stddef.h>

/* Whether buffers that the host can see begin at a multiple of the device's alignment, at least
 * 256. If not, `why` is a sentence. Passes if the device has no such buffers, or if memory runs
 * out. */
bool memory_is_aligned(struct hw_device *device, char *why, size_t size);

#endif
