/* SPDX-License-Identifier: MIT */
/* ops.c - the path of every call: a check, then one indirect call across the boundary. No lock,
 * no allocation, no string.
 *
 * seen.h recognises calls like earlier ones; all others are checked in full by check.c and, where
 * the plugin cannot take them as they are, go to route.c. */
#include "run/ops.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/likely.h"
#include "run/args.h"
#include "run/check.h"
#include "run/copy.h"
#include "run/demotion.h"
#include "run/fallback.h"
#include "run/queue.h"
#include "run/route.h"
#include "run/seen.h"

#ifdef __x86_64__
#include "run/seen_avx2.h"

#include <cpuid.h>
#endif
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
    if (check_demotion(queue->device, op, args))
        check.traits |= TRAIT_DEMOTED;
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
    { sizeof(struct hw_##name), OPERANDS_##name, 0 HW_OPERANDS_##NAME(T), operands_##name, \
      call_##name },
    HW_OPS(X)
#undef X
};
#undef T

/* ---- entries ---- */

/* Submits a call that the plugin can take as it is, and counts it or handles the error. */
static __attribute__((noinline)) enum hw_status submit_taken(struct hw_queue *queue,
                                                             uint32_t op, const void *args)
{
    queue->args = args;
    const int32_t answer = op_rows[op].call(queue, args);
    if (unlikely(answer))
        return submit_failed(queue, op, queue->args, answer);
    count(&queue->calls[op].calls, 1);
    return HW_OK;
}

/* Calls that are not like an earlier one, and invalid arguments. */
static __attribute__((noinline)) enum hw_status
submit_checked(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    union any_op copy;
    enum hw_status status = queue_ready(queue, "hw_submit");
    if (status)
        return status;
    queue_refresh(queue);
    args = args_of_size(op, args, size, &copy, &status);
    if (!args)
        return status;
    return check_whole(queue, op, args, &status) ? submit_taken(queue, op, args) : status;
}

static inline bool usable(const struct hw_queue *queue)
{
    return !forked(atomic_load_explicit(&queue->generation, memory_order_relaxed)) &&
           !atomic_load_explicit(&queue->device->lost, memory_order_relaxed);
}

/* Whether a look at the struct of any op is safe. One of another size may lie at any address. */
HOT bool can_look(const void *args, size_t size)
{
    return likely(args != NULL) && likely(size >= SEEN_BYTES) &&
           likely((uintptr_t)args % _Alignof(union any_op) == 0);
}

/* Calls that the first look does not recognise. If they are like the second call of their slot, it
 * becomes the first. */
static __attribute__((noinline)) enum hw_status
submit_unlike(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    const bool looks = can_look(args, size) && usable(queue);
    for (uint32_t way = 0; way < SEEN_WAYS && looks; way++) {
        struct seen_call *seen = seen_in(queue, way, op, args, size);
        if (!seen || !is_like(queue, seen, args))
            continue;
        if (way)
            seen_swap(&queue->seen, seen->slot);
        return submit_taken(queue, seen->op, args);
    }
    return submit_checked(queue, op, args, size);
}

/* Calls that may be like the remembered one, whose addresses replace those of that one. */
static __attribute__((noinline)) enum hw_status
submit_followed(struct hw_queue *queue, struct seen_call *seen, const void *args)
{
    /* Read first, because a device that is lost has changed. */
    const uint64_t stamp = stamp_of(queue, memory_order_acquire);
    seen->rest = 0;
    if (!usable(queue) || !is_like(queue, seen, args))
        return submit_unlike(queue, seen->op, args, seen->size);
    follow(seen, args, stamp);
    return submit_taken(queue, seen->op, args);
}

static __attribute__((noinline)) enum hw_status
submit_others(struct hw_queue *queue, struct seen_call *seen, const void *args)
{
    return others_fit(seen, args) ? submit_taken(queue, seen->op, args)
                                  : submit_unlike(queue, seen->op, args, seen->size);
}

/* Calls of the form of the remembered one, on other addresses. */
static __attribute__((noinline)) enum hw_status
submit_moved(struct hw_queue *queue, struct seen_call *seen, const void *args)
{
    if (unlikely(is_followed(seen)))
        return submit_followed(queue, seen, args);
    if (unlikely(!usable(queue)) || unlikely(!places_fit(queue, seen, args)))
        return submit_unlike(queue, seen->op, args, seen->size);
    return unlikely(seen->others) ? submit_others(queue, seen, args)
                                  : submit_taken(queue, seen->op, args);
}

/* The remembered call that is looked at first, or NULL. */
HOT struct seen_call *first_seen(const struct hw_queue *queue, uint32_t op,
                                 const void *args, size_t size)
{
    return can_look(args, size) ? seen_in(queue, 0, op, args, size) : NULL;
}

/* Ends a look: submits the remembered call, or one of its form, or another one. This function and
 * submit_moved() call nothing but what they end with, so they save no registers. */
#define SUBMIT_COMPARED(same_call, same_form)                                              \
    if (likely(same_call(&differ)) && likely(stamp == seen->stamp))                        \
        return submit_taken(queue, seen->op, args);                                        \
    return likely(same_form(&differ)) ? submit_moved(queue, seen, args)                    \
                                      : submit_unlike(queue, op, args, size);

enum hw_status submit_portable(struct hw_queue *queue, uint32_t op, const void *args,
                               size_t size)
{
    struct seen_call *seen = first_seen(queue, op, args, size);
    if (unlikely(!seen))
        return submit_unlike(queue, op, args, size);
    const uint64_t stamp = stamp_of(queue, memory_order_relaxed);
    const struct difference differ = compare(seen, args, op_rows[op].operand_count);
    SUBMIT_COMPARED(same_call, same_form)
}

#ifdef __x86_64__
/* For ops of so many operands, with at most so many bytes of other fields. */
#define OPS_AVX2(CLASS, name)                                                              \
    CLASS(name, 2, 32)                                                                     \
    CLASS(name, 3, 32) CLASS(name, 4, 64) CLASS(name, 5, 32) CLASS(name, 8, 32)
#define CLASS(name, count, fields)                                                         \
    || (OPERANDS_##name == (count) &&                                                      \
        sizeof(struct hw_##name) <= (count) * sizeof(struct hw_tensor) + (fields))
#define X(NAME, name) _Static_assert(0 OPS_AVX2(CLASS, name), #name ": OPS_AVX2");
HW_OPS(X)
#undef X
#undef CLASS
#define CLASS(none, count, fields)                                                         \
    static AVX2 enum hw_status submit_avx2_##count(struct hw_queue *queue, uint32_t op,    \
                                                   const void *args, size_t size)          \
    {                                                                                      \
        struct seen_call *seen = first_seen(queue, op, args, size);                        \
        if (unlikely(!seen))                                                               \
            return submit_unlike(queue, op, args, size);                                   \
        const uint64_t stamp = stamp_of(queue, memory_order_relaxed);                      \
        const struct difference_avx2 differ = compare_avx2(seen, args, count, fields);     \
        SUBMIT_COMPARED(same_call_avx2, same_form_avx2)                                    \
    }
OPS_AVX2(CLASS, 0)
#undef CLASS

/* __builtin_cpu_supports() would bring 3 KiB of tables. */
static bool detect_avx2(void)
{
    uint32_t eax, ebx, ecx, edx, state, high;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
        return false;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    return (state & 6) == 6 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
           ebx & bit_AVX2;
}

/* Detected once, because a hypervisor may take microseconds to answer. */
static bool has_avx2(void)
{
    static _Atomic int32_t known; /* 0: no; 1: without, 2: with AVX2 */
    int32_t now = atomic_load_explicit(&known, memory_order_relaxed);
    if (!now)
        atomic_store_explicit(&known, now = detect_avx2() ? 2 : 1, memory_order_relaxed);
    return now == 2;
}

static submit_any *const submit_avx2[MAX_OPERANDS + 1] = {
#define CLASS(none, count, fields) [count] = submit_avx2_##count,
    OPS_AVX2(CLASS, 0)
#undef CLASS
};
#endif

submit_any *submit_for(uint32_t op, bool looks)
{
    if (!looks)
        return submit_checked;
#ifdef __x86_64__
    if (has_avx2() && submit_avx2[op_rows[op].operand_count])
        return submit_avx2[op_rows[op].operand_count];
#else
    (void)op;
#endif
    return submit_portable;
}

enum hw_status hw_submit(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    if (unlikely(!queue))
        return fail_null("hw_submit", "queue");
    return likely(op < HW_OP_COUNT) ? queue->submit[op](queue, op, args, size)
                                    : submit_checked(queue, op, args, size);
}
