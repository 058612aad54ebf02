/* SPDX-License-Identifier: MIT */
/* ops.c - the path of every call: a check, then one indirect call across the boundary. No lock,
 * no allocation, no string.
 *
 * seen.h recognises a call like an earlier one. check.c checks all other calls in full. A call that
 * the plugin cannot take as it is goes to route.c. */
#include "run/ops.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/likely.h"
#include "run/args.h"
#include "run/check.h"
#include "run/copy.h"
#include "run/fallback.h"
#include "run/queue.h"
#include "run/route.h"
#include "run/seen.h"
#include "run/untested.h"

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
    if (!(check.traits & TRAIT_EMPTY) && admit(queue->device, op, args))
        check.traits |= TRAIT_DEMOTED;
    if (!(check.traits & queue->cold_traits[op])) {
        if (plugin_has(queue->device->plugin, op)) /* otherwise a transfer may copy */
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

/* Submits a call that the plugin can take as it is, and counts it or handles the error. */
#define X(NAME, name)                                                                      \
    static __attribute__((noinline)) enum hw_status take_##name(struct hw_queue *queue,    \
                                                                const void *args)          \
    {                                                                                      \
        queue->args = args;                                                                \
        const int32_t answer = queue->ops.name(queue->device_impl, queue->impl, args);     \
        if (unlikely(answer))                                                              \
            return submit_failed(queue, HW_OP_##NAME, queue->args, answer);                \
        count(&queue->calls[HW_OP_##NAME].calls, 1);                                       \
        return HW_OK;                                                                      \
    }
HW_OPS(X)
#undef X

/* Masks of operands, by bit number: outputs, optional operands, operands that may be packed. */
#define BIT(is, op, field)   | (uint32_t)(is) << OPERAND_##op##_##field
#define OUT(op, field, role) BIT(HW_ROLE_##role >= HW_ROLE_OUT, op, field)
#define OPT(op, field, role)                                                               \
    BIT(HW_ROLE_##role == HW_ROLE_OPT_IN || HW_ROLE_##role == HW_ROLE_OPT_OUT, op, field)
#define PACK(op, field, role) BIT(HW_ROLE_##role == HW_ROLE_WEIGHT, op, field)
#define X(NAME, name)                                                                      \
    enum {                                                                                 \
        WRITTEN_##name = 0 HW_OPERANDS_##NAME(OUT),                                        \
        OPTIONAL_##name = 0 HW_OPERANDS_##NAME(OPT),                                       \
        WEIGHTS_##name = 0 HW_OPERANDS_##NAME(PACK)                                        \
    };
HW_OPS(X)
#undef X
#undef PACK
#undef OPT
#undef OUT
#undef BIT

const struct op_row op_rows[HW_OP_COUNT] = {
#define X(NAME, name)                                                                      \
    { .size = sizeof(struct hw_##name),                                                    \
      .operand_count = OPERANDS_##name,                                                    \
      .written = WRITTEN_##name,                                                           \
      .optional = OPTIONAL_##name,                                                         \
      .weights = WEIGHTS_##name,                                                           \
      .operands = operands_##name,                                                         \
      .call = call_##name,                                                                 \
      .take = take_##name },
    HW_OPS(X)
#undef X
};

/* ---- entries ---- */

/* Handles calls that are not like an earlier one, and invalid arguments. */
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
    return check_whole(queue, op, args, &status) ? op_rows[op].take(queue, args) : status;
}

static inline bool usable(const struct hw_queue *queue)
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

/* Handles calls that the first look does not recognise. If the call is like the second call of its
 * slot, that one becomes the first. */
static __attribute__((noinline)) enum hw_status
submit_unlike(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    const bool looks = can_look(args, size, op_rows[op].size) && usable(queue);
    for (uint32_t way = 0; way < SEEN_WAYS && looks; way++) {
        struct seen_call *seen = seen_in(queue, way, op, args);
        if (!seen || !is_like(queue, seen, args))
            continue;
        if (way)
            seen_swap(&queue->seen, seen->slot);
        return seen->take(queue, args);
    }
    return submit_checked(queue, op, args, size);
}

/* Handles calls after a change of the device or a fork. */
static __attribute__((noinline)) enum hw_status submit_after(struct hw_queue *queue,
                                                             uint32_t op, const void *args)
{
    /* Read before usable(): a device that is lost afterwards has another stamp. */
    const uint64_t stamp = stamp_of(queue, memory_order_acquire);
    if (usable(queue))
        queue->usable = stamp;
    return submit_unlike(queue, op, args, op_rows[op].size);
}

/* Handles a call that may be like the remembered one: if it is, its addresses are remembered. */
static __attribute__((noinline)) enum hw_status
submit_followed(struct hw_queue *queue, struct seen_call *seen, const void *args)
{
    /* Read before usable(): a device that is lost afterwards has another stamp. */
    const uint64_t stamp = stamp_of(queue, memory_order_acquire);
    seen->rest = -1;
    if (!usable(queue) || !is_like(queue, seen, args))
        return submit_unlike(queue, seen->op, args, op_rows[seen->op].size);
    follow(seen, args, stamp);
    return seen->take(queue, args);
}

/* Handles calls that fit and have a packed operand. */
static __attribute__((noinline)) enum hw_status
submit_packed(struct hw_queue *queue, struct seen_call *seen, const void *args)
{
    return packed_fit(seen, args)
               ? seen->take(queue, args)
               : submit_unlike(queue, seen->op, args, op_rows[seen->op].size);
}

/* The first call of the slot, or NULL. */
HOT struct seen_call *first_seen(const struct hw_queue *queue, uint32_t op,
                                 const void *args, size_t size, size_t own)
{
    return can_look(args, size, own) ? seen_in(queue, 0, op, args) : NULL;
}

/* Handles a call that has the form of the remembered one and other addresses. `shape` is the part
 * of the op's row that places_fit() needs. All calls are tail calls, so it saves no registers. */
HOT enum hw_status submit_moved(struct hw_queue *queue, const void *args,
                                struct seen_call *seen, uint64_t stamp,
                                const struct op_row *shape)
{
    if (unlikely(is_followed(seen)))
        return submit_followed(queue, seen, args);
    if (unlikely(stamp != queue->usable))
        return submit_after(queue, seen->op, args);
    if (unlikely(!places_fit(queue, seen, args, shape)))
        return submit_unlike(queue, seen->op, args, op_rows[seen->op].size);
    return unlikely(seen->packed) ? submit_packed(queue, seen, args)
                                  : seen->take(queue, args);
}

/* SHAPE(name, count, outputs, absent): places_fit() is compiled for each of these. `count` is the
 * number of operands. `outputs` and `absent` are masks of operands that are written and that may be
 * absent. */
#define SHAPES(SHAPE, name)                                                                \
    SHAPE(name, 2, 2, 0)                                                                   \
    SHAPE(name, 3, 4, 0)                                                                   \
    SHAPE(name, 3, 4, 2)                                                                   \
    SHAPE(name, 3, 6, 2)                                                                   \
    SHAPE(name, 4, 8, 4)                                                                   \
    SHAPE(name, 4, 8, 6)                                                                   \
    SHAPE(name, 4, 9, 4)                                                                   \
    SHAPE(name, 5, 16, 8)                                                                  \
    SHAPE(name, 5, 16, 14)                                                                 \
    SHAPE(name, 8, 128, 120)
#define IS_SHAPE(name, count, outputs, absent)                                             \
    (OPERANDS_##name == (count) && WRITTEN_##name == (outputs) &&                          \
     OPTIONAL_##name == (absent))

#define SHAPE(name, count, outputs, absent) || IS_SHAPE(name, count, outputs, absent)

#define X(NAME, name) _Static_assert(0 SHAPES(SHAPE, name), #name ": SHAPES");
HW_OPS(X)
#undef X
#undef SHAPE

#define SHAPE(none, count, outputs, absent)                                                \
    static __attribute__((noinline)) enum hw_status moved_##count##_##outputs##_##absent(  \
        struct hw_queue *queue, const void *args, struct seen_call *seen, uint64_t stamp)  \
    {                                                                                      \
        static const struct op_row shape = { .operand_count = (count),                     \
                                             .written = (outputs),                         \
                                             .optional = (absent) };                       \
        return submit_moved(queue, args, seen, stamp, &shape);                             \
    }
SHAPES(SHAPE, 0)
#undef SHAPE

typedef enum hw_status moved_fn(struct hw_queue *queue, const void *args,
                                struct seen_call *seen, uint64_t stamp);
static moved_fn *const moved[HW_OP_COUNT] = {
#define SHAPE(name, count, outputs, absent)                                                \
    IS_SHAPE(name, count, outputs, absent) ? moved_##count##_##outputs##_##absent:
#define X(NAME, name) SHAPES(SHAPE, name) NULL,
    HW_OPS(X)
#undef X
#undef SHAPE
};

enum hw_status submit_portable(struct hw_queue *queue, uint32_t op, const void *args,
                               size_t size)
{
    const struct op_row *row = &op_rows[op];
    struct seen_call *seen = first_seen(queue, op, args, size, row->size);
    if (unlikely(!seen))
        return submit_unlike(queue, op, args, size);
    const uint64_t stamp = stamp_of(queue, memory_order_relaxed);
    const struct difference differ = compare(seen, args, row);
    if (unlikely(!same_form(&differ)))
        return submit_unlike(queue, op, args, size);
    if (likely(stamp == seen->stamp) && likely(same_call(&differ)))
        return op_rows[op].take(queue, args);
    return moved[op](queue, args, seen, stamp);
}

#ifdef __x86_64__
#define X(NAME, name)                                                                      \
    static AVX2 enum hw_status submit_##name(struct hw_queue *queue, uint32_t op,          \
                                             const void *args, size_t size)                \
    {                                                                                      \
        const struct op_row *row = &op_rows[HW_OP_##NAME];                                 \
        struct seen_call *seen = first_seen(queue, HW_OP_##NAME, args, size, row->size);   \
        if (unlikely(!seen) || unlikely(!same_shapes_avx2(seen, args, row)))               \
            return submit_unlike(queue, op, args, size);                                   \
        const uint64_t stamp = stamp_of(queue, memory_order_relaxed);                      \
        if (likely(stamp == seen->stamp) && likely(same_places_avx2(seen, args, row)))     \
            return take_##name(queue, args);                                               \
        return moved[HW_OP_##NAME](queue, args, seen, stamp);                              \
    }
HW_OPS(X)
#undef X

/* Written by hand, because __builtin_cpu_supports() would add 3 KiB of tables. */
static bool detect_avx2(void)
{
    uint32_t eax, ebx, ecx, edx, state, high;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
        return false;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    return (state & 6) == 6 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
           ebx & bit_AVX2;
}

/* Detects AVX2 only once, because CPUID may take microseconds under a hypervisor. */
static bool has_avx2(void)
{
    static _Atomic int32_t known; /* 0: not known; 1: no AVX2; 2: AVX2 */
    int32_t now = atomic_load_explicit(&known, memory_order_relaxed);
    if (!now)
        atomic_store_explicit(&known, now = detect_avx2() ? 2 : 1, memory_order_relaxed);
    return now == 2;
}

static submit_any *const submit_avx2[HW_OP_COUNT] = {
#define X(NAME, name) submit_##name,
    HW_OPS(X)
#undef X
};
#endif

submit_any *submit_for(uint32_t op, bool looks)
{
    if (!looks)
        return submit_checked;
#ifdef __x86_64__
    if (has_avx2())
        return submit_avx2[op];
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
