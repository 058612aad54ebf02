/* SPDX-License-Identifier: MIT */
/* Buffers and transfers. Memory that the host can see is pinned host memory, which the device reads
 * and writes over the bus. The driver has one address space for both. */
#define _DEFAULT_SOURCE /* madvise */
#include "cuda.h"

#include <stdlib.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

/* ---- huge pages ---- */

enum { HUGE_PAGE = 2 << 20 };

#if defined(__linux__)

/* Rounds `bytes` up to whole pages. Returns NULL on failure. */
static void *map_pages(size_t *bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (*bytes > SIZE_MAX - page - HUGE_PAGE)
        return NULL;
    *bytes = (*bytes + page - 1) / page * page;
    char *all = mmap(NULL, *bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    const size_t before = HUGE_PAGE - (uintptr_t)all % HUGE_PAGE;
    char *memory = all + before;
    munmap(all, before);
    if (before < HUGE_PAGE)
        munmap(memory + *bytes, HUGE_PAGE - before);
    /* Failing to get huge pages does no harm. But without MADV_DONTFORK, after a fork the parent
     * would write to a copy, while the device keeps the old page. */
    (void)madvise(memory, *bytes, MADV_HUGEPAGE);
    if (!madvise(memory, *bytes, MADV_DONTFORK))
        return memory;
    munmap(memory, *bytes);
    return NULL;
}

static void unmap_pages(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

#else

static void *map_pages(size_t *bytes)
{
    (void)bytes;
    return NULL;
}

static void unmap_pages(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}

#endif

/* ---- allocating ---- */

static void release(struct device *device, const struct block *block)
{
    const struct driver *cuda = device->cuda;
    if (block->kind == BLOCK_REGISTERED)
        note(device, cuda->host_unregister(block->host), "unpin memory of the application");
    else if (block->kind == BLOCK_PAGES) {
        /* Otherwise the driver would take new mappings at this address for pinned memory. */
        const int result = cuda->host_unregister(block->host);
        note(device, result, "unpin host memory");
        if (!result)
            unmap_pages(block->host, block->bytes);
    } else if (block->kind == BLOCK_OURS && block->host)
        note(device, cuda->host_free(block->host), "free pinned host memory");
    else if (block->kind == BLOCK_OURS)
        note(device, cuda->memory_free(block->address), "free device memory");
}

/* The free bytes are of the whole device, for all its users. */
int32_t memory_reserve(struct device *device, uint64_t bytes, uint64_t *address)
{
    const int result = device->cuda->memory_alloc(address, bytes);
    size_t left = 0, total = 0;
    char what[160];
    if (!result)
        return HW_OK;
    if (device->cuda->memory_info(&left, &total))
        snprintf(what, sizeof what, "allocate %llu bytes of device memory",
                 (unsigned long long)bytes);
    else
        snprintf(what, sizeof what,
                 "allocate %llu bytes of device memory, of which %llu of %llu are free",
                 (unsigned long long)bytes, (unsigned long long)left,
                 (unsigned long long)total);
    return answer(device, result, what);
}

/* Allocates large memory in huge pages, which are pinned and filled faster than the driver's own
 * allocations. If there are none, or the driver does not pin them, `block` stays unchanged. */
static int32_t pin_huge_pages(struct device *device, struct block *block, uint64_t bytes)
{
    size_t whole = (size_t)bytes;
    void *memory = bytes < HUGE_PAGE || bytes > SIZE_MAX ? NULL : map_pages(&whole);
    if (!memory)
        return HW_OK;
    const int32_t status = answer(
        device, device->cuda->host_register(memory, whole, HOST_PORTABLE | HOST_MAPPED),
        "pin huge pages");
    if (status) {
        unmap_pages(memory, whole);
        return status == HW_LOST ? status : HW_OK;
    }
    block->kind = BLOCK_PAGES;
    block->host = memory;
    block->bytes = whole;
    return HW_OK;
}

static int32_t allocate(struct device *device, struct block *block, uint64_t bytes,
                        uint32_t flags)
{
    const struct driver *cuda = device->cuda;
    char what[80];
    if (!(flags & HW_BUFFER_HOST_VISIBLE))
        return memory_reserve(device, bytes, &block->address);
    snprintf(what, sizeof what, "allocate %llu bytes of pinned host memory",
             (unsigned long long)bytes);
    int32_t status = pin_huge_pages(device, block, bytes);
    if (!status && !block->host)
        status = answer(device,
                        cuda->host_alloc(&block->host, bytes, HOST_PORTABLE | HOST_MAPPED),
                        what);
    if (status)
        return status;
    status = answer(device, cuda->host_address(&block->address, block->host, 0),
                    "map pinned host memory");
    if (status)
        release(device, block);
    return status;
}

static int32_t fill_zero(struct device *device, const struct block *block, uint64_t bytes)
{
    const struct driver *cuda = device->cuda;
    int result = cuda->fill(block->address, 0, bytes, device->stream);
    if (!result)
        result = cuda->stream_wait(device->stream);
    return answer(device, result, "fill memory with zeros");
}

int32_t memory_alloc(void *self, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer)
{
    struct device *device = self;
    const uint32_t known = HW_BUFFER_HOST_VISIBLE | HW_BUFFER_PINNED | HW_BUFFER_READ_ONLY |
                           HW_BUFFER_WRITE_ONLY | HW_BUFFER_ZEROED;
    if (flags & ~known)
        return too_new(device->host, "allocate");
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
    int32_t status = enter(device);
    if (!status) {
        status = allocate(device, block, bytes, flags);
        if (!status && flags & HW_BUFFER_ZEROED) {
            status = fill_zero(device, block, bytes);
            if (status)
                release(device, block);
        }
        leave(device);
    }
    if (status) {
        free(block);
        return status;
    }
    buffer->impl = block;
    buffer->host = block->host;
    buffer->flags = flags;
    return HW_OK;
}

void memory_free(void *self, struct hw_buffer *buffer)
{
    struct device *device = self;
    struct block *block = buffer->impl;
    if (enter_to_close(device, "free memory")) {
        release(device, block);
        leave(device);
    }
    free(block);
}

static int32_t pin(struct device *device, struct block *block, void *host, uint64_t bytes)
{
    const struct driver *cuda = device->cuda;
    int32_t status = answer(device,
                            cuda->host_register(host, bytes, HOST_PORTABLE | HOST_MAPPED),
                            "pin memory of the application");
    if (status)
        return status;
    block->host = host;
    status = answer(device, cuda->host_address(&block->address, host, 0),
                    "map memory of the application");
    if (status)
        release(device, block);
    return status;
}

/* ---- memory that the application allocated ---- */

/* The driver's facts about an address; `kind` 0: none. Memory that several contexts share, such as
 * a pool's, has no context. */
struct known {
    void *context;
    unsigned kind, managed;
    int device;
    uint64_t start; /* of the allocation, or of the range of addresses reserved for it */
    size_t bytes;
};

/* For an address outside its memory, the driver returns zeros or, according to NVIDIA's documents,
 * INVALID_CONTEXT. The device may still be able to read it, as on a card that shares the host's
 * page tables. */
static int32_t look_up(struct device *device, uint64_t address, struct known *known)
{
    int asked[] = { POINTER_CONTEXT, POINTER_KIND,  POINTER_MANAGED,
                    POINTER_DEVICE,  POINTER_START, POINTER_BYTES };
    void *answers[] = { &known->context, &known->kind,  &known->managed,
                        &known->device,  &known->start, &known->bytes };
    const unsigned count = sizeof asked / sizeof *asked;
    *known = (struct known){ 0 };
    const int result = device->cuda->pointer_facts(count, asked, answers, address);
    if (result)
        *known = (struct known){ 0 };
    return answer(device, result == INVALID_CONTEXT ? 0 : result, "look up memory");
}

/* All contexts may use the host's memory, and managed memory. */
static bool is_of_others(const struct device *device, const struct known *known)
{
    if (known->kind != DEVICE_MEMORY || known->managed)
        return false;
    return known->context ? known->context != device->context
                          : known->device != device->number;
}

static int32_t refuse_others(const struct device *device, const struct known *known)
{
    if (known->device != device->number)
        return hw_fail(
            device->host, HW_INVALID,
            "the memory belongs to CUDA device %d, but this device is %d: import it on "
            "the device that owns it",
            known->device, device->number);
    return hw_fail(
        device->host, HW_INVALID,
        "the memory belongs to another context than the device's: allocate it in "
        "the device's primary context (cuDevicePrimaryCtxRetain)");
}

static int32_t check_foreign(struct device *device, const struct hw_import *desc)
{
    const uint64_t address = (uint64_t)(uintptr_t)desc->handle;
    struct known known;
    const int32_t status = look_up(device, address, &known);
    if (status || !known.kind)
        return status;
    if (is_of_others(device, &known))
        return refuse_others(device, &known);
    const uint64_t left = known.bytes - (address - known.start);
    if (!known.bytes || (desc->offset <= left && desc->bytes <= left - desc->offset))
        return HW_OK;
    return hw_fail(
        device->host, HW_INVALID,
        "the memory has %llu bytes up to the end of its allocation, which is less "
        "than %llu at offset %llu",
        (unsigned long long)left, (unsigned long long)desc->bytes,
        (unsigned long long)desc->offset);
}

/* "host": memory of the application, pinned while it is imported. "cuda.memory": an address in
 * device memory. */
int32_t memory_import(void *self, const struct hw_import *desc, struct hw_buffer *buffer)
{
    struct device *device = self;
    const bool host = !strcmp(desc->kind, "host");
    if (!host && strcmp(desc->kind, "cuda.memory") != 0)
        return hw_fail(device->host, HW_UNSUPPORTED,
                       "import: the CUDA plugin imports memory of the kinds \"host\" and "
                       "\"cuda.memory\", not \"%s\"",
                       desc->kind);
    if (!hw_knows(desc, sizeof *desc) ||
        desc->flags & ~(uint32_t)(HW_BUFFER_READ_ONLY | HW_BUFFER_WRITE_ONLY))
        return too_new(device->host, "import");
    struct block *block = calloc(1, sizeof *block);
    int32_t status = block ? enter(device)
                           : hw_fail(device->host, HW_NO_MEMORY, "import: out of memory");
    if (status) {
        free(block);
        return status;
    }
    block->kind = host ? BLOCK_REGISTERED : BLOCK_FOREIGN;
    if (host)
        status = pin(device, block, (char *)desc->handle + desc->offset, desc->bytes);
    else if (!(status = check_foreign(device, desc)))
        block->address = (uint64_t)(uintptr_t)desc->handle + desc->offset;
    leave(device);
    if (status) {
        free(block);
        return status;
    }
    buffer->impl = block;
    buffer->host = block->host;
    buffer->offset = 0;
    return HW_OK;
}

int32_t memory_export(void *self, const struct hw_buffer *buffer, const char *kind,
                      struct hw_import *desc)
{
    const struct device *device = self;
    const struct block *block = buffer->impl;
    const int32_t status = check_kind(device->host, "buffer", kind, "cuda.memory");
    if (status)
        return status;
    desc->kind = "cuda.memory";
    desc->handle = (void *)(uintptr_t)block->address;
    desc->offset = buffer->offset;
    return HW_OK;
}

/* ---- transfers ---- */

static uint64_t address_of(const struct hw_buffer *buffer, const void *host,
                           uint64_t offset)
{
    const struct block *block = buffer ? buffer->impl : NULL;
    return block ? block->address + buffer->offset + offset
                 : (uint64_t)(uintptr_t)host + offset;
}

/* Lets a device access another one's memory, so that the driver copies over the link between them;
 * otherwise it copies through the host. The application may have enabled access before. Access
 * stays enabled: the application may use it from now on. */
static void reach(struct device *device, const struct device *other)
{
    const struct driver *cuda = device->cuda;
    int can = 0;
    if (other == device || other->number >= MOST_DEVICES ||
        atomic_exchange(&device->reached[other->number], true))
        return;
    int result = cuda->peer_can(&can, device->number, other->number);
    if (!result && can)
        result = cuda->context_reach(other->context, 0);
    if (result != PEER_ENABLED)
        note(device, result, "access another device's memory; copies go through the host");
}

/* The driver copies rows only within one context, and limits their pitch. */
static bool can_copy_rows(const struct queue *queue, const struct hw_transfer *t)
{
    const uint64_t limit = UINT64_C(1) << 31;
    return (!t->dst || t->dst->device == queue->device) &&
           (!t->src || t->src->device == queue->device) && t->dst_pitch < limit &&
           t->src_pitch < limit;
}

static int copy_rows(const struct driver *cuda, void *stream, const struct hw_transfer *t,
                     uint64_t to, uint64_t from)
{
    const struct copy_rows rows = { .from_kind = ANY_MEMORY,
                                    .from = from,
                                    .from_pitch = t->src_pitch,
                                    .to_kind = ANY_MEMORY,
                                    .to = to,
                                    .to_pitch = t->dst_pitch,
                                    .bytes = t->bytes,
                                    .rows = t->rows };
    return cuda->copy_rows(&rows, stream);
}

int32_t memory_transfer(void *self, const struct hw_transfer *t)
{
    struct queue *queue = self;
    const struct driver *cuda = queue->device->cuda;
    if (!hw_knows(t, sizeof *t))
        return too_new(queue->device->host, "transfer");
    const uint64_t to = address_of(t->dst, t->dst_host, t->dst_offset),
                   from = address_of(t->src, t->src_host, t->src_offset);
    const int32_t status = enter(queue->device);
    int result = 0;
    if (status)
        return status;
    reach(queue->device, t->dst ? t->dst->device : queue->device);
    reach(queue->device, t->src ? t->src->device : queue->device);
    if (t->rows <= 1)
        result = t->bytes ? cuda->copy(to, from, t->bytes, queue->stream) : 0;
    else if (t->bytes && can_copy_rows(queue, t))
        result = copy_rows(cuda, queue->stream, t, to, from);
    else
        for (uint64_t i = 0; t->bytes && i < t->rows && !result; i++)
            result = cuda->copy(to + i * t->dst_pitch, from + i * t->src_pitch, t->bytes,
                                queue->stream);
    leave(queue->device);
    return answer(queue->device, result, "copy memory");
}
