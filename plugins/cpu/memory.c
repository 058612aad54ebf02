/* SPDX-License-Identifier: MIT */
/* Memory: ordinary memory of the host. Large blocks request huge pages, which avoid TLB misses when
 * weights are streamed. */
#define _GNU_SOURCE /* madvise */
#include "cpu.h"

#include <stdlib.h>
#include <sys/mman.h>

#define ALIGNMENT  256
#define HUGE_PAGE  (UINT64_C(2) << 20)
#define HUGE_BYTES (UINT64_C(4) << 20) /* blocks from here on are worth huge pages */

/* The target of hw_buffer.impl. */
struct block {
    void *address; /* NULL if imported: not freed */
};

/* Both calls are hints and may fail. The C library may return memory that was in use before and has
 * small pages. Dropping them makes the next write allocate a new page. */
static void ask_for_huge_pages(void *address, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    if (madvise(address, bytes, MADV_HUGEPAGE) == 0)
        madvise(address, bytes, MADV_DONTNEED);
#else
    (void)address, (void)bytes;
#endif
}

static uint64_t alignment_of(uint64_t bytes)
{
    return bytes >= HUGE_BYTES ? HUGE_PAGE : ALIGNMENT;
}

uint64_t memory_whole(uint64_t bytes)
{
    const uint64_t alignment = alignment_of(bytes);
    return bytes ? (bytes + alignment - 1) / alignment * alignment : alignment;
}

/* Rejects sizes that no allocator can serve; smaller sizes cannot overflow when rounded up. */
void *memory_get(uint64_t bytes, bool zeroed)
{
    if (bytes > SIZE_MAX / 4)
        return NULL;
    const uint64_t alignment = alignment_of(bytes), whole = memory_whole(bytes);
    void *address = aligned_alloc((size_t)alignment, (size_t)whole);
    if (address && alignment == HUGE_PAGE)
        ask_for_huge_pages(address, (size_t)whole);
    if (address && zeroed)
        memset(address, 0, (size_t)bytes);
    return address;
}

int32_t memory_alloc(void *device, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer)
{
    const struct device *dev = device;
    const uint32_t known = HW_BUFFER_HOST_VISIBLE | HW_BUFFER_PINNED | HW_BUFFER_READ_ONLY |
                           HW_BUFFER_WRITE_ONLY | HW_BUFFER_ZEROED;
    if (flags & ~known)
        return too_new(dev->host, "allocate");
    struct block *block = malloc(sizeof *block);
    void *address = block ? memory_get(bytes, flags & HW_BUFFER_ZEROED) : NULL;
    if (!address) {
        uint64_t total, left;
        free(block);
        machine_memory("", &total, &left);
        return hw_fail(dev->host, HW_NO_MEMORY,
                       "cannot allocate %llu bytes: %llu of %llu bytes of memory are free",
                       (unsigned long long)bytes, (unsigned long long)left,
                       (unsigned long long)total);
    }
    block->address = address;
    buffer->impl = block;
    buffer->host = address;
    buffer->device = device;
    buffer->offset = 0;
    buffer->bytes = bytes;
    buffer->flags = flags | HW_BUFFER_HOST_VISIBLE;
    return HW_OK;
}

void memory_free(void *device, struct hw_buffer *buffer)
{
    struct block *block = buffer->impl;
    (void)device;
    free(block->address);
    free(block);
}

int32_t memory_import(void *device, const struct hw_import *desc, struct hw_buffer *buffer)
{
    const struct device *dev = device;
    if (strcmp(desc->kind, "host") != 0)
        return hw_fail(dev->host, HW_UNSUPPORTED,
                       "import: the CPU plugin imports memory of kind \"host\", not \"%s\"",
                       desc->kind);
    if (!hw_knows(desc, sizeof *desc) ||
        desc->flags & ~(uint32_t)(HW_BUFFER_READ_ONLY | HW_BUFFER_WRITE_ONLY))
        return too_new(dev->host, "import");
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return hw_fail(dev->host, HW_NO_MEMORY, "import: out of memory");
    buffer->impl = block;
    buffer->host = (char *)desc->handle + desc->offset;
    buffer->device = device;
    buffer->offset = 0;
    buffer->bytes = desc->bytes;
    buffer->flags |= HW_BUFFER_HOST_VISIBLE;
    return HW_OK;
}

static char *address_of(const struct hw_buffer *buffer, const void *host)
{
    return (char *)(uintptr_t)(buffer ? buffer->host : host);
}

int32_t memory_transfer(void *queue, const struct hw_transfer *transfer)
{
    if (!hw_knows(transfer, sizeof *transfer))
        return too_new(((struct queue *)queue)->device->host, "transfer");
    hw_transfer_host(transfer,
                     address_of(transfer->dst, transfer->dst_host) + transfer->dst_offset,
                     address_of(transfer->src, transfer->src_host) + transfer->src_offset);
    return HW_OK;
}
