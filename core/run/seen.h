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

#define HOT static inline __attribute__((always_inline))

/* ---- the form ---- */

/* An op's struct has its operands first, then other fields, in 64-bit words. Its last operand
 * is an output, and present. */
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

#define SAME(field)                                                                        \
    _Static_assert(offsetof(struct seen_operand, field) ==                                 \
                       offsetof(struct hw_tensor, field),                                  \
                   "seen_operand: " #field);
SAME(dtype)
SAME(extent)
SAME(stride)
SAME(layout)
#undef SAME
_Static_assert(sizeof(struct seen_operand) == sizeof(struct hw_tensor), "seen_operand");

typedef uint64_t word __attribute__((may_alias));
/* Two words at a time; those of a remembered call are aligned. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint64_t even_pair __attribute__((vector_size(16), may_alias));
#define PAIR_OF(t, field)      (*(const pair *)&(t)->field)
#define EVEN_PAIR_OF(t, field) (*(const even_pair *)&(t)->field)
#define DIFFER(t, like, field) (PAIR_OF(t, field) ^ EVEN_PAIR_OF(like, field))
#define KIND(t)                (*(const word *)&(t)->dtype) /* dtype and rank */

/* Not zero if extents, strides or layout differ: layout 0, as in all calls that are
 * remembered. */
HOT pair operands_differ(const struct hw_tensor *t, const struct seen_operand *like)
{
    return DIFFER(t, like, extent[0]) | DIFFER(t, like, extent[2]) |
           DIFFER(t, like, stride[0]) | DIFFER(t, like, stride[2]) | PAIR_OF(t, layout);
}

/* Not zero if the fields that are not operands differ. They are compared from the end, two
 * words at a time; a word more belongs to the last operand's form. */
HOT pair fields_differ(const struct seen_call *seen, const void *args)
{
    const char *a = args, *b = (const char *)&seen->args;
    pair differ = { 0 };
    for (uint64_t end = seen->size; end > seen->last + sizeof(struct hw_tensor);
         end -= sizeof(pair))
        differ |= *((const pair *)(const void *)(a + end) - 1) ^
                  *((const pair *)(const void *)(b + end) - 1);
    return differ;
}

HOT const void *at(const void *operands, uint32_t offset)
{
    return (const char *)operands + offset;
}

HOT bool is_zero(pair differ)
{
    return !(differ[0] | differ[1]);
}

/* The slot for calls of these extents: calls that differ in other fields share it. */
HOT uint32_t slot_of(uint32_t op, const void *args)
{
    const struct hw_tensor *t = args;
    const uint32_t mix = (uint32_t)t[0].extent[0] * 0x2545F491u +
                         (uint32_t)t[0].stride[0] * 0x1B873593u +
                         (uint32_t)t[1].extent[0] * 0x6C078965u +
                         (uint32_t)t[1].extent[1] * 0x5851F42Du + op * 0x3C6EF35Fu;
    return mix / (UINT32_MAX / SEEN_SLOTS + 1);
}

/* ---- places ---- */

/* Whether the operand is where a call may have it. Sets where it begins, as a number to
 * compare: the address in host memory, otherwise one derived from the plugin's handle. The
 * bits that are barred keep the sums from wrapping. */
HOT bool place_fits(const struct hw_queue *queue, const struct hw_tensor *t,
                    const struct seen_operand *like, uint64_t *begin)
{
    const uint64_t offset = t->offset;
    if (likely(t->buffer != NULL)) {
        const struct buffer *buffer = buffer_of(t->buffer);
        *begin = buffer->address + offset;
        return !(offset & like->barred) && offset + like->reach <= buffer->base.bytes &&
               buffer->base.device == queue->device_impl;
    }
    *begin = (uint64_t)(uintptr_t)t->data + offset;
    return t->data && queue->host_tensors && *begin >= offset && !(*begin & like->barred);
}

HOT bool writable(const struct hw_tensor *t)
{
    return !t->buffer || !(t->buffer->flags & HW_BUFFER_READ_ONLY);
}

HOT bool in_place(const struct seen_call *seen, int64_t y, int64_t x)
{
    return seen->in_place >> (MAX_OPERANDS * y + x) & 1;
}
_Static_assert(MAX_OPERANDS <= 8, "bits of in_place");

/* Whether the outputs besides the last operand are writable and overlap no other operand. All
 * operands fit, and the last one overlaps none. */
bool other_outputs_fit(const struct seen_call *seen, const struct hw_tensor *t);

/* ---- the call ---- */

HOT bool is_like(const struct hw_queue *queue, const struct seen_call *seen,
                 const void *args)
{
    const struct hw_tensor *t = args, *y = at(args, seen->last);
    const struct seen_operand *like = seen->operand, *y_like = at(like, seen->last);
    pair differ = fields_differ(seen, args) | operands_differ(y, y_like);
    uint64_t begin, y_begin;
    if (KIND(y) != KIND(y_like) || !place_fits(queue, y, y_like, &y_begin) || !writable(y))
        return false;
    const uint64_t y_end = y_begin + y_like->reach;
    for (; t != y; t++, like++) {
        if (!like->reach) {
            if (t->dtype != HW_NONE)
                return false;
            continue;
        }
        differ |= operands_differ(t, like);
        if (KIND(t) != KIND(like) || !place_fits(queue, t, like, &begin) ||
            (begin - y_end > like->room &&
             (begin != y_begin ||
              !in_place(seen, y - (const struct hw_tensor *)args, like - seen->operand))))
            return false;
    }
    return is_zero(differ) && (!seen->others || other_outputs_fit(seen, args));
}

/* What the quick look reads of any op, whatever its size. */
#define SEEN_BYTES (2 * sizeof(struct hw_tensor))

/* Returns a remembered call if this one is like it: it is valid, and the plugin can take it
 * as it is. NULL says nothing. */
HOT const struct seen_call *seen_before(const struct hw_queue *queue, uint32_t way,
                                        uint32_t op, const void *args, size_t size)
{
    const struct seen_call *seen = queue->seen.slot[way][slot_of(op, args)];
    return seen && seen->op == op && seen->size == size && is_like(queue, seen, args)
               ? seen
               : NULL;
}

/* Remembers a call that the full check accepted, and that the plugin takes as it is. */
void seen_add(struct seen_calls *seen, const void *args, const struct check *check);

#endif
