/* SPDX-License-Identifier: MIT */
/* seen.c - remembers calls that the full check accepted: see seen.h. */
#include "call/seen.h"

#include "base/message.h"
#include "memory/dtype.h"

#include <string.h>

/* ---- looking ---- */

/* Whether a packed operand is as its device made it, if the remembered operand was. place_fits()
 * has excluded offsets and host memory. */
static bool packed_is_like(const struct hw_tensor *t, const struct seen_place *like)
{
    const struct buffer *buffer = buffer_of(t->buffer);
    return buffer->base.bytes == like->bytes && buffer->packed.layout == t->layout &&
           buffer->packed.dtype == t->dtype && equal_extents(&buffer->packed, t);
}

bool packed_fit(const struct seen_call *seen, const void *args)
{
    const struct op_row *row = &op_rows[seen->op];
    const struct hw_tensor *t = args;
    for (uint32_t i = 0; i < row->operand_count; i++)
        if (is_there(seen, i) && t[i].layout && !packed_is_like(&t[i], &seen->place[i]))
            return false;
    return true;
}

/* ---- the conditions for later calls ---- */

/* The limit keeps the sum of an offset and a size from wrapping. */
#define MOST_BYTES (UINT64_C(1) << 62)
#define FAR_AWAY   (UINT64_C(3) << 62)

/* Whether all operands that are present have elements. */
static bool can_be_seen(const struct op_row *row, const void *args,
                        const struct check *check)
{
    const struct hw_tensor *t = args;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const uint64_t bytes = check->bytes[i].end - check->bytes[i].begin;
        if (t[i].dtype != HW_NONE && (!bytes || bytes >= MOST_BYTES))
            return false;
    }
    return true;
}

/* Gaps wrap, so an operand before `y` has a large gap. A packed tensor must be used whole, as
 * hw_tensor_pack() made it in its own buffer, so its offset must be 0. */
static struct seen_place seen_place_of(const struct hw_tensor *t,
                                       const struct byte_range *x,
                                       const struct byte_range *y)
{
    const uint64_t bytes = x->end - x->begin;
    return (struct seen_place){
        .bytes = bytes,
        .forbidden_bits = t->layout ? UINT64_MAX
                                    : FAR_AWAY | (dtype_rows[t->dtype].alignment - 1u),
        .gap_max = 0 - (y->end - y->begin) - bytes,
        .in_place = NO_DISTANCE,
    };
}

static void seen_set(struct seen_call *call, const void *args, const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    const struct hw_tensor *t = args;
    const uint32_t last = row->operand_count - 1;
    call->op = check->op;
    call->absent = 0;
    call->packed = false;
    call->stamp = NO_STAMP;
    call->skip_count = 0;
    memcpy(&call->args, args, row->size);
    for (uint32_t i = 0; i <= last; i++) {
        call->absent |= (uint32_t)(t[i].dtype == HW_NONE) << i;
        call->packed |= t[i].dtype != HW_NONE && t[i].layout;
        call->place[i] = seen_place_of(&t[i], &check->bytes[i], &check->bytes[last]);
    }
    call->outputs = row->written & ~call->absent & ((1u << last) - 1);
}

/* If this call is in place, all calls of its form may be. Only the last operand may be in place. */
static void seen_allow_in_place(struct seen_call *call, const struct check *check)
{
    const uint32_t last = op_rows[check->op].operand_count - 1;
    const struct byte_range *y = &check->bytes[last];
    for (uint32_t i = 0; i < last; i++) {
        const struct byte_range *x = &check->bytes[i];
        if (share_space(y, x) && y->begin == x->begin)
            call->place[i].in_place = y->begin - y->end;
    }
}

/* ---- plans ---- */

static void plan_drop(const struct hw_queue *queue, struct seen_call *call)
{
    if (call->plan)
        queue->device->plugin->table.plan_destroy(call->plan);
    call->plan = NULL;
}

/* Without a plan, the op's function computes the call, and says what is wrong. */
static void plan_make(const struct hw_queue *queue, struct seen_call *call,
                      const void *args)
{
    if (queue->device->plugin->table.plan_build(queue->impl, call->op, args, &call->plan)) {
        call->plan = NULL;
        plugin_message_clear();
    }
}

void seen_drop(struct hw_queue *queue)
{
    for (uint32_t i = 0; i < SEEN_CALLS; i++)
        plan_drop(queue, &queue->seen.call[i]);
}

/* ---- remembering ---- */

static void seen_unlist(struct hw_queue *queue, struct seen_call *call)
{
    struct seen_call **link = &queue->seen.slot[call->slot];
    while (*link && *link != call)
        link = &(*link)->next;
    if (*link)
        *link = call->next;
}

void seen_put_first(struct hw_queue *queue, struct seen_call *call)
{
    seen_unlist(queue, call);
    call->next = queue->seen.slot[call->slot];
    queue->seen.slot[call->slot] = call;
}

struct seen_call *seen_add(struct hw_queue *queue, const void *args,
                           const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    if (!can_be_seen(row, args, check))
        return NULL;
    struct seen_call *call = seen_first(queue, check->op, args);
    while (call && !(call->op == check->op && same_form(call, args, row)))
        call = call->next;
    if (!call) {
        call = &queue->seen.call[queue->seen.next++ % SEEN_CALLS]; /* the oldest */
        seen_unlist(queue, call);
        plan_drop(queue, call);
        seen_set(call, args, check);
        plan_make(queue, call, args);
        call->slot = slot_of(check->op, args);
        seen_put_first(queue, call);
    }
    seen_allow_in_place(call, check);
    return call;
}
