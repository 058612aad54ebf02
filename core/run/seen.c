/* SPDX-License-Identifier: MIT */
/* seen.c - remembers calls that the full check accepted: see seen.h. */
#include "run/seen.h"

#include "run/dtype.h"

#include <string.h>

/* ---- looking ---- */

static uint64_t begin_of(const struct hw_tensor *t)
{
    return t->offset +
           (t->buffer ? buffer_of(t->buffer)->address : (uint64_t)(uintptr_t)t->data);
}

/* Whether the outputs besides the last operand are writable and overlap no other operand. */
static bool outputs_fit(const struct seen_call *seen, const void *args)
{
    for (uint32_t i = 0; i < seen->pair_count; i++) {
        const struct seen_pair *like = &seen->pair[i];
        const struct hw_tensor *y = at(args, like->y), *x = at(args, like->x);
        if (!writable(y) || begin_of(x) - begin_of(y) - like->y_reach > like->room)
            return false;
    }
    return true;
}

/* Whether a packed operand is as its device made it, if the remembered one was. It fits: no
 * offset is admitted, and no host memory. */
static bool packed_is_like(const struct hw_tensor *t, const struct seen_place *like)
{
    const struct buffer *buffer = buffer_of(t->buffer);
    return buffer->base.bytes == like->reach && buffer->packed.layout == t->layout &&
           buffer->packed.dtype == t->dtype && equal_extents(&buffer->packed, t);
}

static bool packed_fit(const struct seen_call *seen, const void *args)
{
    bool fit = true;
    for (const struct seen_place *like = seen->place; like < seen->end; like++) {
        const struct hw_tensor *t = at(args, like->at);
        fit &= !t->layout || packed_is_like(t, like);
    }
    return fit;
}

bool others_fit(const struct seen_call *seen, const void *args)
{
    return outputs_fit(seen, args) && packed_fit(seen, args);
}

bool is_like(const struct hw_queue *queue, const struct seen_call *seen, const void *args)
{
    const struct difference differ = compare(seen, args, op_rows[seen->op].operand_count);
    return same_form(&differ) && places_fit(queue, seen, args) && others_fit(seen, args);
}

void follow(struct seen_call *seen, const void *args, uint64_t stamp)
{
    const struct hw_tensor *t = args;
    for (uint32_t i = 0; i < op_rows[seen->op].operand_count; i++)
        memcpy(&seen->operand[i].tensor, &t[i], offsetof(struct hw_tensor, dtype));
    const bool last = ++seen->moves == FOLLOWED;
    seen->stamp = last ? NO_STAMP : stamp;
    seen->moves = last ? 0 : seen->moves;
    seen->rest = last ? ROUND - FOLLOWED : 0;
}

/* ---- remembering ---- */

/* So that no sum of an offset and a reach wraps. */
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

/* How far behind the end of `y` an operand may begin: up to its own reach before `y`, where
 * distances wrap. */
static uint64_t room_behind(const struct byte_range *y, const struct byte_range *x)
{
    return 0 - reach_of(y) - reach_of(x);
}

/* Bits that an address must not have. A packed tensor can only be used whole, as
 * hw_tensor_pack() made it, in a buffer of its own. */
static uint64_t barred_for(const struct hw_tensor *t)
{
    return t->layout ? UINT64_MAX : FAR_AWAY | (dtype_rows[t->dtype].alignment - 1u);
}

static void set_operands(struct seen_call *call, const struct op_row *row, const void *args,
                         const struct check *check)
{
    const struct hw_tensor *t = args;
    const struct byte_range *y = &check->bytes[row->operand_count - 1];
    struct seen_place *place = call->place;
    for (uint32_t i = row->operand_count; i-- > 0;) {
        call->operand[i].tensor = t[i];
        if (t[i].dtype == HW_NONE) {
            call->absent |= 1u << i;
            continue;
        }
        *place++ = (struct seen_place){
            .at = row->operands[i].offset,
            .reach = reach_of(&check->bytes[i]),
            .barred = barred_for(&t[i]),
            .room = room_behind(y, &check->bytes[i]),
            .in_place = NO_DISTANCE,
        };
        call->others |= t[i].layout != 0;
    }
    call->end = place;
}

#define T(op, field, role) +(HW_ROLE_##role >= HW_ROLE_OUT)
#define X(NAME, name)                                                                      \
    _Static_assert((0 HW_OPERANDS_##NAME(T) - 1) * (OPERANDS_##name - 2) <= SEEN_PAIRS,    \
                   #name ": SEEN_PAIRS");
HW_OPS(X)
#undef X
#undef T

/* The last operand needs none, because all others are compared with it. */
static void set_pairs(struct seen_call *call, const struct op_row *row, const void *args,
                      const struct check *check)
{
    const struct hw_tensor *t = args;
    const uint32_t last = row->operand_count - 1;
    for (uint32_t y = 0; y < last; y++)
        for (uint32_t x = 0; x < last; x++)
            if (row->written >> y & 1 && x != y && t[y].dtype && t[x].dtype)
                call->pair[call->pair_count++] = (struct seen_pair){
                    .y = row->operands[y].offset,
                    .x = row->operands[x].offset,
                    .y_reach = reach_of(&check->bytes[y]),
                    .room = room_behind(&check->bytes[y], &check->bytes[x]),
                };
}

/* What is in place in this call may be so in all of its form. Only the last operand may. */
static void allow_in_place(struct seen_call *call, const struct check *check)
{
    const struct byte_range *y = &check->bytes[op_rows[check->op].operand_count - 1];
    for (struct seen_place *place = call->place + 1; place < call->end; place++) {
        const struct byte_range *x = &check->bytes[place->at / sizeof(struct hw_tensor)];
        if (share_space(y, x) && y->begin == x->begin)
            place->in_place = 0 - reach_of(y);
    }
}

/* The call that was remembered longest ago, which is forgotten. */
static struct seen_call *take_oldest(struct seen_calls *seen)
{
    struct seen_call *call = &seen->call[seen->next++ % SEEN_CALLS];
    for (uint32_t way = 0; way < SEEN_WAYS; way++)
        if (seen->slot[way][call->slot] == call)
            seen->slot[way][call->slot] = NULL;
    return call;
}

/* Whether the call has the form of the remembered one. */
static bool has_form(const struct seen_call *seen, uint32_t op, const void *args)
{
    if (!seen || seen->op != op)
        return false;
    const struct difference differ = compare(seen, args, op_rows[op].operand_count);
    return same_form(&differ);
}

/* The remembered call of this form. If there is none, it takes the place of the oldest. */
static struct seen_call *remember(struct seen_calls *seen, const void *args,
                                  const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    const uint32_t slot = slot_of(check->op, args);
    for (uint32_t way = 0; way < SEEN_WAYS; way++)
        if (has_form(seen->slot[way][slot], check->op, args))
            return seen->slot[way][slot];
    struct seen_call *call = take_oldest(seen);
    call->size = row->size;
    call->op = check->op;
    call->slot = slot;
    call->stamp = NO_STAMP;
    call->moves = call->rest = 0;
    call->absent = call->pair_count = 0;
    call->others = false;
    set_operands(call, row, args, check);
    call->field_bytes = (row->size -
                         row->operand_count * (uint32_t)sizeof(struct hw_tensor) +
                         (uint32_t)sizeof(pair) - 1) /
                        sizeof(pair) * sizeof(pair);
    memcpy(call->tail, at(args, row->size - TAIL_BYTES), TAIL_BYTES);
    set_pairs(call, row, args, check);
    call->others |= call->pair_count != 0;
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

void seen_add(struct seen_calls *seen, const void *args, const struct check *check)
{
    if (plain(&op_rows[check->op], args, check))
        allow_in_place(remember(seen, args, check), check);
}
