/* SPDX-License-Identifier: MIT */
/* Ops are computed here, within the call: a plan holds the code and the addresses, and the team
 * computes its groups. */
#include "common/operands.h"
#include "cpu.h"

#include <stdlib.h>

/* ---- the portable rows ---- */

/* The tiers for which the build compiles each form of the portable kernels. */
#if defined(__x86_64__)
#define TIERS(T, form) T(form, base) T(form, v3) T(form, v4)
#else
#define TIERS(T, form) T(form, base)
#endif

enum tier {
#define T(form, tier) TIER_##tier,
    TIERS(T, )
#undef T
        TIER_COUNT
};

#define T(form, tier) extern const struct portable_kernels portable_##form##_##tier;
TIERS(T, mixed)
#define VARIANT(act, wgt) TIERS(T, act##_##wgt)
#include "../../kernels/kernels.def"
#undef T

static const struct portable_kernels *const portable[FORM_COUNT][TIER_COUNT] = {
#define T(form, tier) &portable_##form##_##tier,
    { TIERS(T, mixed) },
#define VARIANT(act, wgt) { TIERS(T, act##_##wgt) },
#include "../../kernels/kernels.def"
#undef T
};

/* The address that kernels count an operand's offset from. */
static void *base_of(const struct hw_tensor *t)
{
    return t->buffer ? (char *)t->buffer->host - t->buffer->offset : (char *)t->data;
}

typedef const char *lower_fn(uint32_t op, const void *args, struct lowered *out);

static const char *plan_with(lower_fn *lower_op, struct plan *plan,
                             const struct kernel_row *row, const void *args)
{
    struct lowered *l = &plan->lowered;
    /* Resets fields that an earlier row may have set before it refused. */
    plan->prepare = NULL;
    plan->shared_bytes = plan->own_bytes = 0;
    const char *why = lower_op(row->op, args, l);
    if (why)
        return why;
    plan->row = row;
    plan->op = args;
    plan->groups = l->groups;
    plan->work = l->work;
    for (uint32_t i = 0; i < l->pointers;
         i++) /* an absent operand is not read: any address will do */
        plan->pointer[i] = base_of(l->operand[l->operand[i] ? i : 0]);
    return NULL;
}

const char *plan_lowered(struct plan *plan, const struct kernel_row *row, const void *args)
{
    return plan_with(lower, plan, row, args);
}

const char *plan_lowered_packed(struct plan *plan, const struct kernel_row *row,
                                const void *args)
{
    return plan_with(lower_packed, plan, row, args);
}

static void run_portable(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread)
{
    (void)thread;
    plan->portable(plan->pointer, &plan->lowered.args, first, end);
}

static const char *plan_tier(enum tier tier, struct plan *plan,
                             const struct kernel_row *row, const void *args)
{
    const char *why = plan_lowered(plan, row, args);
    if (why)
        return why;
    plan->run = run_portable;
    plan->portable = portable[plan->lowered.form][tier]->kernel[plan->lowered.kernel];
    return NULL;
}

/* Defines the plan functions of kernels.def, such as plan_portable_v3(). */
#define T(form, tier)                                                                      \
    kernel_plan_fn plan_portable_##tier;                                                   \
    const char *plan_portable_##tier(struct plan *plan, const struct kernel_row *row,      \
                                     const void *args)                                     \
    {                                                                                      \
        return plan_tier(TIER_##tier, plan, row, args);                                    \
    }
TIERS(T, )
#undef T

/* ---- the table ---- */

#define ROW ROW_DECLARE
#include "kernels.def"
#define ROW ROW_ENTRY
static const struct kernel_row rows[] = {
#include "kernels.def"
};

static void describe_needs(uint64_t needs, char *text, size_t size)
{
    text[0] = '\0';
    size_t n = 0;
#define NEED(bit, name)                                                                    \
    if (needs & HAS(bit) && n < size)                                                      \
        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? " " : "", name);
#define TIER(NAME, name, features)                     NEED(TIER_##NAME, name)
#define X86(NAME, leaf, subleaf, register, bit, state) NEED(NAME, #NAME)
#define ARM(NAME, word, bit)                           NEED(ARM_##NAME, #NAME)
#include "cpu.def"
    NEED(ALLOW_FP16, "HW_PRECISION=fp16")
    NEED(ALLOW_INT8, "HW_PRECISION=int8")
#undef NEED
}

const struct kernel_table launch_kernels = { rows, sizeof rows / sizeof rows[0],
                                             describe_needs };

/* ---- plans ---- */

/* Returns NULL, or the reason why no row computes this. */
static const char *plan_make(const struct kernel_choice *choice, uint32_t op,
                             const void *args, struct plan *plan)
{
    const char *why = kernel_plan(choice, op, args, plan);
    plan->grain = 1;
    if (why || plan->groups <= 1)
        return why;
    const double grain = WORTH_A_THREAD / plan->work * (double)plan->groups;
    plan->grain = grain < 1.0                    ? 1
                  : grain < (double)plan->groups ? (int64_t)grain
                                                 : plan->groups;
    return NULL;
}

static void run_groups(void *user, int64_t first, int64_t end, uint32_t thread)
{
    const struct plan *plan = user;
    plan->run(plan, first, end, thread);
}

static void prepare_groups(void *user, int64_t first, int64_t end, uint32_t thread)
{
    const struct plan *plan = user;
    plan->prepare(plan, first, end, thread);
}

/* ---- ops ---- */

/* Logs a row when a queue first uses it. */
static void log_row(struct queue *queue, const struct plan *plan)
{
    char text[400], line[512];
    const struct hw_host *host = queue->device->host;
    bool *logged = &queue->logged[plan->row - rows];
    if (*logged)
        return;
    *logged = true;
    kernel_describe(plan->row->op, plan->op, text, sizeof text);
    snprintf(line, sizeof line, "row %s for %s", plan->row->name, text);
    host->log(host->instance, HW_LOG_DEBUG, line);
}

const char *launch_plan(struct queue *queue, uint32_t op, const void *args,
                        struct plan *plan)
{
    const char *why = plan_make(&queue->choice, op, args, plan);
    if (!why)
        log_row(queue, plan);
    return why;
}

void launch_drop_workspace(struct queue *queue)
{
    const struct hw_host *host = queue->device->host;
    if (queue->workspace)
        hw_count_memory(host, queue->device, -(int64_t)queue->workspace_bytes);
    free(queue->workspace);
    queue->workspace = NULL;
    queue->workspace_bytes = 0;
}

/* Rounds the size up, so that ops whose need grows slowly, such as attention, rarely reallocate. */
static int32_t grow_workspace(struct queue *queue, uint64_t bytes)
{
    const struct hw_host *host = queue->device->host;
    const uint64_t step = bytes / 4 + 65536,
                   whole = memory_whole((bytes + step) / 4096 * 4096);
    launch_drop_workspace(queue);
    const int32_t status = hw_count_memory(host, queue->device, (int64_t)whole);
    if (status)
        return status;
    if (!(queue->workspace = memory_get(whole, false))) {
        hw_count_memory(host, queue->device, -(int64_t)whole);
        return hw_fail(host, HW_NO_MEMORY, "out of memory for a workspace of %llu bytes",
                       (unsigned long long)whole);
    }
    queue->workspace_bytes = whole;
    return HW_OK;
}

int32_t launch_reserve(struct queue *queue, uint64_t bytes)
{
    return bytes > queue->workspace_bytes ? grow_workspace(queue, bytes) : HW_OK;
}

uint64_t launch_workspace(const struct plan *plan, uint32_t threads)
{
    return in_lines(plan->shared_bytes) + in_lines(plan->own_bytes) * threads;
}

/* One thread computes an op with few groups, see team_run(). */
static uint64_t workspace_of(struct team *team, const struct plan *plan)
{
    const bool alone = plan->groups <= plan->grain &&
                       (!plan->prepare || plan->prepare_groups <= plan->prepare_grain);
    return launch_workspace(plan, alone ? 1 : team_limit(team));
}

void launch_groups(struct team *team, struct plan *plan)
{
    const struct team_work prepare = { .fn = prepare_groups,
                                       .user = plan,
                                       .count = plan->prepare_groups,
                                       .grain = plan->prepare_grain };
    const struct team_work run = { .fn = run_groups,
                                   .user = plan,
                                   .count = plan->groups,
                                   .grain = plan->grain,
                                   .units = plan_units(plan) };
    if (plan->prepare)
        team_run(team, &prepare);
    team_run(team, &run);
}

/* Whether one thread computes all of it, see team_run(). */
static bool is_small(const struct plan *plan)
{
    return plan->groups < 2 * plan->grain && !plan->prepare;
}

int32_t launch_run(struct queue *queue, struct plan *plan)
{
    struct team *team = queue->device->team;
    if (plan->groups <= 0)
        return HW_OK;
    if (plan->shared_bytes | plan->own_bytes) {
        const int32_t status = launch_reserve(queue, workspace_of(team, plan));
        if (status)
            return status;
        plan->workspace = queue->workspace;
    }
    if (is_small(plan))
        plan->run(plan, 0, plan->groups, 0);
    else
        launch_groups(team, plan);
    return HW_OK;
}

static int32_t submit(struct queue *queue, uint32_t op, const void *args)
{
    struct plan plan;
    const char *why = launch_plan(queue, op, args, &plan);
    return why ? hw_fail(queue->device->host, HW_UNSUPPORTED, "%s", why)
               : launch_run(queue, &plan);
}

/* ---- plans that the host keeps ---- */

/* A plan for calls that differ in addresses. */
struct kept_plan {
    struct plan plan;
    uint16_t where[PORTABLE_POINTERS]; /* the kernel's operands in the op's struct */
    union op_args {
#define X(NAME, name) struct hw_##name name;
        HW_OPS(X)
#undef X
    } args; /* without addresses */
};

static void copy_without_addresses(union op_args *copy, uint32_t op, const void *args)
{
    struct hw_tensor *t = (void *)copy;
    memcpy(copy, args, op_layouts[op].bytes);
    for (uint32_t i = 0; i < op_layouts[op].count; i++) {
        t[i].buffer = NULL;
        t[i].data = NULL;
        t[i].offset = 0;
    }
}

/* An absent operand is not read, so the place of another one will do. */
static void note_operands(struct kept_plan *kept)
{
    const struct lowered *l = &kept->plan.lowered;
    for (uint32_t i = 0; i < l->pointers; i++) {
        const struct hw_tensor *t = l->operand[l->operand[i] ? i : 0];
        kept->where[i] = (uint16_t)((const char *)t - (const char *)&kept->args);
    }
}

int32_t plan_build(void *queue, uint32_t op, const void *args, void **plan)
{
    struct queue *q = queue;
    struct kept_plan *made = malloc(sizeof *made);
    if (!made)
        return hw_fail(q->device->host, HW_NO_MEMORY, "out of memory for a plan");
    copy_without_addresses(&made->args, op, args);
    const char *why = launch_plan(q, op, &made->args, &made->plan);
    if (why) {
        free(made);
        return hw_fail(q->device->host, HW_UNSUPPORTED, "%s", why);
    }
    note_operands(made);
    *plan = made;
    return HW_OK;
}

void plan_destroy(void *plan)
{
    free(plan);
}

/* The address of the first element. An empty tensor's NULL is not read. */
static void *first_element(const struct hw_tensor *t)
{
    return (void *)((uintptr_t)(t->buffer ? t->buffer->host : t->data) + t->offset);
}

int32_t plan_launch(void *queue, void *plan, const void *args)
{
    struct kept_plan *kept = plan;
    for (uint32_t i = 0; i < kept->plan.lowered.pointers; i++)
        kept->plan.pointer[i] =
            first_element((const void *)((const char *)args + kept->where[i]));
    return launch_run(queue, &kept->plan);
}

/* ---- queries ---- */

int32_t launch_supports(void *device, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch)
{
    const struct device *dev = device;
    struct plan plan;
    const char *why_not = plan_make(&dev->choice, op, args, &plan);
    if (scratch)
        *scratch = why_not ? 0 : workspace_of(dev->team, &plan);
    return kernel_supports(why_not, why, why_size);
}

int32_t launch_row(void *device, uint32_t op, uint32_t index, struct hw_kernel_info *info)
{
    return kernel_list(&((struct device *)device)->choice, op, index, info);
}

KERNEL_OPS
