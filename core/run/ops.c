/* SPDX-License-Identifier: MIT */
/* ops.c - the path of every call: a check, then one indirect call across the boundary. No lock,
 * no allocation, no string.
 *
 * seen.h recognises calls like earlier ones; all others are checked in full by check.c and, where
 * the plugin cannot take them as they are, go to route.c. */
#include "run/ops.h"

#include "base/fork.h"
#include "base/likely.h"
#include "run/args.h"
#include "run/check.h"
#include "run/copy.h"
#include "run/fallback.h"
#include "run/queue.h"
#include "run/route.h"
#include "run/seen.h"

#include <string.h>

/* ---- the call ---- */

/* True if the plugin can be called with these arguments; otherwise *status is the result of
 * the call. A copy may go to another device, or need no op. */
static __attribute__((noinline)) bool check_whole(struct hw_queue *queue, uint32_t op,
                                                  const void *args, enum hw_status *status)
{
    if (op == HW_OP_COPY && copy_without_op(queue, args, status))
        return false;
    struct check check = { .device = queue->device,
                           .impl = queue->device_impl,
                           .op = op,
                           .traits = TRAIT_ALWAYS };
    *status = check_call(args, &check);
    if (*status)
        return false;
    if (!(check.traits & queue->cold_traits[op])) {
        if (plugin_has(queue->device->plugin, op)) /* else copies may be transfers */
            seen_add(&queue->seen, args, &check);
        return true;
    }
    *status = route(queue, op, args, check.traits);
    return false;
}

/* ---- the table ---- */

#define T(op, field, role) { #field, offsetof(struct hw_##op, field), HW_ROLE_##role },
#define X(NAME, name)                                                                      \
    static int32_t call_##name(struct hw_queue *queue, const void *args)                   \
    {                                                                                      \
        return queue->ops.name(queue->device_impl, queue->impl, args);                     \
    }                                                                                      \
    static enum hw_status submit_##name(struct hw_queue *queue, const void *args)          \
    {                                                                                      \
        const int32_t answer = call_##name(queue, args);                                   \
        if (unlikely(answer))                                                              \
            return submit_failed(queue, HW_OP_##NAME, args, answer);                       \
        count(&queue->calls[HW_OP_##NAME].calls, 1);                                       \
        return HW_OK;                                                                      \
    }                                                                                      \
    static const struct operand_row operands_##name[] = { HW_OPERANDS_##NAME(T) };         \
    _Static_assert(OPERANDS_##name <= MAX_OPERANDS,                                        \
                   #name ": more operands than MAX_OPERANDS");
HW_OPS(X)
#undef X
#undef T

#define T(op, field, role)                                                                 \
    | (uint32_t)(HW_ROLE_##role >= HW_ROLE_OUT) << OPERAND_##op##_##field
const struct op_row op_rows[HW_OP_COUNT] = {
#define X(NAME, name)                                                                      \
    { sizeof(struct hw_##name), OPERANDS_##name, 0 HW_OPERANDS_##NAME(T),                  \
      operands_##name,          call_##name,     submit_##name },
    HW_OPS(X)
#undef X
};
#undef T

/* ---- entries ---- */

/* Calls that are not like the latest one of their slot, and invalid arguments. */
static __attribute__((noinline)) enum hw_status
submit_checked(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    union any_op copy;
    enum hw_status status = queue_ready(queue, "hw_submit");
    if (status)
        return status;
    args = args_of_size(op, args, size, &copy, &status);
    if (!args)
        return status;
    const bool seen = !forked(queue->quick_in) &&
                      seen_before(queue, 1, op, args, op_rows[op].size);
    return seen || check_whole(queue, op, args, &status) ? op_rows[op].submit(queue, args)
                                                         : status;
}

static inline bool lost(const struct hw_device *device)
{
    return atomic_load_explicit(&device->lost, memory_order_relaxed);
}

/* Not static, because then compilers would hand it seen->op and seen->size, which hw_submit()
 * would have to keep in registers that it needs. */
__attribute__((noinline)) enum hw_status
submit_unlike(struct hw_queue *queue, const void *args, const struct seen_call *seen)
{
    return submit_checked(queue, seen->op, args, seen->size);
}

/* A call that is like `seen`, apart from the outputs besides the last operand. */
__attribute__((noinline)) enum hw_status
submit_outputs(struct hw_queue *queue, const void *args, const struct seen_call *seen)
{
    return other_outputs_fit(seen, args) ? seen->submit(queue, args)
                                         : submit_unlike(queue, args, seen);
}

/* It calls nothing but what it ends with, so it saves no registers. */
enum hw_status hw_submit(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    const struct seen_call *seen;
    /* A struct of another size may lie at any address. */
    if (unlikely(!queue) || unlikely(size < SEEN_BYTES) || unlikely(!args) ||
        unlikely((uintptr_t)args % _Alignof(union any_op)) ||
        unlikely(forked(queue->quick_in)) || unlikely(lost(queue->device)) ||
        unlikely(!(seen = seen_in(queue, 0, op, args, size))))
        return submit_checked(queue, op, args, size);
    if (unlikely(!is_like(queue, op, seen, args)))
        return submit_unlike(queue, args, seen);
    if (unlikely(seen->pair_count))
        return submit_outputs(queue, args, seen);
    return seen->submit(queue, args);
}
