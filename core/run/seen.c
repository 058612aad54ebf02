/* SPDX-License-Identifier: MIT */
/* seen.c - remembers calls that the full check accepted: see seen.h. */
#include "run/seen.h"

#include "run/dtype.h"

#include <string.h>

/* Whether all operands that are present have elements, and none has a private layout. */
static bool plain(const struct op_row *row, const void *args, const struct check *check)
{
    const struct hw_tensor *t = args;
    for (uint32_t i = 0; i < row->operand_count; i++)
        if (t[i].dtype != HW_NONE &&
            (t[i].layout || check->bytes[i].begin == check->bytes[i].end))
            return false;
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

/* The remembered call of this form, or room for it. */
static struct seen_call *find(struct seen_calls *seen, const struct op_row *row,
                              const void *args)
{
    struct seen_call **slot = seen->slot[slot_of(row, args)];
    for (int i = 0; i < SEEN_WAYS; i++)
        if (slot[i] && same_form(slot[i], row, args, row->operand_count))
            return slot[i];
    slot[1] = slot[0];
    slot[0] = &seen->call[seen->next++ % SEEN_CALLS];
    slot[0]->in_place = 0;
    return slot[0];
}

void seen_add(struct seen_calls *seen, const void *args, const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    const struct hw_tensor *t = args;
    if (!plain(row, args, check))
        return;
    struct seen_call *call = find(seen, row, args);
    call->row = row;
    call->in_place |= pairs_in_place(row, check);
    memcpy(&call->args, args, row->size);
    for (uint32_t i = 0; i < row->operand_count; i++)
        call->place[i] = (struct seen_place){
            .reach = check->bytes[i].end - check->bytes[i].begin,
            .misaligned = t[i].dtype ? dtype_rows[t[i].dtype].alignment - 1u : 0,
        };
}
