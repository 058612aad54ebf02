/* SPDX-License-Identifier: MIT */
/* memory.c - see memory.h. */
#include "memory.h"

#include <stdint.h>
#include <stdio.h>

static uint64_t alignment_of(struct hw_device *device)
{
    struct hw_device_info info = { .size = sizeof info };
    const uint64_t own = hw_device_info(device, &info) ? 0 : info.buffer_alignment;
    return own > 256 ? own : 256;
}

bool memory_is_aligned(struct hw_device *device, char *why, size_t size)
{
    static const uint64_t bytes[] = { 1, 1000, 3 << 20 };
    enum { COUNT = sizeof bytes / sizeof bytes[0] };
    struct hw_buffer *buffers[COUNT] = { NULL };
    const uint64_t alignment = alignment_of(device);
    bool aligned = true;

    for (int i = 0; i < COUNT && aligned; i++) {
        const enum hw_status status = hw_buffer_alloc(device, bytes[i],
                                                      HW_BUFFER_HOST_VISIBLE, &buffers[i]);
        const uintptr_t address = status ? 0 : (uintptr_t)hw_buffer_host(buffers[i]);
        aligned = status == HW_OK || status == HW_UNSUPPORTED || status == HW_NO_MEMORY;
        if (!aligned)
            snprintf(why, size, "%s", hw_message());
        else if (address % alignment) {
            aligned = false;
            snprintf(why, size,
                     "a buffer begins %d bytes past a multiple of %d, its alignment",
                     (int)(address % alignment), (int)alignment);
        }
    }
    for (int i = 0; i < COUNT; i++)
        hw_buffer_free(buffers[i]);
    return aligned;
}
