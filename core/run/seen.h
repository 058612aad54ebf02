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
 * which also finds the reason if one is invalid.
 *
 * Many calls repeat the addresses, too. Then nothing can have become wrong unless a buffer was
 * freed, whose address may mean another one now, and one comparison of the struct is all. The
 * same comparison says whether the form is the same, so that of others only the addresses have
 * to be looked at. */
#ifndef HW_RUN_SEEN_H
#define HW_RUN_SEEN_H

#include "base/fork.h"
#include "base/likely.h"
#include "run/buffer.h"
#include "run/check.h"
#include "run/queue.h"

#define HOT static inline __attribute__((always_inline))

/* ---- the form ---- */

/* An op's struct has its operands first, then other fields, in 64-bit words. Its first and its
 * last operand are present, and the last one is an output. */
#define T(op, field, role)                                                                 \
    _Static_assert(offsetof(struct hw_##op, field) ==                                      \
                       OPERAND_##op##_##field * sizeof(struct hw_tensor),                  \
                   #op ": its operands must come first, in the order of the table");
#define X(NAME, name)                                                                      \
    HW_OPERANDS_##NAME(T) _Static_assert(OPERANDS_##name >= 2, #name ": see slot_of()");   \
    _Static_assert(sizeof(struct hw_##name) % sizeof(uint64_t) == 0, #name ": words");     \
    _Static_assert(sizeof(struct hw_##name) <=                                             \
                       OPERANDS_##name * sizeof(struct hw_tensor) + TAIL_BYTES,            \
                   #name ": TAIL_BYTES");
HW_OPS(X)
#undef X
#undef T

_Static_assert(HW_NONE == 0, "compare(): one test for all absent operands");

/* Two words at a time; those of a remembered call are aligned. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint64_t even_pair __attribute__((vector_size(16), may_alias));

/* Which bits differ, so far. */
struct difference {
    pair where;      /* of operands: buffers and data */
    pair which;      /* offsets; dtypes and ranks */
    pair form;       /* all else */
    uint32_t absent; /* dtypes of operands that were absent */
};

HOT const void *at(const void *args, uint64_t offset)
{
    return (const char *)args + offset;
}

HOT bool is_absent(const struct seen_call *seen, uint32_t operand)
{
    return seen->absent >> operand & 1;
}

HOT void compare_pair(pair *differ, const void *given, const void *like)
{
    *differ |= *(const pair *)given ^ *(const even_pair *)like;
}

HOT void compare_operand(struct difference *differ, const struct hw_tensor *t,
                         const struct hw_tensor *like)
{
    compare_pair(&differ->where, t, like);
    compare_pair(&differ->which, &t->offset, &like->offset);
    for (uint64_t i = offsetof(struct hw_tensor, extent); i < sizeof *t; i += sizeof(pair))
        compare_pair(&differ->form, at(t, i), at(like, i));
}

/* Compares a call of the remembered one's op, which has `count` operands. Of an absent one only the
 * dtype counts. The fields that are not operands are the last bytes of the struct; before them is
 * the shape of the last operand, which may be compared with them. */
HOT struct difference compare(const struct seen_call *seen, const void *args,
                              uint32_t count)
{
    const struct hw_tensor *t = args;
    const char *end = at(args, seen->size), *like = at(seen->tail, TAIL_BYTES);
    struct difference differ = { .absent = HW_NONE };
    for (uint32_t i = 0; i < count; i++)
        if (is_absent(seen, i))
            differ.absent |= (uint32_t)t[i].dtype;
        else
            compare_operand(&differ, &t[i], &seen->operand[i].tensor);
    for (uint64_t left = seen->field_bytes; left; left -= sizeof(pair))
        compare_pair(&differ.form, end - left, like - left);
    return differ;
}

/* Whether nothing differs but addresses. */
HOT bool same_form(const struct difference *differ)
{
    return !(differ->form[0] | differ->form[1] | differ->which[1] | differ->absent);
}

HOT bool same_call(const struct difference *differ)
{
    const pair any = differ->where | differ->which | differ->form;
    return !(any[0] | any[1] | differ->absent);
}

/* The slot for calls of these extents: calls that differ in other fields share it. */
HOT uint32_t slot_of(uint32_t op, const void *args)
{
    const struct hw_tensor *t = args;
    const uint32_t mix =
        ((uint32_t)t[0].extent[0] + (uint32_t)t[1].stride[0] + op) * 0x2545F491u +
        ((uint32_t)t[0].stride[0] + (uint32_t)t[1].extent[0]) * 0x6C078965u;
    return mix / (UINT32_MAX / SEEN_SLOTS + 1);
}

/* ---- the same addresses ---- */

/* The sum of two numbers that only grow, so it is the same only if both are: how often the
 * queue's device changed, and how often the process forked. */
HOT uint64_t stamp_of(const struct hw_queue *queue, memory_order order)
{
    return atomic_load_explicit(&queue->device->changes, order) +
           atomic_load_explicit(&process_generation, memory_order_relaxed);
}
#define NO_STAMP UINT64_MAX

/* ---- other addresses ---- */

/* Whether the operand is where a call may have it. Sets where it begins, as a number to
 * compare: the address in host memory, otherwise one derived from the plugin's handle. The
 * bits that are barred keep the sums from wrapping. */
HOT bool place_fits(const struct hw_queue *queue, const struct hw_device *device,
                    const struct hw_tensor *t, const struct seen_place *like,
                    uint64_t *begin)
{
    const struct buffer *buffer = buffer_of(t->buffer);
    const uint64_t offset = t->offset;
    if (likely(buffer != NULL)) {
        *begin = buffer->address + offset;
        return likely(!(offset & like->barred)) &&
               likely(offset + like->reach <= buffer->base.bytes) &&
               likely(buffer->owner == device);
    }
    *begin = (uint64_t)(uintptr_t)t->data + offset;
    return t->data && queue->host_tensors && *begin >= offset && !(*begin & like->barred);
}

HOT bool writable(const struct hw_tensor *t)
{
    return !t->buffer || !(t->buffer->flags & HW_BUFFER_READ_ONLY);
}

/* Whether the operands of a call of this form, except those that others_fit() looks at, are where
 * a call may have them. */
HOT bool places_fit(const struct hw_queue *queue, const struct seen_call *seen,
                    const void *args)
{
    const struct hw_device *device = queue->device;
    const struct seen_place *like = seen->place, *const end = seen->end;
    const struct hw_tensor *t = at(args, like->at);
    uint64_t begin, y_end;
    if (unlikely(!place_fits(queue, device, t, like, &y_end)) || unlikely(!writable(t)))
        return false;
    y_end += like->reach;
    while (++like < end)
        if (unlikely(!place_fits(queue, device, at(args, like->at), like, &begin)) ||
            (unlikely(begin - y_end > like->room) && begin - y_end != like->in_place))
            return false;
    return true;
}

/* Whether the outputs besides the last operand are writable and overlap no other operand, and
 * packed operands are as their device made them. All operands fit, and the last one overlaps
 * none. */
bool others_fit(const struct seen_call *seen, const void *args);

/* Whether a call is like the remembered one: it is valid, and the plugin can take it as it is. */
bool is_like(const struct hw_queue *queue, const struct seen_call *seen, const void *args);

/* ---- remembered calls ---- */

/* What the quick look reads of any op, whatever its size. */
#define SEEN_BYTES (2 * sizeof(struct hw_tensor))

/* A remembered call that may be like this one, or NULL. */
HOT struct seen_call *seen_in(const struct hw_queue *queue, uint32_t way, uint32_t op,
                              const void *args, size_t size)
{
    struct seen_call *seen = queue->seen.slot[way][slot_of(op, args)];
    return seen && seen->op == op && seen->size == size ? seen : NULL;
}

/* Where operands are elsewhere in each call, remembering their addresses costs more than it saves.
 * So of each round of such calls, only the addresses of the first ones are remembered. */
enum { FOLLOWED = 4, ROUND = 256 };
HOT bool is_followed(struct seen_call *seen)
{
    return seen->rest-- == 0;
}

/* Remembers the addresses of a call that is like this one; `stamp`: from before the look. */
void follow(struct seen_call *seen, const void *args, uint64_t stamp);

/* Makes the other call of the slot the first. */
void seen_swap(struct seen_calls *seen, uint32_t slot);

/* Remembers a call that the full check accepted, and that the plugin takes as it is. */
void seen_add(struct seen_calls *seen, const void *args, const struct check *check);

#endif
