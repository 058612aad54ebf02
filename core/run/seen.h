/* SPDX-License-Identifier: MIT */
/* seen.h - the quick look at a call: whether it is like one that the full check accepted.
 * Part of ops.c, which inlines it.
 *
 * Models repeat the same calls on other addresses. A check depends on the address of an
 * operand only through its alignment, the bounds and flags of its buffer, and its overlap
 * with other operands; all else is in the other bytes of the op's struct, its form. So a
 * queue remembers calls that the full check accepted and that the plugin takes as they are.
 * A call of the same form is valid, too, if each operand is aligned and fits its buffer,
 * and no output overlaps another operand, except where a call of this form was in place.
 * That holds for every op and every field. All other calls get the full check in check.c,
 * which also finds the reason if one is invalid. */
#ifndef HW_RUN_SEEN_H
#define HW_RUN_SEEN_H

#include "base/likely.h"
#include "run/buffer.h"
#include "run/check.h"
#include "run/queue.h"

#define HOT    static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8") /* where the number of operands is constant */

/* ---- the form ---- */

/* An op's struct has its operands first, then other fields, in 64-bit words. */
#define T(op, field, role)                                                                 \
    _Static_assert(offsetof(struct hw_##op, field) ==                                      \
                       OPERAND_##op##_##field * sizeof(struct hw_tensor),                  \
                   #op ": its operands must come first, in the order of the table");
#define X(NAME, name)                                                                      \
    HW_OPERANDS_##NAME(T) _Static_assert(OPERANDS_##name >= 2, #name ": see slot_of()");   \
    _Static_assert(sizeof(struct hw_##name) % sizeof(uint64_t) == 0, #name ": words");
HW_OPS(X)
#undef X
#undef T

typedef uint64_t word __attribute__((may_alias));
/* Two words at a time; those of a remembered call are aligned. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint64_t even_pair __attribute__((vector_size(16), may_alias));
#define WORDS(t, field)        (*(const pair *)&(t)->field)
#define SEEN_WORDS(t, field)   (*(const even_pair *)&(t)->field)
#define DIFFER(t, seen, field) (WORDS(t, field) ^ SEEN_WORDS(seen, field))
#define KIND(t)                (*(const word *)&(t)->dtype) /* dtype and rank */

/* Whether dtype, rank, extents, strides and layout are equal: layout 0, as in all calls that
 * are remembered. */
HOT pair operands_differ(const struct hw_tensor *t, const struct hw_tensor *seen)
{
    return DIFFER(t, seen, extent[0]) | DIFFER(t, seen, extent[2]) |
           DIFFER(t, seen, stride[0]) | DIFFER(t, seen, stride[2]) | WORDS(t, layout);
}

/* Whether the structs differ only in addresses. Of absent operands, the fields that nobody
 * reads may differ, if an op has many. */
HOT bool same_form(const struct seen_call *seen, const struct op_row *row, const void *args,
                   uint32_t count)
{
    const struct hw_tensor *t = args, *like = (const void *)&seen->args;
    const word *a = (const void *)(t + count), *b = (const void *)(like + count),
               *end = (const void *)((const char *)args + row->size);
    uint64_t others = (uint64_t)(uintptr_t)seen->row ^ (uint64_t)(uintptr_t)row;
    pair operands = { 0 };
    UNROLL
    for (uint32_t i = 0; i < MAX_OPERANDS && i < count; i++) {
        others |= KIND(t + i) ^ KIND(like + i);
        if (count < 4 || seen->place[i].reach)
            operands |= operands_differ(t + i, like + i);
    }
    for (; a < end; a++, b++)
        others |= *a ^ *b;
    return !(others | operands[0] | operands[1]);
}

/* The slot for calls of these extents: calls that differ in other fields share it. */
HOT uint32_t slot_of(const struct op_row *row, const void *args)
{
    const struct hw_tensor *t = args;
    const word *a = (const word *)t[0].extent, *b = (const word *)t[1].extent;
    const uint64_t mix = a[0] * 0x2545F491 + a[1] * 0x1B873593 + a[2] * 0x6C078965 +
                         a[3] * 0x5851F42D + b[0] * 0x3C6EF35F + row->size;
    return (uint32_t)(mix >> 20) % SEEN_SLOTS;
}

/* ---- places ---- */

/* Whether the operand is where a call may have it. Sets where it begins, as a number to
 * compare: the address in host memory, otherwise one derived from the plugin's handle. */
HOT bool place_fits(const struct hw_queue *queue, const struct hw_tensor *t,
                    const struct seen_place *place, bool written, uint64_t *begin)
{
    const struct hw_buffer *buffer = t->buffer;
    const uint64_t offset = t->offset;
    if (buffer) {
        *begin = buffer_of(buffer)->address + offset;
        return buffer->device == queue->device_impl && offset <= buffer->bytes &&
               place->reach <= buffer->bytes - offset &&
               !((*begin | offset) & place->misaligned) &&
               !(written && buffer->flags & HW_BUFFER_READ_ONLY);
    }
    *begin = (uint64_t)(uintptr_t)t->data + offset;
    return t->data && queue->host_tensors && *begin >= offset &&
           *begin + place->reach > *begin && !(*begin & place->misaligned);
}

/* The numbers may wrap. */
HOT bool disjoint(uint64_t a, uint64_t a_reach, uint64_t b, uint64_t b_reach)
{
    return b - a >= a_reach && a - b >= b_reach;
}

/* `written` has a bit for each output. An absent operand has no bytes. */
HOT bool places_fit(const struct hw_queue *queue, const struct seen_call *seen,
                    const void *args, uint32_t count, uint32_t written)
{
    const struct hw_tensor *t = args;
    const struct seen_place *place = seen->place;
    uint64_t begin[MAX_OPERANDS];
    UNROLL
    for (uint32_t i = 0; i < MAX_OPERANDS && i < count; i++) {
        if (!place[i].reach)
            begin[i] = 0;
        else if (!place_fits(queue, &t[i], &place[i], written >> i & 1, &begin[i]))
            return false;
    }
    for (uint32_t outputs = written; outputs; outputs &= outputs - 1) {
        const uint32_t y = (uint32_t)__builtin_ctz(outputs);
        UNROLL
        for (uint32_t x = 0; x < MAX_OPERANDS && x < count; x++)
            if (x != y && !disjoint(begin[y], place[y].reach, begin[x], place[x].reach) &&
                !(begin[y] == begin[x] && seen->in_place >> (MAX_OPERANDS * y + x) & 1))
                return false;
    }
    return true;
}
_Static_assert(MAX_OPERANDS <= 8, "bits of in_place");

/* ---- the call ---- */

HOT bool is_like(const struct hw_queue *queue, const struct seen_call *seen,
                 const struct op_row *row, const void *args, uint32_t count,
                 uint32_t written)
{
    return likely(same_form(seen, row, args, count)) &&
           places_fit(queue, seen, args, count, written);
}

/* For ops with any number of operands, and for both calls of a slot. */
static __attribute__((noinline, cold)) bool is_like_any(const struct hw_queue *queue,
                                                        struct seen_call *const *slot,
                                                        const struct op_row *row,
                                                        const void *args)
{
    for (int i = 0; i < SEEN_WAYS && slot[i]; i++)
        if (is_like(queue, slot[i], row, args, row->operand_count, row->written))
            return true;
    return false;
}

/* True if the call is valid and the plugin can take it as it is. False says nothing. The
 * usual numbers of operands have code of their own. */
HOT bool seen_before(const struct hw_queue *queue, const struct op_row *row,
                     const void *args)
{
    struct seen_call *const *slot = queue->seen.slot[slot_of(row, args)];
    if (!slot[0])
        return false;
#define OPERANDS(count, outputs)                                                           \
    case (count) << MAX_OPERANDS | (outputs):                                              \
        if (is_like(queue, slot[0], row, args, count, outputs))                            \
            return true;                                                                   \
        break;
    switch (row->operand_count << MAX_OPERANDS | row->written) {
        OPERANDS(2, 1 << 1)
        OPERANDS(3, 1 << 2)
        OPERANDS(4, 1 << 3)
        OPERANDS(4, 1 << 3 | 1 << 0)
        OPERANDS(5, 1 << 4)
        OPERANDS(8, 1 << 7)
    }
#undef OPERANDS
    return is_like_any(queue, slot, row, args);
}

/* Remembers a call that the full check accepted, and that the plugin takes as it is. */
void seen_add(struct seen_calls *seen, const void *args, const struct check *check);

#endif
