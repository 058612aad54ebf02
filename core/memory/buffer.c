/* SPDX-License-Identifier: MIT */
/* buffer.c - buffers: a block of the device's pool, or imported memory. */
#include "memory/buffer.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/message.h"
#include "memory/device.h"
#include "memory/pool.h"

#include <stdlib.h>
#include <string.h>

/* ---- without the context's list ---- */

/* Sets `address`; `base` is complete already. */
static void buffer_set_address(struct buffer *buffer)
{
    const struct hw_buffer *base = &buffer->base;
    buffer->address = base->host ? (uint64_t)(uintptr_t)base->host
                                 : (uint64_t)(uintptr_t)base->impl + base->offset;
}

enum hw_status buffer_make(struct hw_device *device, uint64_t bytes, uint32_t flags,
                           struct buffer **out)
{
    struct buffer *buffer = calloc(1, sizeof *buffer);
    *out = NULL;
    if (!buffer)
        return fail(HW_NO_MEMORY, "out of memory for a buffer");
    enum hw_status status = pool_take(device->pool, bytes, flags, &buffer->block);
    if (status) {
        free(buffer);
        return status;
    }
    const struct hw_buffer *memory = block_memory(buffer->block);
    buffer->base = *memory;
    buffer->base.offset = buffer->block->offset;
    buffer->base.bytes = bytes;
    buffer->base.flags = (memory->flags & ~(uint32_t)HW_BUFFER_ZEROED) | flags;
    if (memory->host)
        buffer->base.host = (char *)memory->host + buffer->block->offset;
    buffer->owner = device;
    buffer_set_address(buffer);
    *out = buffer;
    return HW_OK;
}

void buffer_drop(struct buffer *buffer)
{
    struct hw_device *device = buffer->owner;
    device_changed(device);
    if (buffer->block)
        pool_give(device->pool, buffer->block);
    else
        device->plugin->table.buffer_free(device->impl, &buffer->base);
    free(buffer);
}

/* ---- the context's list ---- */

void buffer_list(struct buffer *buffer)
{
    struct hw_context *context = buffer->owner->context;
    pthread_mutex_lock(&context->lock);
    list_add(&context->buffers, buffer);
    pthread_mutex_unlock(&context->lock);
}

void buffer_unlist(struct buffer *buffer)
{
    struct hw_context *context = buffer->owner->context;
    pthread_mutex_lock(&context->lock);
    list_remove(&context->buffers, buffer);
    pthread_mutex_unlock(&context->lock);
    buffer->next = buffer->prev = NULL;
}

/* ---- for applications ---- */

static const uint32_t known_flags = HW_BUFFER_HOST_VISIBLE | HW_BUFFER_PINNED |
                                    HW_BUFFER_READ_ONLY | HW_BUFFER_WRITE_ONLY |
                                    HW_BUFFER_ZEROED;

enum hw_status hw_buffer_alloc(struct hw_device *device, uint64_t bytes, uint32_t flags,
                               struct hw_buffer **buffer)
{
    struct buffer *made;
    REQUIRE(buffer);
    *buffer = NULL;
    if (flags & ~known_flags)
        return fail(HW_INVALID, "hw_buffer_alloc: unknown flags 0x%x", (unsigned)flags);
    if ((flags & HW_BUFFER_READ_ONLY) && (flags & HW_BUFFER_WRITE_ONLY))
        return fail(HW_INVALID,
                    "hw_buffer_alloc: read-only and write-only are mutually exclusive");
    if (flags & HW_BUFFER_PINNED)
        flags |= HW_BUFFER_HOST_VISIBLE;
    enum hw_status status = device_ready(device, "hw_buffer_alloc");
    if (status || (status = buffer_make(device, bytes, flags, &made)))
        return status;
    buffer_list(made);
    *buffer = &made->base;
    return HW_OK;
}

/* The largest alignment of any dtype. */
#define IMPORT_ALIGNMENT 8

static enum hw_status import_check(const struct hw_import *desc)
{
    const uintptr_t address = (uintptr_t)desc->handle;
    uint64_t end;
    uintptr_t last;
    const enum hw_status status =
        check_fields("hw_buffer_import", "desc", desc,
                     offsetof(struct hw_import, bytes) + sizeof desc->bytes, sizeof *desc);
    if (status)
        return status;
    if (!desc->kind)
        return fail_null("hw_buffer_import", "desc->kind");
    if (desc->flags & ~(uint32_t)(HW_BUFFER_READ_ONLY | HW_BUFFER_WRITE_ONLY) ||
        (desc->flags & HW_BUFFER_READ_ONLY && desc->flags & HW_BUFFER_WRITE_ONLY))
        return fail(HW_INVALID,
                    "hw_buffer_import: flags are 0x%x; imported memory may be read-only or "
                    "write-only, nothing else",
                    (unsigned)desc->flags);
    if (__builtin_add_overflow(desc->offset, desc->bytes, &end))
        return fail(HW_INVALID, "hw_buffer_import: offset %llu and %llu bytes overflow",
                    (unsigned long long)desc->offset, (unsigned long long)desc->bytes);
    if (strcmp(desc->kind, "host") == 0 &&
        (!address || (address + desc->offset) % IMPORT_ALIGNMENT ||
         __builtin_add_overflow(address, end, &last)))
        return fail(
            HW_INVALID,
            "hw_buffer_import: %llu bytes at offset %llu of %p: host memory must have an "
            "address that is a multiple of %d, and end in the address space",
            (unsigned long long)desc->bytes, (unsigned long long)desc->offset, desc->handle,
            IMPORT_ALIGNMENT);
    return HW_OK;
}

enum hw_status hw_buffer_import(struct hw_device *device, const struct hw_import *desc,
                                struct hw_buffer **buffer)
{
    REQUIRE(buffer);
    *buffer = NULL;
    REQUIRE(desc);
    enum hw_status status = device_ready(device, "hw_buffer_import");
    if (status || (status = import_check(desc)))
        return status;
    struct buffer *made = calloc(1, sizeof *made);
    if (!made)
        return fail(HW_NO_MEMORY, "out of memory for a buffer");
    struct hw_import known = *desc;
    known.size = sizeof known;
    plugin_message_clear();
    status = device_result(
        device, device->plugin->table.buffer_import(device->impl, &known, &made->base));
    if (status) {
        fail_in(status, "hw_buffer_import on %s: ", device->name);
    } else if ((uintptr_t)made->base.host % IMPORT_ALIGNMENT) { /* seen.h relies on this */
        device->plugin->table.buffer_free(device->impl, &made->base);
        status = fail(HW_INTERNAL,
                      "hw_buffer_import on %s: the plugin returned address %p, which is "
                      "not a multiple of %d",
                      device->name, made->base.host, IMPORT_ALIGNMENT);
    }
    if (status) {
        free(made);
        return status;
    }
    made->base.device = device->impl;
    made->base.bytes = desc->bytes;
    made->base.flags |= desc->flags;
    made->owner = device;
    buffer_set_address(made);
    buffer_list(made);
    *buffer = &made->base;
    return HW_OK;
}

enum hw_status hw_buffer_export(struct hw_buffer *buffer, const char *kind,
                                struct hw_import *desc)
{
    REQUIRE(buffer);
    REQUIRE(kind);
    REQUIRE(desc);
    struct hw_device *device = buffer_of(buffer)->owner;
    struct hw_import out = { .size = sizeof out, .bytes = buffer->bytes };
    enum hw_status status = check_size(__func__, "desc", desc,
                                       offsetof(struct hw_import, bytes));
    if (status || (status = device_usable(device)))
        return status;
    plugin_message_clear();
    status = device_result(
        device, device->plugin->table.buffer_export(device->impl, buffer, kind, &out));
    if (status)
        return fail_in(status, "hw_buffer_export on %s: ", device->name);
    return answer_struct(desc, &out, sizeof out);
}

void hw_buffer_free(struct hw_buffer *base)
{
    if (!base || forked(buffer_of(base)->owner->context->generation))
        return;
    buffer_unlist(buffer_of(base));
    buffer_drop(buffer_of(base));
}

void *hw_buffer_host(struct hw_buffer *buffer)
{
    return buffer && buffer->flags & HW_BUFFER_HOST_VISIBLE ? buffer->host : NULL;
}

uint64_t hw_buffer_bytes(const struct hw_buffer *buffer)
{
    return buffer ? buffer->bytes : 0;
}

struct hw_device *hw_buffer_device(const struct hw_buffer *buffer)
{
    return buffer ? buffer_of(buffer)->owner : NULL;
}
