/* SPDX-License-Identifier: MIT */
/* plugin.h - a plugin with one device that does nothing, whole and correct: the good plugin
 * beside the bad ones, and what each bad one is but for one mistake. A fixture may define,
 * before it includes this: NAME, LINES (of the manifest), and it may replace functions of
 * the table in FILL. */
#include <hw/plugin.h>

#include <stdlib.h>

#ifndef NAME
#define NAME "bad"
#endif
#ifndef LINES
#define LINES ""
#endif
#ifdef CHANGES
static void change(struct hw_plugin *table);
#endif

static int32_t plugin_open(const struct hw_host *host, void **self)
{
    *self = (void *)(uintptr_t)host;
    return HW_OK;
}

static void plugin_close(void *self)
{
    (void)self;
}

static int32_t plugin_count(void *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return HW_OK;
}

static int32_t plugin_info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self, (void)index;
    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_OTHER;
    strcpy(facts.name, "a device of " NAME);
    hw_answer(info, &facts);
    return HW_OK;
}

static int32_t plugin_device(void *self, int32_t index, void **device)
{
    (void)index;
    *device = self;
    return HW_OK;
}

static int32_t plugin_queue(void *device, const struct hw_queue_desc *desc, void **queue)
{
    (void)desc;
    *queue = device;
    return HW_OK;
}

static int32_t plugin_wait(void *queue)
{
    (void)queue;
    return HW_OK;
}

static int32_t plugin_alloc(void *device, uint64_t bytes, uint32_t flags,
                            struct hw_buffer *buffer)
{
    (void)device, (void)bytes, (void)flags, (void)buffer;
    return HW_NO_MEMORY;
}

static void plugin_free(void *device, struct hw_buffer *buffer)
{
    (void)device, (void)buffer;
}

static int32_t plugin_transfer(void *queue, const struct hw_transfer *transfer)
{
    (void)queue, (void)transfer;
    return HW_UNSUPPORTED;
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = sizeof ops };
    static const uint32_t sizes[] = HW_OP_SIZES;
    (void)host;
    table->vendor = "nobody";
    table->version = "1";
    table->ops = &ops;
    table->op_sizes = sizes;
    table->op_count = HW_OP_COUNT;
    table->open = plugin_open;
    table->close = plugin_close;
    table->device_count = plugin_count;
    table->device_info = plugin_info;
    table->device_open = plugin_device;
    table->device_close = plugin_close;
    table->queue_open = plugin_queue;
    table->queue_close = plugin_close;
    table->queue_wait = plugin_wait;
    table->buffer_alloc = plugin_alloc;
    table->buffer_free = plugin_free;
    table->transfer = plugin_transfer;
#ifdef CHANGES
    change(table);
#endif
    return HW_OK;
}

#ifndef NO_PLUGIN
HW_PLUGIN(NAME, LINES, fill)
#endif
