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
 * address may belong to another buffer now. So one comparison of the whole struct is enough.
 *
 * A plugin may have plans (plan_build() in <hw/plugin.h>). A remembered call keeps the plan of its
 * form, so that the plugin need not look for it. */
#ifndef HW_CALL_SEEN_H
#define HW_CALL_SEEN_H

#include "base/fork.h"
#include "base/likely.h"
#include "call/check.h"
#include "call/queue.h"
#include "memory/buffer.h"

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
    _Static_assert(sizeof(struct hw_##name) % sizeof(uint64_t) == 0, #name ": words");
HW_OPS(X)
#undef X
#undef T

/* One word, and two at a time. */
typedef uint64_t word __attribute__((may_alias));
typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
enum {
    SHAPE_PAIRS = (sizeof(struct hw_tensor) - offsetof(struct hw_tensor, extent)) /
                  sizeof(pair)
};

/* The bits that differ in extents, strides and layout. */
HOT pair differ_in_shape(const struct hw_tensor *t, const struct hw_tensor *like)
{
    const pair *shape = (const pair *)t->extent, *like_shape = (const pair *)like->extent;
    pair differ = { 0 };
#pragma GCC unroll 8
    for (uint32_t i = 0; i < SHAPE_PAIRS; i++)
        differ |= shape[i] ^ like_shape[i];
    return differ;
}

HOT bool is_there(const struct seen_call *seen, uint32_t operand)
{
    return !(seen->absent >> operand & 1);
}

/* Whether the operand has the same dtype and rank. For an absent operand only the dtype counts. */
HOT bool same_type(const struct seen_call *seen, const void *args, uint32_t operand)
{
    const struct hw_tensor *t = args, *like = (const void *)&seen->args;
    return is_there(seen, operand)
               ? *(const word *)&t[operand].dtype == *(const word *)&like[operand].dtype
               : t[operand].dtype == HW_NONE;
}

/* Whether no field differs that is not an operand. They are the last words of the struct. */
HOT bool same_fields(const void *args, const void *like, const struct op_row *row)
{
    const char *field = args, *like_field = like;
    uint64_t differ = 0;
    for (uint64_t i = row->operand_count * sizeof(struct hw_tensor); i < row->size;
         i += sizeof(word))
        differ |= *(const word *)(field + i) ^ *(const word *)(like_field + i);
    return !differ;
}

/* Whether the call has the form of the remembered one. */
HOT bool same_form(const struct seen_call *seen, const void *args, const struct op_row *row)
{
    const struct hw_tensor *t = args, *like = (const void *)&seen->args;
    pair differ = { 0 };
    for (uint32_t i = 0; i < row->operand_count; i++) {
        if (unlikely(!same_type(seen, args, i)))
            return false;
        if (is_there(seen, i))
            differ |= differ_in_shape(&t[i], &like[i]);
    }
    return likely(!(differ[0] | differ[1])) && likely(same_fields(args, like, row));
}

/* Whether nothing differs at all. */
HOT bool same_call(const struct seen_call *seen, const void *args, const struct op_row *row)
{
    return memcmp(args, &seen->args, row->size) == 0;
}

/* The slot for calls with these extents and strides, and this dtype of the second operand. Calls
 * that differ in other fields share it. */
HOT uint32_t slot_of(uint32_t op, const void *args)
{
    const struct hw_tensor *t = args;
    const uint32_t mix =
        ((uint32_t)t[0].extent[0] + (uint32_t)t[1].stride[0]) * 0x2545F491u +
        ((uint32_t)t[0].stride[0] + (uint32_t)t[1].extent[0]) * 0x6C078965u +
        (op + 64 * (uint32_t)t[1].dtype) * 0x2545F491u;
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

/* Whether the operand has a valid address. Sets *begin to a number to compare: the host address, or
 * a number derived from the plugin's handle. The forbidden bits keep the sums from wrapping. */
HOT bool place_fits(const struct hw_queue *queue, const struct seen_call *seen,
                    const struct hw_tensor *t, uint32_t operand, uint64_t *begin)
{
    const struct seen_place *like = &seen->place[operand];
    const struct buffer *buffer = buffer_of(t->buffer);
    const uint64_t offset = t->offset;
    if (likely(buffer != NULL)) {
        *begin = buffer->address + offset;
        return likely((offset & like->forbidden_bits) == 0) &&
               likely(offset + like->bytes <= buffer->base.bytes) &&
               likely(buffer->owner == queue->device);
    }
    *begin = (uint64_t)(uintptr_t)t->data + offset;
    return t->data && queue->host_tensors && *begin >= offset &&
           !(*begin & like->forbidden_bits);
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
    for (uint32_t rest = seen->outputs; rest; rest &= rest - 1) {
        const uint32_t y = (uint32_t)__builtin_ctz(rest);
        const uint64_t bytes = seen->place[y].bytes, end = begin[y] + bytes;
        if (unlikely(!writable(&t[y])))
            return false;
        for (uint32_t x = 0; x < last; x++)
            if (x != y && is_there(seen, x) &&
                unlikely(begin[x] - end > 0 - bytes - seen->place[x].bytes))
                return false;
    }
    return true;
}

/* Whether packed operands are as their device made them. All operands fit already. */
bool packed_fit(const struct seen_call *seen, const void *args);

/* Whether a call is like the remembered one: it has the same form, is valid, and the plugin can
 * take it as it is. An address means something only if the operand is there, so the form comes
 * first. */
HOT bool is_like(const struct hw_queue *queue, const struct seen_call *seen,
                 const void *args, const struct op_row *row)
{
    const uint32_t last = row->operand_count - 1;
    const struct hw_tensor *t = args;
    uint64_t begin[MAX_OPERANDS];
    if (unlikely(!same_form(seen, args, row)) ||
        unlikely(!place_fits(queue, seen, &t[last], last, &begin[last])) ||
        unlikely(!writable(&t[last])))
        return false;
    const uint64_t end = begin[last] + seen->place[last].bytes;
    for (uint32_t i = 0; i < last; i++)
        if (is_there(seen, i) && (unlikely(!place_fits(queue, seen, &t[i], i, &begin[i])) ||
                                  (unlikely(begin[i] - end > seen->place[i].gap_max) &&
                                   begin[i] - end != seen->place[i].in_place)))
            return false;
    return outputs_fit(seen, args, row, begin) &&
           (likely(!seen->packed) || packed_fit(seen, args));
}

/* ---- remembered calls ---- */

/* The latest call that may be like this one, or NULL; `next` leads to earlier ones. */
HOT struct seen_call *seen_first(const struct hw_queue *queue, uint32_t op,
                                 const void *args)
{
    return queue->seen.slot[slot_of(op, args)];
}

/* If each call has other addresses, remembering them costs more than it saves. So of so many calls
 * on other addresses, one has its addresses remembered. */
enum { ROUND = 256 };

/* Remembers the addresses of a call that is like `seen`. `stamp` is from before the look. */
HOT void seen_update(struct seen_call *seen, const void *args, uint64_t stamp)
{
    if (likely(seen->skip_count)) {
        seen->skip_count--;
        seen->stamp = NO_STAMP;
        return;
    }
    memcpy(&seen->args, args, op_rows[seen->op].size);
    seen->stamp = stamp;
    seen->skip_count = ROUND - 1;
}

/* Makes it the first of its slot. */
void seen_put_first(struct hw_queue *queue, struct seen_call *call);

/* Remembers a call that the full check accepted, and that the plugin takes as it is. Returns NULL
 * if calls of this form cannot be remembered. */
struct seen_call *seen_add(struct hw_queue *queue, const void *args,
                           const struct check *check);

/* Destroys the plans of a queue that is about to be closed. */
void seen_drop(struct hw_queue *queue);

#endif
