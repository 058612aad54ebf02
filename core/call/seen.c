/* SPDX-License-Identifier: MIT */
/* seen.c - remembers calls that the full check accepted: see seen.h. */
#include "call/seen.h"

#include "base/message.h"
#include "memory/dtype.h"

#include <string.h>

/* ---- looking ---- */

/* Whether a packed operand is as its device made it, if the remembered operand was. places_fit()
 * has excluded offsets and host memory. */
static bool packed_is_like(const struct hw_tensor *t, const struct seen_place *like)
{
    const struct buffer *buffer = buffer_of(t->buffer);
    return buffer->base.bytes == like->reach && buffer->packed.layout == t->layout &&
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

void follow(struct seen_call *seen, const void *args, uint64_t stamp)
{
    memcpy(&seen->args, args, op_rows[seen->op].size);
    const bool last = ++seen->moves == FOLLOWED;
    seen->stamp = last ? NO_STAMP : stamp;
    seen->moves = last ? 0 : seen->moves;
    seen->rest = last ? -(int32_t)(ROUND - FOLLOWED) : -1;
}

/* ---- the conditions for later calls ---- */

/* The limit keeps the sum of an offset and a reach from wrapping. */
#define LONGEST_REACH (UINT64_C(1) << 62)
#define FAR_AWAY      (UINT64_C(3) << 62)

/* Whether all operands that are present have elements. */
static bool plain(const struct op_row *row, const void *args, const struct check *check)
{
    const struct hw_tensor *t = args;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const uint64_t reach = check->bytes[i].end - check->bytes[i].begin;
        if (t[i].dtype != HW_NONE && (!reach || reach >= LONGEST_REACH))
            return false;
    }
    return true;
}

static uint64_t reach_of(const struct byte_range *bytes)
{
    return bytes->end - bytes->begin;
}

/* The largest distance from the end of `y` to the start of `x` without overlap. Distances wrap, so
 * a place before `y` is a large distance. */
static uint64_t room_behind(const struct byte_range *y, const struct byte_range *x)
{
    return 0 - reach_of(y) - reach_of(x);
}

/* The bits that an address must not have. A packed tensor must be used whole, as hw_tensor_pack()
 * made it in its own buffer, so its offset must be 0. */
static uint64_t barred_for(const struct hw_tensor *t)
{
    return t->layout ? UINT64_MAX : FAR_AWAY | (dtype_rows[t->dtype].alignment - 1u);
}

static void set_operands(struct seen_call *call, const struct op_row *row, const void *args,
                         const struct check *check)
{
    const struct hw_tensor *t = args;
    const struct byte_range *y = &check->bytes[row->operand_count - 1];
    call->absent = 0;
    call->packed = false;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        call->absent |= (uint32_t)(t[i].dtype == HW_NONE) << i;
        call->packed |= t[i].dtype != HW_NONE && t[i].layout;
        call->place[i] = (struct seen_place){
            .reach = reach_of(&check->bytes[i]),
            .barred = barred_for(&t[i]),
            .room = room_behind(y, &check->bytes[i]),
            .in_place = NO_DISTANCE,
        };
    }
    call->outputs = row->written & ~call->absent & ((1u << (row->operand_count - 1)) - 1);
}

/* If this call is in place, all calls of its form may be. Only the last operand may be in place. */
static void allow_in_place(struct seen_call *call, const struct check *check)
{
    const uint32_t last = op_rows[check->op].operand_count - 1;
    const struct byte_range *y = &check->bytes[last];
    for (uint32_t i = 0; i < last; i++) {
        const struct byte_range *x = &check->bytes[i];
        if (share_space(y, x) && y->begin == x->begin)
            call->place[i].in_place = 0 - reach_of(y);
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

/* Forgets the oldest call and returns its memory. */
static struct seen_call *take_oldest(struct hw_queue *queue)
{
    struct seen_calls *seen = &queue->seen;
    struct seen_call *call = &seen->call[seen->next++ % SEEN_CALLS];
    for (uint32_t way = 0; way < SEEN_WAYS; way++)
        if (seen->slot[way][call->slot] == call)
            seen->slot[way][call->slot] = NULL;
    plan_drop(queue, call);
    return call;
}

/* Whether the call has the form of the remembered one. */
static bool has_form(const struct seen_call *seen, uint32_t op, const void *args)
{
    if (!seen || seen->op != op)
        return false;
    const struct op_row *row = &op_rows[op];
    const struct hw_tensor *t = args, *like = (const void *)&seen->args;
    pair differ = { 0 };
    for (uint32_t i = 0; i < row->operand_count; i++) {
        if (!same_type(seen, args, i))
            return false;
        if (is_there(seen, i))
            differ |= differ_in_shape(&t[i], &like[i]);
    }
    return !(differ[0] | differ[1]) && same_fields(args, like, row);
}

/* Finds the remembered call of this form. If there is none, replaces the oldest call. */
static struct seen_call *remember(struct hw_queue *queue, const void *args,
                                  const struct check *check)
{
    struct seen_calls *seen = &queue->seen;
    const struct op_row *row = &op_rows[check->op];
    const uint32_t slot = slot_of(check->op, args);
    for (uint32_t way = 0; way < SEEN_WAYS; way++)
        if (has_form(seen->slot[way][slot], check->op, args))
            return seen->slot[way][slot];
    struct seen_call *call = take_oldest(queue);
    call->op = check->op;
    call->slot = slot;
    call->stamp = NO_STAMP;
    call->moves = 0;
    call->rest = -1;
    memcpy(&call->args, args, row->size);
    set_operands(call, row, args, check);
    plan_make(queue, call, args);
    if (seen->slot[0][slot])
        seen->slot[1][slot] = seen->slot[0][slot];
    seen->slot[0][slot] = call;
    return call;
}

void seen_swap(struct seen_calls *seen, uint32_t slot)
{
    struct seen_call *first = seen->slot[0][slot];
    seen->slot[0][slot] = seen->slot[1][slot];
    seen->slot[1][slot] = first;
}

struct seen_call *seen_add(struct hw_queue *queue, const void *args,
                           const struct check *check)
{
    if (!plain(&op_rows[check->op], args, check))
        return NULL;
    struct seen_call *call = remember(queue, args, check);
    allow_in_place(call, check);
    return call;
}
