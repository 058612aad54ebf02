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
    _Static_assert(sizeof(struct hw_##name) % sizeof(uint64_t) == 0, #name ": words");     \
    _Static_assert(sizeof(struct hw_##name) <=                                             \
                       OPERANDS_##name * sizeof(struct hw_tensor) + MAX_FIELD_BYTES,       \
                   #name ": MAX_FIELD_BYTES");
HW_OPS(X)
#undef X
#undef T

#define SAME(field)                                                                        \
    _Static_assert(offsetof(struct seen_operand, field) ==                                 \
                       offsetof(struct hw_tensor, field),                                  \
                   "seen_operand: " #field);
SAME(dtype)
SAME(rank)
SAME(extent)
SAME(stride)
#undef SAME
_Static_assert(sizeof(struct seen_operand) % 16 == 0, "seen_operand: aligned pairs");

typedef uint64_t word __attribute__((may_alias));
/* Two words at a time; those of a remembered call are aligned. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint64_t even_pair __attribute__((vector_size(16), may_alias));
#define PAIR_OF(t, field)      (*(const pair *)&(t)->field)
#define EVEN_PAIR_OF(t, field) (*(const even_pair *)&(t)->field)
#define DIFFER(t, like, field) (PAIR_OF(t, field) ^ EVEN_PAIR_OF(like, field))
#define KIND(t)                (*(const word *)&(t)->dtype) /* dtype and rank */

HOT const void *at(const void *args, uint64_t offset)
{
    return (const char *)args + offset;
}

/* Not zero if extents, strides or layout differ: layout 0, as in all calls that are
 * remembered. */
HOT pair operand_differs(const struct hw_tensor *t, const struct seen_operand *like)
{
    return DIFFER(t, like, extent[0]) | DIFFER(t, like, extent[2]) |
           DIFFER(t, like, stride[0]) | DIFFER(t, like, stride[2]) | PAIR_OF(t, layout);
}

/* Not zero if the fields that are not operands differ. If their words are odd in number, the
 * last word of the last operand, which is reserved, comes first. */
HOT pair fields_differ(const struct seen_call *seen, const void *args)
{
    const pair *end = at(args, seen->fields + seen->field_bytes);
    pair differ = { 0 };
    for (uint64_t left = seen->field_bytes; left; left -= sizeof(pair))
        differ |= *--end ^ *(const even_pair *)at(seen->field, left - sizeof(pair));
    return differ;
}

HOT bool is_absent(const struct hw_tensor *t)
{
    return t->dtype == HW_NONE;
}

/* Whether the operands are absent that were. */
HOT bool same_absent(const struct seen_call *seen, const void *args)
{
    for (uint64_t i = seen->absent_count; i; i--)
        if (!is_absent(at(args, seen->absent[i - 1])))
            return false;
    return true;
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
                         (uint32_t)t[1].stride[0] * 0x5851F42Du + op * 0x3C6EF35Fu;
    return mix / (UINT32_MAX / SEEN_SLOTS + 1);
}

/* ---- places ---- */

/* Whether the operand is where a call may have it. Sets where it begins, as a number to
 * compare: the address in host memory, otherwise one derived from the plugin's handle. The
 * bits that are barred keep the sums from wrapping. */
HOT bool place_fits(const struct hw_queue *queue, const struct hw_tensor *t,
                    const struct seen_operand *like, uint64_t *begin)
{
    const struct buffer *buffer = buffer_of(t->buffer);
    const uint64_t offset = t->offset;
    if (likely(buffer != NULL)) {
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

/* Whether the outputs besides the last operand are writable and overlap no other operand. All
 * operands fit, and the last one overlaps none. */
bool other_outputs_fit(const struct seen_call *seen, const void *args);

/* ---- the call ---- */

/* Where an op's last operand is in its struct. Known without a look at a remembered call, so that
 * processors begin to load from there while they still search for one. */
static const uint32_t last_operand_at[HW_OP_COUNT] = {
#define X(NAME, name) (OPERANDS_##name - 1) * sizeof(struct hw_tensor),
    HW_OPS(X)
#undef X
};

/* Leaves open whether other_outputs_fit(). */
HOT bool is_like(const struct hw_queue *queue, uint32_t op, const struct seen_call *seen,
                 const void *args)
{
    const struct seen_operand *like = seen->operand;
    const struct hw_tensor *t = at(args, last_operand_at[op]);
    uint64_t begin, y_end;
    if (KIND(t) != KIND(like) || !place_fits(queue, t, like, &y_end) || !writable(t))
        return false;
    y_end += like->reach;
    pair differ = fields_differ(seen, args) | operand_differs(t, like);
    for (like++; like->at >= 0; like++) {
        t = at(args, (uint64_t)like->at);
        if (KIND(t) != KIND(like) || !place_fits(queue, t, like, &begin) ||
            (unlikely(begin - y_end > like->room) && begin - y_end != like->in_place))
            return false;
        differ |= operand_differs(t, like);
    }
    return is_zero(differ) && same_absent(seen, args);
}

/* What the quick look reads of any op, whatever its size. */
#define SEEN_BYTES (2 * sizeof(struct hw_tensor))

/* A remembered call that may be like this one, or NULL. */
HOT const struct seen_call *seen_in(const struct hw_queue *queue, uint32_t way, uint32_t op,
                                    const void *args, size_t size)
{
    const struct seen_call *seen = queue->seen.slot[way][slot_of(op, args)];
    return seen && seen->op == op && seen->size == size ? seen : NULL;
}

/* Whether a call like this one is remembered: it is valid, and the plugin can take it as it
 * is. False says nothing. */
HOT bool seen_before(const struct hw_queue *queue, uint32_t way, uint32_t op,
                     const void *args, size_t size)
{
    const struct seen_call *seen = seen_in(queue, way, op, args, size);
    return seen && is_like(queue, op, seen, args) && other_outputs_fit(seen, args);
}

/* Remembers a call that the full check accepted, and that the plugin takes as it is. */
void seen_add(struct seen_calls *seen, const void *args, const struct check *check);

#endif
