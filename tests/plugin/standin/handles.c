/* SPDX-License-Identifier: MIT */
/* handles.c - exporting and importing the vendor's handles of queues and memory: see load.h. */
#include "load.h"

#include "objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "answers.h"

enum { COUNT = 64, OFFSET = 16 };

/* y += y twice: on the queue and memory, and on imports of their handles. */
static void compute(struct hw_device *device, const struct load_vendor *vendor,
                    struct hw_queue *own, struct hw_tensor *y)
{
    struct hw_import memory = { .size = sizeof memory };
    struct hw_queue *queue;
    struct hw_buffer *buffer;
    struct hw_tensor same;
    void *handle = NULL;
    ok(hw_queue_export(own, vendor->queue, &handle));
    assert_non_null(handle);
    ok(hw_buffer_export(y->buffer, vendor->memory, &memory));
    ok(hw_queue_import(device, NULL, vendor->queue, handle, &queue));
    ok(hw_buffer_import(device, &memory, &buffer));
    ok(hw_tensor_view(&same, buffer, y->offset, HW_F32, 1, (const int64_t[]){ COUNT }));
    ok(hw_add(own, &(struct hw_add){ .a = *y, .b = *y, .y = *y }));
    ok(hw_add(queue, &(struct hw_add){ .a = same, .b = same, .y = same }));
    ok(hw_queue_wait(queue));
    hw_buffer_free(buffer);
    hw_queue_close(queue);
}

static void refuse(struct hw_context *context, const struct load_vendor *vendor,
                   struct hw_queue *own, struct hw_buffer *buffer)
{
    static const char other[] = "other.thing";
    struct hw_device *device = hw_device_at(context, 0);
    struct hw_import memory = {
        .size = sizeof memory, .kind = other, .handle = own, .bytes = 4
    };
    struct hw_queue *queue;
    struct hw_buffer *none;
    void *handle;
    fails(HW_UNSUPPORTED, vendor->queue, hw_queue_export(own, other, &handle));
    fails(HW_UNSUPPORTED, vendor->queue, hw_queue_import(device, NULL, other, own, &queue));
    fails(HW_UNSUPPORTED, vendor->memory, hw_buffer_import(device, &memory, &none));
    fails(HW_UNSUPPORTED, vendor->memory, hw_buffer_export(buffer, other, &memory));
    fails(HW_UNSUPPORTED, other, hw_device_import(context, other, own, &device));
}

void handles_go_out_and_in(const struct load_vendor *vendor)
{
    struct hw_context *context = load_open(vendor);
    struct hw_device *device = hw_device_at(context, 0);
    const int64_t whole = COUNT + OFFSET;
    struct hw_queue *queue;
    struct hw_tensor before, all, part; /* `before` moves `all` from the start of memory */
    float x[COUNT + OFFSET];
    for (int i = 0; i < COUNT + OFFSET; i++)
        x[i] = (float)i;
    ok(hw_queue_open(device, NULL, &queue));
    ok(hw_tensor_alloc(device, 0, HW_F32, 1, &whole, &before));
    ok(hw_tensor_alloc(device, 0, HW_F32, 1, &whole, &all));
    ok(hw_tensor_slice(&part, &all, 0, OFFSET, whole));
    ok(hw_tensor_write(queue, &all, x, sizeof x));
    compute(device, vendor, queue, &part);
    ok(hw_tensor_read(queue, &all, x, sizeof x));
    ok(hw_queue_wait(queue));
    for (int i = 0; i < COUNT + OFFSET; i++)
        assert_true(x[i] == (float)(i < OFFSET ? i : 4 * i));
    refuse(context, vendor, queue, all.buffer);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}
