/* SPDX-License-Identifier: MIT */
/* Ops are computed here, within the call: a plan says which code runs on which addresses, and
 * the team computes its groups. */
#include "cpu.h"

/* The work, in multiply-adds, from which a second thread pays off: about 5 us of one. */
#define WORTH_A_THREAD 40000.0

/* ---- the portable rows ---- */

/* The tiers that the build compiles each form of the portable kernels for. */
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

const char *plan_lowered(struct plan *plan, const struct kernel_row *row, const void *args)
{
    struct lowered *l = &plan->lowered;
    const char *why = lower(row->op, args, l);
    if (why)
        return why;
    plan->row = row;
    plan->op = args;
    plan->groups = l->groups;
    plan->work = l->work;
    for (uint32_t i = 0; i < l->pointers;
         i++) /* one that is absent is not read: any address will do */
        plan->pointer[i] = base_of(l->operand[l->operand[i] ? i : 0]);
    return NULL;
}

static void run_portable(const struct plan *plan, int64_t first, int64_t end)
{
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

/* plan_portable_v3() and the others, which kernels.def names. */
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

static void run_groups(void *user, int64_t first, int64_t end)
{
    const struct plan *plan = user;
    plan->run(plan, first, end);
}

/* ---- ops ---- */

/* Logs a row the first time that a queue uses it. */
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

void launch_run(struct queue *queue, struct plan *plan)
{
    if (plan->groups > 0)
        team_run(queue->device->team, run_groups, plan, plan->groups, plan->grain);
}

static int32_t submit(struct queue *queue, uint32_t op, const void *args)
{
    const char *why;
    struct plan *plan = plans_find(queue, op, args, &why);
    if (!plan)
        return hw_fail(queue->device->host, HW_UNSUPPORTED, "%s", why);
    launch_run(queue, plan);
    return HW_OK;
}

KERNEL_QUERIES
KERNEL_OPS
