/* SPDX-License-Identifier: MIT */
/* Graphs: lists of plans, made once with the rows of the queue that recorded the nodes.
 *
 * A list is divided into phases. The plans of one phase do not depend on each other, so the team
 * computes them together and waits once, at the end of the phase. Dependencies are found when the
 * graph is built, from the bytes that each plan reads and writes. The caller computes phases that
 * are too small for a second thread. */
#include "common/operands.h"
#include "cpu.h"

#include <stdlib.h>

enum { MOST_PLANS = 8 }; /* of a phase */
/* The workspaces of a phase's plans lie side by side and have to stay in the caches. */
#define MOST_BESIDE (UINT64_C(256) << 10)

/* Plans that are computed together or, if `alone`, one after the other. */
struct phase {
    struct plan *plans;
    uint32_t count;
    bool alone;
    /* Several shared plans are cut into pieces: plan i begins with piece begin[i]. */
    int64_t begin[MOST_PLANS + 1], prepare[MOST_PLANS + 1];
    int64_t units; /* of these pieces, as in struct team_work */
};

struct graph {
    uint32_t threads;   /* that there may be */
    uint64_t workspace; /* bytes */
    const char *bound;  /* the workspace that plans have now */
    struct phase *phases;
    uint32_t phase_count;
    uint32_t count;
    struct plan plans[];
};

/* ---- dependencies ---- */

struct bytes {
    uintptr_t begin, end;
    bool written;
};

struct access {
    uint32_t count;
    struct bytes bytes[MOST_OPERANDS];
};

/* From the first byte to the last, including the gaps between rows. */
static struct bytes bytes_of(const struct hw_tensor *t, enum hw_role role)
{
    if (t->dtype == HW_NONE) /* absent: its other fields are undefined */
        return (struct bytes){ 0 };
    const struct hw_buffer *buffer = t->buffer;
    const bool written = role >= HW_ROLE_OUT;
    const uintptr_t low = (uintptr_t)(buffer ? buffer->host : t->data) + t->offset;
    uintptr_t high = low;
    if (t->layout) /* packed: it has no strides and fills its buffer */
        return (struct bytes){ (uintptr_t)buffer->host,
                               (uintptr_t)buffer->host + buffer->bytes, written };
    for (int i = 0; i < t->rank; i++) {
        const int64_t step = i == t->rank - 1 ? hw_dtype_block(t->dtype) : 1;
        if (t->extent[i] == 0)
            return (struct bytes){ 0 };
        high += (uintptr_t)((t->extent[i] / step - 1) * t->stride[i]);
    }
    return (struct bytes){ low, high + (uintptr_t)hw_dtype_bytes(t->dtype), written };
}

static struct access access_of(const struct hw_node *node)
{
    const struct hw_tensor *t = node->args;
    const struct op_layout *layout = &op_layouts[node->op];
    struct access access = { .count = layout->count };
    for (uint32_t i = 0; i < access.count; i++)
        access.bytes[i] = bytes_of(&t[i], layout->operand[i].role);
    return access;
}

/* Whether one writes bytes that the other reads or writes. */
static bool depend(const struct access *a, const struct access *b)
{
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++) {
            const struct bytes *x = &a->bytes[i], *y = &b->bytes[k];
            if ((x->written || y->written) && x->begin < y->end && y->begin < x->end)
                return true;
        }
    return false;
}

/* ---- phases ---- */

/* How many pieces for threads there are in `groups`. */
static int64_t pieces_of(int64_t groups, int64_t grain)
{
    return groups > grain ? groups / grain : 1;
}

static void cut(struct phase *phase)
{
    for (uint32_t i = 0; i < phase->count; i++) {
        const struct plan *plan = &phase->plans[i];
        const bool prepares = plan->groups && plan->prepare;
        phase->begin[i + 1] = phase->begin[i] +
                              (plan->groups ? pieces_of(plan->groups, plan->grain) : 0);
        phase->prepare[i + 1] =
            phase->prepare[i] +
            (prepares ? pieces_of(plan->prepare_groups, plan->prepare_grain) : 0);
        phase->units += plan->groups ? plan_units(plan) : 0;
    }
}

/* Includes the preparing pass. */
static double work_of(const struct plan *plan)
{
    const double prepare = plan->prepare
                               ? (double)plan->prepare_groups / (double)plan->prepare_grain
                               : 0;
    return plan->groups ? plan->work + prepare * WORTH_A_THREAD : 0;
}

/* Whether the plans of a phase have less work than two threads need. */
static bool is_small(const struct phase *phase)
{
    double work = 0;
    for (uint32_t i = 0; i < phase->count; i++)
        work += work_of(&phase->plans[i]);
    return work < 2 * WORTH_A_THREAD;
}

/* Whether plan `next` can be computed together with the plans of the phase. */
static bool joins(const struct phase *phase, const struct access *accesses,
                  const struct access *next, const struct plan *plan, uint32_t threads)
{
    uint64_t workspace = launch_workspace(plan, threads);
    if (phase->count == MOST_PLANS)
        return false;
    for (uint32_t i = 0; i < phase->count; i++) {
        workspace += launch_workspace(&phase->plans[i], threads);
        if (depend(&accesses[i], next))
            return false;
    }
    return workspace <= MOST_BESIDE;
}

/* Ends the last phase. The caller computes a small phase; two small phases in a row become one. */
static void end_phase(struct graph *graph)
{
    struct phase *phase = &graph->phases[graph->phase_count - 1];
    phase->alone = is_small(phase);
    if (!phase->alone)
        cut(phase);
    if (phase->alone && graph->phase_count > 1 && phase[-1].alone) {
        phase[-1].count += phase->count;
        graph->phase_count--;
    }
}

static void divide(struct graph *graph, const struct hw_node *nodes)
{
    struct access accesses[MOST_PLANS] = { { 0 } };
    struct phase *phase = NULL;
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct access next = access_of(&nodes[i]);
        if (!phase || !joins(phase, accesses, &next, &graph->plans[i], graph->threads)) {
            if (phase)
                end_phase(graph);
            phase = &graph->phases[graph->phase_count++];
            *phase = (struct phase){ .plans = &graph->plans[i] };
        }
        accesses[phase->count++] = next;
    }
    if (phase)
        end_phase(graph);
}

/* Assigns the plans their places in a queue's workspace; without a workspace, adds up the total
 * size. Plans that are computed one after the other share a place. */
static uint64_t place(struct graph *graph, char *workspace)
{
    uint64_t most = 0;
    for (struct phase *phase = graph->phases; phase < graph->phases + graph->phase_count;
         phase++) {
        const uint32_t threads = phase->alone ? 1 : graph->threads;
        uint64_t used = 0;
        for (uint32_t i = 0; i < phase->count; i++) {
            const uint64_t bytes = launch_workspace(&phase->plans[i], threads);
            if (workspace)
                phase->plans[i].workspace = workspace + (phase->alone ? 0 : used);
            used = phase->alone ? (bytes > used ? bytes : used) : used + bytes;
        }
        most = used > most ? used : most;
    }
    return most;
}

/* ---- building ---- */

/* Plans point to the nodes' structs, which the host keeps until graph_destroy(), but not to the
 * nodes. */
static int32_t plan_nodes(struct queue *queue, const struct hw_node *nodes,
                          struct graph *graph)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const char *why = launch_plan(queue, nodes[i].op, nodes[i].args, &graph->plans[i]);
        if (why)
            return hw_fail(queue->device->host, HW_UNSUPPORTED, "node %u: %s", (unsigned)i,
                           why);
    }
    return HW_OK;
}

void graph_destroy(void *graph)
{
    free(((struct graph *)graph)->phases);
    free(graph);
}

int32_t graph_build(void *queue, const struct hw_node *nodes, uint32_t count, void **graph)
{
    struct queue *q = queue;
    struct graph *made = calloc(1, sizeof *made + count * sizeof made->plans[0]);
    struct phase *phases = calloc(count ? count : 1, sizeof *phases);
    if (!made || !phases) {
        free(made);
        free(phases);
        return hw_fail(q->device->host, HW_NO_MEMORY,
                       "out of memory for a graph of %u nodes", (unsigned)count);
    }
    made->phases = phases;
    made->count = count;
    made->threads = team_limit(q->device->team);
    const int32_t status = plan_nodes(q, nodes, made);
    if (status) {
        graph_destroy(made);
        return status;
    }
    divide(made, nodes);
    made->workspace = place(made, NULL);
    *graph = made;
    return HW_OK;
}

/* ---- launching ---- */

/* Calls fn with each plan's part of pieces first .. end - 1. */
static inline void each_part(const struct phase *phase, const int64_t *begin, int64_t first,
                             int64_t end, uint32_t thread, bool prepare)
{
    for (uint32_t i = 0; i < phase->count && begin[i] < end; i++) {
        const struct plan *plan = &phase->plans[i];
        const int64_t groups = prepare ? plan->prepare_groups : plan->groups;
        const int64_t pieces = begin[i + 1] - begin[i];
        const int64_t from = first > begin[i] ? first - begin[i] : 0;
        const int64_t to = end < begin[i + 1] ? end - begin[i] : pieces;
        if (from < to)
            (prepare ? plan->prepare : plan->run)(plan, groups * from / pieces,
                                                  groups * to / pieces, thread);
    }
}

static void run_pieces(void *user, int64_t first, int64_t end, uint32_t thread)
{
    const struct phase *phase = user;
    each_part(phase, phase->begin, first, end, thread, false);
}

static void prepare_pieces(void *user, int64_t first, int64_t end, uint32_t thread)
{
    const struct phase *phase = user;
    each_part(phase, phase->prepare, first, end, thread, true);
}

static void run_alone(const struct phase *phase)
{
    for (const struct plan *plan = phase->plans; plan < phase->plans + phase->count;
         plan++) {
        if (plan->groups <= 0)
            continue;
        if (plan->prepare)
            plan->prepare(plan, 0, plan->prepare_groups, 0);
        plan->run(plan, 0, plan->groups, 0);
    }
}

/* Where plans are joined, the operands to prepare have few and short rows. */
static void run_together(struct team *team, struct phase *phase)
{
    const struct team_work prepare = { .fn = prepare_pieces,
                                       .user = phase,
                                       .count = phase->prepare[phase->count],
                                       .grain = phase->count };
    const struct team_work run = { .fn = run_pieces,
                                   .user = phase,
                                   .count = phase->begin[phase->count],
                                   .grain = 1,
                                   .units = phase->units };
    if (prepare.count)
        team_run(team, &prepare);
    team_run(team, &run);
}

static void run_phase(struct team *team, struct phase *phase)
{
    if (phase->alone)
        run_alone(phase);
    else if (phase->count == 1)
        launch_groups(team, phase->plans);
    else
        run_together(team, phase);
}

/* One thread at a time launches a graph. */
int32_t graph_launch(void *queue, void *graph)
{
    struct queue *q = queue;
    struct graph *g = graph;
    const int32_t status = launch_reserve(q, g->workspace);
    if (status)
        return status;
    if (g->workspace && g->bound != q->workspace) {
        place(g, q->workspace);
        g->bound = q->workspace;
    }
    for (uint32_t i = 0; i < g->phase_count; i++)
        run_phase(q->device->team, &g->phases[i]);
    return HW_OK;
}
