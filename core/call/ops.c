/* SPDX-License-Identifier: MIT */
/* ops.c - the path of every call: a check, then one indirect call across the boundary. No lock,
 * no allocation, no string.
 *
 * seen.h recognises a call like an earlier one. check.c checks all other calls in full. A call that
 * the plugin cannot take as it is goes to route.c. */
#include "call/ops.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/likely.h"
#include "call/args.h"
#include "call/check.h"
#include "call/queue.h"
#include "call/seen.h"
#include "route/copy.h"
#include "route/fallback.h"
#include "route/op_state.h"
#include "route/route.h"

/* ---- the call ---- */

/* Counts a call that the plugin took, or handles the error. */
static inline enum hw_status call_finish(struct hw_queue *queue, uint32_t op,
                                         const void *args, int32_t answer)
{
    if (unlikely(answer))
        return submit_failed(queue, op, args, answer);
    count(&queue->calls[op].calls, 1);
    return HW_OK;
}

/* Submits a call that is like the remembered one. */
HOT enum hw_status seen_take(struct hw_queue *queue, const struct seen_call *seen,
                             const void *args)
{
    const uint32_t op = seen->op;
    queue->args = args;
    const int32_t answer = likely(seen->plan != NULL)
                               ? queue->plan_launch(queue->impl, seen->plan, args)
                               : op_rows[op].call(queue, args);
    return call_finish(queue, op, queue->args, answer);
}

/* ---- the full check ---- */

/* Submits a call that the plugin can take as it is, and remembers it if that is possible. */
static enum hw_status submit_first(struct hw_queue *queue, const void *args,
                                   const struct check *check)
{
    const struct seen_call *seen = NULL;
    if (plugin_has(queue->device->plugin, check->op)) /* otherwise a transfer may copy */
        seen = seen_add(queue, args, check);
    return seen ? seen_take(queue, seen, args)
                : call_finish(queue, check->op, args, op_rows[check->op].call(queue, args));
}

enum hw_status submit_whole(struct hw_queue *queue, uint32_t op, const void *args)
{
    struct check check = { .device = queue->device, .op = op, .traits = TRAIT_ALWAYS };
    const enum hw_status status = check_call(args, &check);
    if (status)
        return status;
    if (!(check.traits & TRAIT_EMPTY) && admit(queue->device, op, args))
        check.traits |= TRAIT_REJECTED;
    return check.traits & queue->cold_traits[op] ? route(queue, op, args, check.traits)
                                                 : submit_first(queue, args, &check);
}

enum hw_status submit_begin(struct hw_queue *queue, uint32_t op, const void **args,
                            size_t size, union any_op *copy)
{
    const enum hw_status status = queue_ready(queue, "hw_submit");
    if (status)
        return status;
    queue_refresh(queue);
    return args_resize(op, args, size, copy);
}

static __attribute__((noinline)) enum hw_status
submit_checked(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    union any_op copy;
    const enum hw_status status = submit_begin(queue, op, &args, size, &copy);
    return status ? status : submit_whole(queue, op, args);
}

/* A copy may need no op, so it has a function of its own. */
static submit_any *checked_for(uint32_t op)
{
    return op == HW_OP_COPY ? submit_copy : submit_checked;
}

/* ---- the quick look ---- */

static inline bool queue_usable(const struct hw_queue *queue)
{
    return !forked(atomic_load_explicit(&queue->generation, memory_order_relaxed)) &&
           !atomic_load_explicit(&queue->device->lost, memory_order_relaxed);
}

/* Whether the struct may be read as the library's own. A struct of another size may have any
 * alignment. */
HOT bool can_look(const void *args, size_t size, size_t own)
{
    return likely(args != NULL) && likely(size == own) &&
           likely((uintptr_t)args % _Alignof(union any_op) == 0);
}

/* Handles calls that the first look does not recognise. */
static __attribute__((noinline)) enum hw_status
submit_unlike(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    const struct op_row *row = &op_rows[op];
    if (can_look(args, size, row->size) && queue_usable(queue))
        for (struct seen_call *seen = seen_first(queue, op, args); seen; seen = seen->next)
            if (seen->op == op && is_like(queue, seen, args, row)) {
                seen_put_first(queue, seen);
                return seen_take(queue, seen, args);
            }
    return checked_for(op)(queue, op, args, size);
}

/* Handles a call that may have the form of the remembered one and other addresses. */
static __attribute__((noinline)) enum hw_status
submit_moved(struct hw_queue *queue, struct seen_call *seen, const void *args)
{
    const struct op_row *row = &op_rows[seen->op];
    /* Read before queue_usable(): a device that is lost afterwards has another stamp. */
    const uint64_t stamp = stamp_of(queue, memory_order_acquire);
    if (unlikely(!queue_usable(queue)) || unlikely(!is_like(queue, seen, args, row)))
        return submit_unlike(queue, seen->op, args, row->size);
    seen_update(seen, args, stamp);
    return seen_take(queue, seen, args);
}

static enum hw_status submit_seen(struct hw_queue *queue, uint32_t op, const void *args,
                                  size_t size)
{
    const struct op_row *row = &op_rows[op];
    struct seen_call *seen = can_look(args, size, row->size) ? seen_first(queue, op, args)
                                                             : NULL;
    if (unlikely(!seen) || unlikely(seen->op != op))
        return submit_unlike(queue, op, args, size);
    return likely(stamp_of(queue, memory_order_relaxed) == seen->stamp) &&
                   likely(same_call(seen, args, row))
               ? seen_take(queue, seen, args)
               : submit_moved(queue, seen, args);
}

submit_any *submit_for(uint32_t op, bool looks)
{
    return looks ? submit_seen : checked_for(op);
}

enum hw_status hw_submit(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    if (unlikely(!queue))
        return fail_null("hw_submit", "queue");
    return likely(op < HW_OP_COUNT) ? queue->submit[op](queue, op, args, size)
                                    : submit_checked(queue, op, args, size);
}
