/* SPDX-License-Identifier: MIT */
/* memory.h - whether a device's memory is what hw.h promises. */
#ifndef VERIFY_MEMORY_H
#define VERIFY_MEMORY_H

#include <hw/hw.h>

#include <stdbool.h>
#include <stddef.h>

/* Whether buffers that the host can see begin at a multiple of the device's alignment, 256 at
 * least. If not, `why` is a sentence. A device without such buffers, or out of memory, passes. */
bool memory_is_aligned(struct hw_device *device, char *why, size_t size);

#endif
