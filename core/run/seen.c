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

bool other_outputs_fit(const struct seen_call *seen, const void *args)
{
    for (uint32_t i = 0; i < seen->pair_count; i++) {
        const struct seen_pair *like = &seen->pair[i];
        const struct hw_tensor *y = at(args, like->y), *x = at(args, like->x);
        if (!writable(y) || begin_of(x) - begin_of(y) - like->y_reach > like->room)
            return false;
    }
    return true;
}

/* ---- remembering ---- */

/* So that no sum of an offset and a reach wraps. */
#define LONGEST_REACH (UINT64_C(1) << 62)
#define FAR_AWAY      (UINT64_C(3) << 62)

/* Whether all operands that are present have elements, and none has a private layout. */
static bool plain(const struct op_row *row, const void *args, const struct check *check)
{
    const struct hw_tensor *t = args;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const uint64_t reach = check->bytes[i].end - check->bytes[i].begin;
        if (t[i].dtype != HW_NONE && (t[i].layout || !reach || reach >= LONGEST_REACH))
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

/* Whether the call differs only in addresses, and in fields of absent operands, which nobody
 * reads. */
static bool same_form(const struct seen_call *seen, uint32_t op, const void *args)
{
    bool same = seen && seen->op == op && is_zero(fields_differ(seen, args)) &&
                same_absent(seen, args);
    for (uint32_t i = 0; same && seen->operand[i].at >= 0; i++) {
        const struct seen_operand *like = &seen->operand[i];
        const struct hw_tensor *t = at(args, (uint64_t)like->at);
        same = KIND(t) == KIND(like) && is_zero(operand_differs(t, like));
    }
    return same;
}

static void set_operand(struct seen_operand *operand, const struct hw_tensor *t,
                        const struct byte_range *x, const struct byte_range *y)
{
    *operand = (struct seen_operand){
        .reach = reach_of(x),
        .barred = FAR_AWAY | (dtype_rows[t->dtype].alignment - 1u),
        .dtype = t->dtype,
        .rank = t->rank,
        .room = room_behind(y, x),
        .in_place = NO_DISTANCE,
    };
    memcpy(operand->extent, t->extent, sizeof operand->extent);
    memcpy(operand->stride, t->stride, sizeof operand->stride);
}

static void set_operands(struct seen_call *call, const struct op_row *row, const void *args,
                         const struct check *check)
{
    const struct hw_tensor *t = args;
    const struct byte_range *y = &check->bytes[row->operand_count - 1];
    struct seen_operand *operand = call->operand;
    for (uint32_t i = row->operand_count; i-- > 0;) {
        if (is_absent(&t[i])) {
            call->absent[call->absent_count++] = row->operands[i].offset;
            continue;
        }
        set_operand(operand, &t[i], &check->bytes[i], y);
        operand++->at = row->operands[i].offset;
    }
    operand->at = -1;
}

static void set_fields(struct seen_call *call, const struct op_row *row, const void *args)
{
    const uint64_t operands = row->operand_count * sizeof(struct hw_tensor);
    call->fields = operands - (row->size - operands) % sizeof(pair);
    call->field_bytes = row->size - call->fields;
    memcpy(call->field, at(args, call->fields), call->field_bytes);
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
            if (row->written >> y & 1 && x != y && !is_absent(&t[y]) && !is_absent(&t[x]))
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
    for (struct seen_operand *operand = call->operand + 1; operand->at >= 0; operand++) {
        const uint64_t i = (uint64_t)operand->at / sizeof(struct hw_tensor);
        const struct byte_range *x = &check->bytes[i];
        if (share_space(y, x) && y->begin == x->begin)
            operand->in_place = 0 - reach_of(y);
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

/* The remembered call of this form. If there is none, it takes the place of the oldest. */
static struct seen_call *remember(struct seen_calls *seen, const void *args,
                                  const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    const uint32_t slot = slot_of(check->op, args);
    for (uint32_t way = 0; way < SEEN_WAYS; way++)
        if (same_form(seen->slot[way][slot], check->op, args))
            return seen->slot[way][slot];
    struct seen_call *call = take_oldest(seen);
    call->submit = row->submit;
    call->size = row->size;
    call->op = check->op;
    call->slot = slot;
    call->absent_count = call->pair_count = 0;
    set_operands(call, row, args, check);
    set_fields(call, row, args);
    set_pairs(call, row, args, check);
    if (seen->slot[0][slot])
        seen->slot[1][slot] = seen->slot[0][slot];
    seen->slot[0][slot] = call;
    return call;
}

void seen_add(struct seen_calls *seen, const void *args, const struct check *check)
{
    if (plain(&op_rows[check->op], args, check))
        allow_in_place(remember(seen, args, check), check);
}
