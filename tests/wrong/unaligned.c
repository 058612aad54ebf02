/* SPDX-License-Identifier: MIT */
/* unaligned.c - a plugin whose buffers start 24 bytes after a multiple of 256. */
#include "reference.h"

enum { SHIFT = 24 };

static int32_t shifted_alloc(void *device, uint64_t bytes, uint32_t flags,
                             struct hw_buffer *buffer)
{
    (void)device;
    char *memory = aligned_alloc(256, (size_t)((bytes + SHIFT + 255) & ~UINT64_C(255)));
    if (!memory)
        return HW_NO_MEMORY;
    buffer->impl = memory;
    buffer->host = memory + SHIFT;
    buffer->flags = flags;
    return HW_OK;
}

static void shifted_free(void *device, struct hw_buffer *buffer)
{
    (void)device;
    free(buffer->impl);
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    const int32_t status = reference_fill(table, &reference_ops);
    table->buffer_alloc = shifted_alloc;
    table->buffer_free = shifted_free;
    return status;
}
HW_PLUGIN("unaligned", "vendor=tests\n", fill)
