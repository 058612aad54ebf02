/* SPDX-License-Identifier: MIT */
/* seen.c - remembers calls that the full check accepted: see seen.h. */
#include "run/seen.h"

#include "run/dtype.h"

#include <string.h>

/* ---- looking ---- */

/* The numbers may wrap. */
static bool disjoint(uint64_t a, uint64_t a_reach, uint64_t b, uint64_t b_reach)
{
    return b - a >= a_reach && a - b >= b_reach;
}

static uint64_t begin_of(const struct hw_tensor *t)
{
    return t->offset +
           (t->buffer ? buffer_of(t->buffer)->address : (uint64_t)(uintptr_t)t->data);
}

static bool output_fits(const struct seen_call *seen, const struct hw_tensor *t, uint32_t y)
{
    const struct seen_operand *like = seen->operand;
    const uint64_t y_begin = begin_of(&t[y]);
    for (uint32_t x = 0; x + 1 < op_rows[seen->op].operand_count; x++) {
        if (x == y || !like[x].reach)
            continue;
        const uint64_t begin = begin_of(&t[x]);
        if (!disjoint(y_begin, like[y].reach, begin, like[x].reach) &&
            (begin != y_begin || !in_place(seen, y, x)))
            return false;
    }
    return writable(&t[y]);
}

bool other_outputs_fit(const struct seen_call *seen, const struct hw_tensor *t)
{
    for (uint32_t others = seen->others; others; others &= others - 1)
        if (!output_fits(seen, t, (uint32_t)__builtin_ctz(others)))
            return false;
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

/* The pairs of an output and another operand that begin at the same byte. */
static uint64_t pairs_in_place(const struct op_row *row, const struct check *check)
{
    uint64_t pairs = 0;
    for (uint32_t outputs = row->written; outputs; outputs &= outputs - 1) {
        const uint32_t y = (uint32_t)__builtin_ctz(outputs);
        for (uint32_t x = 0; x < row->operand_count; x++) {
            const struct byte_range *a = &check->bytes[y], *b = &check->bytes[x];
            if (share_space(a, b) && a->begin == b->begin)
                pairs |= UINT64_C(1) << (MAX_OPERANDS * y + x);
        }
    }
    return pairs;
}

/* Whether the call differs only in addresses, and in fields of absent operands, which nobody
 * reads. */
static bool same_form(const struct seen_call *seen, const struct op_row *row,
                      const void *args)
{
    const struct hw_tensor *t = args;
    bool same = seen && seen->call == row->call && is_zero(fields_differ(seen, args));
    for (uint32_t i = 0; same && i < row->operand_count; i++) {
        const struct seen_operand *like = &seen->operand[i];
        same = like->reach
                   ? KIND(&t[i]) == KIND(like) && is_zero(operands_differ(&t[i], like))
                   : t[i].dtype == HW_NONE;
    }
    return same;
}

/* Replaces the address of each operand by what addresses must be like. */
static void set_places(struct seen_call *call, const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    const uint32_t last = row->operand_count - 1;
    const struct byte_range *y = &check->bytes[last];
    for (uint32_t i = 0; i <= last; i++) {
        struct seen_operand *operand = &call->operand[i];
        operand->reach = check->bytes[i].end - check->bytes[i].begin;
        operand->barred = FAR_AWAY | (dtype_rows[operand->dtype].alignment - 1u);
        operand->room = y->begin - y->end - operand->reach;
        if (i != last && operand->reach)
            call->others |= row->written & UINT32_C(1) << i;
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
        if (same_form(seen->slot[way][slot], row, args))
            return seen->slot[way][slot];
    struct seen_call *call = take_oldest(seen);
    call->size = row->size;
    call->op = check->op;
    call->last = (row->operand_count - 1) * (uint32_t)sizeof(struct hw_tensor);
    call->others = 0;
    call->slot = slot;
    call->call = row->call;
    call->in_place = 0;
    memcpy(&call->args, args, row->size);
    set_places(call, check);
    if (seen->slot[0][slot])
        seen->slot[1][slot] = seen->slot[0][slot];
    seen->slot[0][slot] = call;
    return call;
}

void seen_add(struct seen_calls *seen, const void *args, const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    if (plain(row, args, check))
        remember(seen, args, check)->in_place |= pairs_in_place(row, check);
}
