/* SPDX-License-Identifier: MIT */
/* Ops are computed here, within the call: a plan says which code on which addresses, and
 * the team goes through its groups. A graph is a list of plans. */
#include "cpu.h"
#include "portable.h"

#include <stdlib.h>

/* Multiply-adds, as lower() weighs work, that are worth a second thread: about 5 us of one.
 */
#define WORTH_A_THREAD 40000.0

/* ---- the table ---- */

static void needs_in_words(uint64_t needs, char *text, size_t size)
{
    text[0] = '\0';
#define TIER(NAME, name, features)                                                         \
    if (needs & HAS(TIER_##NAME))                                                          \
        snprintf(text, size, "%s", name);
#include "cpu.def"
}

#define KERNEL KERNEL_FITS
#include "kernels.def"
#undef KERNEL
#define KERNEL KERNEL_ROW
static const struct kernel_row rows[] = {
#include "kernels.def"
};
#undef KERNEL

const struct kernel_table launch_kernels = { rows, sizeof rows / sizeof rows[0],
                                             needs_in_words };

/* The tier of each row's portable code. */
#define PORTABLE(op, row, needs, tier) tier,
static const uint8_t row_tier[] = {
#include "kernels.def"
};

static const struct portable_form *const forms[TIER_COUNT][FORM_COUNT] = {
#define F(form, tier) [FORM_##form] = &portable_##form##_##tier,
#define T(tier)       [TIER_##tier] = { PORTABLE_FORMS(F, tier) },
    PORTABLE_TIERS(T)
#undef T
#undef F
};

static enum portable_form_index form_of(const struct lowered *l)
{
    const bool same = l->w_type == l->x_type;
    switch (l->x_type) {
    case HW_F32:
        return FORM_f32;
    case HW_F16:
        return same ? FORM_f16 : FORM_f16_f32;
    case HW_BF16:
        return same ? FORM_bf16 : FORM_bf16_f32;
    default:
        return FORM_mixed;
    }
}

/* ---- plans ---- */

struct plan {
    portable_fn *run;
    void *pointer[PORTABLE_POINTERS];
    int64_t grain; /* groups that one thread takes at least */
    uint32_t row;
    struct lowered lowered;
};

/* Answers NULL, or why no row computes this. */
static const char *plan_make(const struct kernel_choice *choice, uint32_t op,
                             const void *args, struct plan *plan)
{
    const char *why = lower(op, args, &plan->lowered);
    if (why)
        return why;
    const int32_t row = kernel_select(&launch_kernels, choice, op, args);
    if (row < 0)
        return choice->forced[op]
                   ? "the row that HW_KERNEL or the queue asks for does not fit"
                   : "no row fits";

    const struct lowered *l = &plan->lowered;
    plan->row = (uint32_t)row;
    plan->run = forms[row_tier[row]][form_of(l)]->kernel[l->kernel];
    for (uint32_t i = 0; i < l->pointers; i++) /* absent ones are not read: any will do */
        plan->pointer[i] = lowered_host_pointer(l->operand[l->operand[i] ? i : 0]);
    const double each = l->groups ? l->work / (double)l->groups : 0.0;
    const double grain = each > 0.0 ? WORTH_A_THREAD / each : 1.0;
    plan->grain = grain < 1.0 ? 1 : grain > (double)l->groups ? l->groups : (int64_t)grain;
    return NULL;
}

static void run_groups(void *user, int64_t first, int64_t end)
{
    const struct plan *plan = user;
    plan->run(plan->pointer, &plan->lowered.args, first, end);
}

static void plan_run(struct team *team, struct plan *plan)
{
    if (plan->lowered.groups > 0)
        team_run(team, run_groups, plan, plan->lowered.groups, plan->grain);
}

/* ---- ops ---- */

/* The first call that a row serves on a queue is worth a line for who debugs. */
static void log_row(struct queue *queue, uint32_t op, const void *args, uint32_t row)
{
    char text[400], line[512];
    const struct hw_host *host = queue->device->host;
    if (queue->logged[row])
        return;
    queue->logged[row] = true;
    kernel_describe(op, args, text, sizeof text);
    snprintf(line, sizeof line, "cpu: row %s for %s", rows[row].name, text);
    host->log(host->instance, HW_LOG_DEBUG, line);
}

static int32_t submit(struct queue *queue, uint32_t op, const void *args)
{
    struct plan plan;
    const char *why = plan_make(&queue->choice, op, args, &plan);
    if (why)
        return hw_fail(queue->device->host, HW_UNSUPPORTED, "%s", why);
    log_row(queue, op, args, plan.row);
    plan_run(queue->device->team, &plan);
    return HW_OK;
}

#define X(NAME, name)                                                                      \
    static int32_t launch_##name(void *device, void *queue, const struct hw_##name *op)    \
    {                                                                                      \
        (void)device;                                                                      \
        return submit(queue, HW_OP_##NAME, op);                                            \
    }
HW_OPS(X)
#undef X

const struct hw_plugin_ops launch_ops = { .size = sizeof launch_ops,
#define X(NAME, name) .name = launch_##name,
                                          HW_OPS(X)
#undef X
};

int32_t launch_supports(void *device, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch)
{
    const struct device *dev = device;
    struct plan plan;
    const char *reason = op < HW_OP_COUNT ? plan_make(&dev->choice, op, args, &plan)
                                          : "no such op here";
    if (scratch)
        *scratch = 0;
    if (why && why_size)
        snprintf(why, why_size, "%s", reason ? reason : "");
    return reason ? HW_UNSUPPORTED : HW_OK;
}

/* ---- graphs ---- */

struct graph {
    struct device *device;
    struct kernel_choice choice; /* what the plans were made with */
    const struct hw_node *nodes; /* the host's */
    uint32_t count;
    struct plan plans[];
};

static int32_t graph_plan(struct graph *graph, struct queue *queue)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct hw_node *node = &graph->nodes[i];
        const char *why = plan_make(&queue->choice, node->op, node->args, &graph->plans[i]);
        if (why)
            return hw_fail(graph->device->host, HW_UNSUPPORTED, "node %u: %s", (unsigned)i,
                           why);
        log_row(queue, node->op, node->args, graph->plans[i].row);
    }
    graph->choice = queue->choice;
    return HW_OK;
}

int32_t launch_graph_build(void *queue, const struct hw_node *nodes, uint32_t count,
                           void **graph)
{
    struct device *dev = ((struct queue *)queue)->device;
    struct graph *made = calloc(1, sizeof *made + count * sizeof made->plans[0]);
    if (!made)
        return hw_fail(dev->host, HW_NO_MEMORY,
                       "cpu: out of memory for a graph of %u nodes", (unsigned)count);
    made->device = dev;
    made->nodes = nodes;
    made->count = count;
    const int32_t status = graph_plan(made, queue);
    if (status) {
        free(made);
        return status;
    }
    *graph = made;
    return HW_OK;
}

/* A queue that was told to use other rows than the one that the graph was built on plans
 * it anew. */
int32_t launch_graph(void *queue, void *graph)
{
    struct queue *q = queue;
    struct graph *g = graph;
    const int32_t status = memcmp(&g->choice, &q->choice, sizeof g->choice) == 0
                               ? HW_OK
                               : graph_plan(g, q);
    if (status)
        return status;
    for (uint32_t i = 0; i < g->count; i++)
        plan_run(q->device->team, &g->plans[i]);
    return HW_OK;
}

void launch_graph_destroy(void *graph)
{
    free(graph);
}
