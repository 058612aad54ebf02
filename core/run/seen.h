/* SPDX-License-Identifier: MIT */
/* seen.h - the quick look at a call: is it like a call that the full check accepted? Part of ops.c,
 * which inlines it.
 *
 * Models repeat the same calls on other addresses. A check depends on the address of an operand
 * only through its alignment, the bounds and flags of its buffer, and its overlap with other
 * operands. Everything else that a check reads is in the other bytes of the op's struct, the form
 * of the call. So a queue remembers calls that the full check accepted and that the plugin takes as
 * they are. A later call of the same form is valid if each operand is aligned and fits its buffer,
 * and if no output overlaps another operand, except where a call of this form was in place. That
 * holds for every op and every field. All other calls get the full check in check.c, which also
 * finds the reason if a call is invalid.
 *
 * Many calls repeat the addresses, too. Such a call is valid unless a buffer was freed, because its
 * address may belong to another buffer now. So one comparison of the struct is enough. The same
 * comparison shows whether only addresses differ, and then only these are checked. */
#ifndef HW_RUN_SEEN_H
#define HW_RUN_SEEN_H

#include "base/fork.h"
#include "base/likely.h"
#include "run/buffer.h"
#include "run/check.h"
#include "run/queue.h"

#include <string.h>

#define HOT static inline __attribute__((always_inline))

/* ---- the form ---- */

/* An op's struct consists of 64-bit words: first the operands, then the other fields. The first and
 * the last operand are always present, and the last operand is an output. */
#define T(op, field, role)                                                                 \
    _Static_assert(offsetof(struct hw_##op, field) ==                                      \
                       OPERAND_##op##_##field * sizeof(struct hw_tensor),                  \
                   #op ": its operands must come first, in the order of the table");
#define X(NAME, name)                                                                      \
    HW_OPERANDS_##NAME(T) _Static_assert(OPERANDS_##name >= 2, #name ": see slot_of()");   \
    _Static_assert(sizeof(struct hw_##name) % sizeof(uint64_t) == 0, #name ": words");     \
    _Static_assert(sizeof(struct hw_##name) <=                                             \
                       offsetof(struct hw_tensor, layout) +                                \
                           (OPERANDS_##name - 1) * sizeof(struct hw_tensor) + TAIL_BYTES,  \
                   #name ": TAIL_BYTES");
HW_OPS(X)
#undef X
#undef T

_Static_assert(HW_NONE == 0, "compare(): one test for all absent operands");

/* Two words at a time. The words of a remembered call are aligned. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint64_t even_pair __attribute__((vector_size(16), may_alias));

/* The bits that differ, so far. */
struct difference {
    pair where;      /* buffers and data of operands */
    pair which;      /* offsets; dtypes and ranks */
    pair form;       /* everything else */
    uint32_t absent; /* dtypes of operands that were absent */
};

HOT const void *at(const void *args, uint64_t offset)
{
    return (const char *)args + offset;
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

/* Whether the operand is present in a call where the operands in `absent` are not. */
HOT bool is_there(const struct op_row *row, uint32_t absent, uint32_t operand)
{
    return !(row->optional & absent & 1u << operand);
}

/* Compares a call with a remembered call of the same op. For an absent operand only the dtype
 * counts. Fields that are not operands are the last bytes of the struct. Bytes before them belong
 * to the shape of the last operand, so comparing them as well does no harm. */
HOT struct difference compare(const struct seen_call *seen, const void *args,
                              const struct op_row *row)
{
    const struct hw_tensor *t = args;
    const char *end = at(args, row->size), *like = at(seen->tail, TAIL_BYTES);
    const uint64_t fields = row->size - row->operand_count * sizeof *t;
    struct difference differ = { .absent = HW_NONE };
    for (uint32_t i = 0; i < row->operand_count; i++)
        if (is_there(row, seen->absent, i))
            compare_operand(&differ, &t[i], &seen->operand[i].tensor);
        else
            differ.absent |= (uint32_t)t[i].dtype;
    for (uint64_t i = sizeof(pair); i < fields + sizeof(pair); i += sizeof(pair))
        compare_pair(&differ.form, end - i, like - i);
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

/* The slot for calls with these extents and strides. Calls that differ in other fields share it. */
HOT uint32_t slot_of(uint32_t op, const void *args)
{
    const struct hw_tensor *t = args;
    const uint32_t mix =
        ((uint32_t)t[0].extent[0] + (uint32_t)t[1].stride[0]) * 0x2545F491u +
        ((uint32_t)t[0].stride[0] + (uint32_t)t[1].extent[0]) * 0x6C078965u +
        op * 0x2545F491u;
    return mix / (UINT32_MAX / SEEN_SLOTS + 1);
}

/* ---- the same addresses ---- */

/* How often the queue's device changed plus how often the process forked. Both only grow, so an
 * equal sum means that neither has changed. */
HOT uint64_t stamp_of(const struct hw_queue *queue, memory_order order)
{
    return atomic_load_explicit(&queue->device->changes, order) +
           atomic_load_explicit(&process_generation, memory_order_relaxed);
}
#define NO_STAMP UINT64_MAX

/* ---- other addresses ---- */

HOT uint64_t type_of(const struct hw_tensor *t)
{
    uint64_t type;
    memcpy(&type, &t->dtype, sizeof type);
    return type;
}

/* Whether the operand has the dtype and rank of the remembered operand, and a valid address. Sets
 * *begin to a number to compare: the host address, or a number derived from the plugin's handle.
 * The barred bits keep the sums from wrapping. */
HOT bool place_fits(const struct hw_queue *queue, const struct hw_device *device,
                    const struct seen_call *seen, const struct hw_tensor *t,
                    uint32_t operand, uint64_t *begin)
{
    const struct seen_place *like = &seen->place[operand];
    const struct buffer *buffer = buffer_of(t->buffer);
    const uint64_t offset = t->offset;
    if (unlikely(type_of(t) != type_of(&seen->operand[operand].tensor)))
        return false;
    if (likely(buffer != NULL)) {
        *begin = buffer->address + offset;
        return likely((offset & like->barred) == 0) &&
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

/* Whether the outputs before the last operand are writable and overlap no other operand. `begin`
 * has the start of each operand. The caller has checked the last operand. */
HOT bool outputs_fit(const struct seen_call *seen, const void *args,
                     const struct op_row *row, const uint64_t *begin)
{
    const uint32_t last = row->operand_count - 1;
    const struct hw_tensor *t = args;
#pragma GCC unroll 8
    for (uint32_t y = 0; y < last; y++) {
        if (!(row->written >> y & 1) || !is_there(row, seen->absent, y))
            continue;
        const uint64_t reach = seen->place[y].reach, end = begin[y] + reach;
        if (unlikely(!writable(&t[y])))
            return false;
#pragma GCC unroll 8
        for (uint32_t x = 0; x < last; x++)
            if (x != y && is_there(row, seen->absent, x) &&
                unlikely(begin[x] - end > 0 - reach - seen->place[x].reach))
                return false;
    }
    return true;
}

/* Whether the operands of a call with these shapes have the same types and valid addresses. */
HOT bool places_fit(const struct hw_queue *queue, const struct seen_call *seen,
                    const void *args, const struct op_row *row)
{
    const struct hw_device *device = queue->device;
    const uint32_t last = row->operand_count - 1;
    const struct hw_tensor *t = args;
    uint64_t begin[MAX_OPERANDS] = { 0 };
    if (unlikely(!place_fits(queue, device, seen, &t[last], last, &begin[last])) ||
        unlikely(!writable(&t[last])))
        return false;
    const uint64_t end = begin[last] + seen->place[last].reach;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < last; i++) {
        if (!is_there(row, seen->absent, i))
            continue;
        if (unlikely(!place_fits(queue, device, seen, &t[i], i, &begin[i])) ||
            (unlikely(begin[i] - end > seen->place[i].room) &&
             begin[i] - end != seen->place[i].in_place))
            return false;
    }
    return outputs_fit(seen, args, row, begin);
}

/* Whether packed operands are as their device made them. All operands fit already. */
bool packed_fit(const struct seen_call *seen, const void *args);

/* Whether a call is like the remembered one: it is valid, and the plugin can take it as it is. */
bool is_like(const struct hw_queue *queue, const struct seen_call *seen, const void *args);

/* ---- remembered calls ---- */

/* A remembered call that may be like this one, or NULL. */
HOT struct seen_call *seen_in(const struct hw_queue *queue, uint32_t way, uint32_t op,
                              const void *args)
{
    struct seen_call *seen = queue->seen.slot[way][slot_of(op, args)];
    return likely(seen != NULL) && likely(seen->op == op) ? seen : NULL;
}

/* If each call has other addresses, remembering them costs more than it saves. So in each round of
 * ROUND such calls, only the first FOLLOWED calls have their addresses remembered. */
enum { FOLLOWED = 2, ROUND = 256 };
HOT bool is_followed(struct seen_call *seen)
{
    return ++seen->rest == 0;
}

/* Remembers the addresses of a call that is like `seen`. `stamp` is from before the look. */
void follow(struct seen_call *seen, const void *args, uint64_t stamp);

/* Swaps the two calls of the slot. */
void seen_swap(struct seen_calls *seen, uint32_t slot);

/* Remembers a call that the full check accepted, and that the plugin takes as it is. */
void seen_add(struct seen_calls *seen, const void *args, const struct check *check);

#endif
