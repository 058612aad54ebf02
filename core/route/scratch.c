/* SPDX-License-Identifier: MIT */
/* scratch.c - memory that is reused or freed in a queue's order: scratch memory on device and host,
 * and buffers that the application frees in that order. */
#include "route/scratch.h"

#include "base/fork.h"
#include "base/message.h"
#include "call/queue.h"
#include "memory/buffer.h"
#include "memory/pool.h"

#include <stdlib.h>

enum hw_status scratch_take(struct hw_queue *queue, uint64_t bytes, uint32_t flags,
                            struct buffer **buffer)
{
    if (flags == 0)
        for (struct buffer **at = &queue->idle; *at; at = &(*at)->next)
            if ((*at)->base.bytes >= bytes && (*at)->base.bytes / 4 <= bytes) {
                *buffer = *at;
                *at = (*at)->next;
                return HW_OK;
            }
    enum hw_status status = buffer_make(queue->device, bytes, flags, buffer);
    if (status != HW_NO_MEMORY || (!queue->idle && !queue->busy))
        return status;
    status = queue_settle(queue); /* frees idle scratch memory */
    return status ? status : buffer_make(queue->device, bytes, flags, buffer);
}

/* With more host memory than this in flight, the queue is waited for. */
#define BUSY_BYTES (UINT64_C(64) << 20)

void queue_free_later(struct hw_queue *queue, struct buffer *buffer)
{
    buffer->next = queue->busy;
    queue->busy = buffer;
}

void scratch_give(struct hw_queue *queue, struct buffer *buffer)
{
    if (!buffer)
        return;
    /* Only the queue uses device memory, in its order. The host uses pinned memory as well. */
    if (buffer->base.flags & HW_BUFFER_PINNED) {
        queue->busy_bytes += buffer->base.bytes;
        queue_free_later(queue, buffer);
        return;
    }
    buffer->next = queue->idle;
    queue->idle = buffer;
}

struct buffer *scratch_pinned(struct hw_queue *queue, uint64_t bytes)
{
    if (queue->busy_bytes > BUSY_BYTES)
        queue_settle(queue);
    const struct saved_message saved = message_save();
    struct buffer *buffer;
    if (bytes <= SIZE_MAX &&
        !buffer_make(queue->device, bytes, HW_BUFFER_PINNED | HW_BUFFER_HOST_VISIBLE,
                     &buffer))
        return buffer;
    message_restore(&saved);
    return NULL;
}

static void buffers_drop(struct buffer **list)
{
    while (*list) {
        struct buffer *buffer = *list;
        *list = buffer->next;
        buffer_drop(buffer);
    }
}

/* Call this when the queue has completed or never will. */
void scratch_release(struct hw_queue *queue)
{
    buffers_drop(&queue->idle);
    buffers_drop(&queue->busy);
    pool_passed(queue->device->pool, queue);
    queue->busy_bytes = 0;
}

/* ---- for applications ---- */

/* Records an event after the buffer's last use; false if the plugin has no events, or
 * fails. */
static bool buffer_mark(struct buffer *buffer, struct hw_queue *queue)
{
    const struct hw_plugin *table = &queue->device->plugin->table;
    if (buffer->owner != queue->device ||
        table->event_create(queue->device->impl, 0, &buffer->mark))
        return false;
    if (table->event_record(buffer->mark, queue->impl)) {
        table->event_destroy(buffer->mark);
        return false;
    }
    buffer->after = queue;
    return true;
}

void hw_buffer_free_after(struct hw_buffer *base, struct hw_queue *queue)
{
    if (!base || forked(buffer_of(base)->owner->context->generation))
        return;
    if (!queue) {
        hw_buffer_free(base);
        return;
    }
    struct buffer *buffer = buffer_of(base);
    /* A queue of another context may outlive the buffer's pool. */
    if (buffer->owner->context != queue->device->context) {
        queue_settle(queue);
        hw_buffer_free(base);
        return;
    }
    /* A plugin without events is not an error. */
    const struct saved_message saved = message_save();
    buffer_unlist(buffer);
    if (buffer_mark(buffer, queue))
        pool_give_after(buffer->owner->pool, buffer);
    else
        queue_free_later(queue, buffer);
    plugin_message_clear();
    message_restore(&saved);
}
