/* SPDX-License-Identifier: MIT */
/* bench_dispatch.c - the overhead that the library adds to a call. Each op runs on tensors of few
 * elements, alternately through the library and by a direct call of the plugin's function, or of
 * its plan: the same call repeated, several shapes in turn, a struct that is filled before each
 * call, and operands that move before each call.
 *
 * For the direct calls, the plugin is entered a second time through its public ABI, as any host
 * would, with a device and a queue of its own. Both sides run the same plugin code on one
 * thread. */
#define _POSIX_C_SOURCE 200809L

#include "bench.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"
#include "direct.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verify.h>

enum {
    CALLS = 200,
    REPETITIONS = 2000,
    MEMORY = 4 << 20, /* bytes, for each side */
    ALIGNMENT = 64    /* of operands */
};

/* ---- The plugin without the library -------------------------------------------------------- */

/* The plugin, and memory for operands. The library has it loaded, too, so leaving does not unload
 * it. */
struct entered {
    struct direct plugin;
    struct hw_buffer memory;
};

static void leave(struct entered *entered)
{
    if (entered->memory.impl)
        entered->plugin.table.buffer_free(entered->plugin.device, &entered->memory);
    direct_close(&entered->plugin);
}

/* Both sides compute on zeros: leftover memory could hold numbers that are slower, as denormals
 * are. */
static int32_t clear_memory(struct entered *entered)
{
    static char zeros[MEMORY];
    const struct hw_transfer transfer = { .size = sizeof transfer,
                                          .dst = &entered->memory,
                                          .src_host = zeros,
                                          .bytes = sizeof zeros };
    const struct direct *plugin = &entered->plugin;
    const int32_t status = plugin->table.transfer(plugin->queue, &transfer);
    return status ? status : plugin->table.queue_wait(plugin->queue);
}

/* Enters the plugin at `path` and opens its device `index`. */
static bool enter(struct entered *entered, const char *path, int32_t index)
{
    struct direct *plugin = &entered->plugin;
    entered->memory = (struct hw_buffer){ 0 };
    if (direct_load(plugin, path) && direct_start(plugin, index, 1) &&
        !plugin->table.buffer_alloc(plugin->device, MEMORY, 0, &entered->memory) &&
        !clear_memory(entered))
        return true;
    complain("dispatch: cannot enter %s directly: %s", path, plugin->why);
    leave(entered);
    return false;
}

/* ---- One op, both ways --------------------------------------------------------------------- */

union op_args {
#define X(NAME, name) struct hw_##name name;
    HW_OPS(X)
#undef X
};

/* How the caller treats the op's struct before each call. */
enum way {
    KEPT,   /* nothing */
    FILLED, /* sets every field */
    MOVED   /* changes the offset of every operand */
};

/* Calls to make: `shapes` different ones in turn. */
struct calls {
    union op_args args[VERIFY_CALLS];
    int shapes;
    enum way way;
    uint64_t step;            /* if operands move: bytes from one call to the next */
    void *plan[VERIFY_CALLS]; /* the plugin's for direct calls; NULL: it has none */
};

#define FILL(op, field, role)      now.field = first->field;
#define SET(op, field, type, zero) now.field = first->field;
#define MOVE(op, field, role)      now.field.offset += calls->step;
#define LOOPS(NAME, name, call)                                                            \
    const struct hw_##name *first = &calls->args[0].name, *op;                             \
    struct hw_##name now = *first;                                                         \
    int32_t status = HW_OK;                                                                \
    int shape = 0;                                                                         \
    for (int i = 0; i < CALLS && calls->way == KEPT; i++) {                                \
        op = &calls->args[shape].name;                                                     \
        status |= (int32_t)(call);                                                         \
        shape = shape + 1 < calls->shapes ? shape + 1 : 0;                                 \
    }                                                                                      \
    op = &now;                                                                             \
    shape = 0;                                                                             \
    for (int i = 0; i < CALLS && calls->way == FILLED; i++) {                              \
        HW_OPERANDS_##NAME(FILL) HW_SCALARS_##NAME(SET) status |= (int32_t)(call);         \
    }                                                                                      \
    for (int i = 0; i < CALLS && calls->way == MOVED; i++) {                               \
        status |= (int32_t)(call);                                                         \
        HW_OPERANDS_##NAME(MOVE)                                                           \
    }                                                                                      \
    return status;
#define X(NAME, name)                                                                      \
    static int32_t library_##name(struct hw_queue *queue, const struct calls *calls)       \
    {                                                                                      \
        LOOPS(NAME, name, hw_##name(queue, op))                                            \
    }                                                                                      \
    static int32_t direct_##name(const struct direct *direct, const struct calls *calls)   \
    {                                                                                      \
        int32_t (*call)(void *, void *,                                                    \
                        const struct hw_##name *) = direct->table.ops->name;               \
        LOOPS(NAME, name,                                                                  \
              calls->plan[shape]                                                           \
                  ? direct->table.plan_launch(direct->queue, calls->plan[shape], op)       \
                  : call(direct->device, direct->queue, op))                               \
    }                                                                                      \
    static bool has_##name(const struct hw_plugin_ops *ops)                                \
    {                                                                                      \
        return offsetof(struct hw_plugin_ops, name) + sizeof ops->name <= ops->size &&     \
               ops->name;                                                                  \
    }
HW_OPS(X)
#undef X
#undef LOOPS
#undef MOVE
#undef SET
#undef FILL

static const struct subject {
    const char *name;
    int32_t (*library)(struct hw_queue *queue, const struct calls *calls);
    int32_t (*direct)(const struct direct *direct, const struct calls *calls);
    bool (*has)(const struct hw_plugin_ops *ops);
} subjects[HW_OP_COUNT] = {
#define X(NAME, name) { #name, library_##name, direct_##name, has_##name },
    HW_OPS(X)
#undef X
};

/* Nanoseconds of a call through the library, directly, and their difference pair by pair. */
struct figures {
    struct spread library, direct, cost;
};

struct pair {
    struct hw_queue *queue;
    const struct direct *direct;
    struct calls ours, theirs; /* the library's, the plugin's */
};

static double time_library(const struct subject *subject, const struct pair *pair,
                           int32_t *status)
{
    double start = now_ns();
    *status |= subject->library(pair->queue, &pair->ours);
    double each = (now_ns() - start) / CALLS;
    *status |= (int32_t)hw_queue_wait(pair->queue);
    return each;
}

static double time_direct(const struct subject *subject, const struct pair *pair,
                          int32_t *status)
{
    double start = now_ns();
    *status |= subject->direct(pair->direct, &pair->theirs);
    double each = (now_ns() - start) / CALLS;
    *status |= pair->direct->table.queue_wait(pair->direct->queue);
    return each;
}

static int32_t measure(const struct subject *subject, const struct pair *pair,
                       int repetitions, struct figures *figures)
{
    size_t count = (size_t)repetitions;
    double *samples = calloc(3 * count, sizeof *samples);
    if (!samples)
        return HW_NO_MEMORY;
    double *library = samples, *direct = samples + count, *cost = samples + 2 * count;
    int32_t status = HW_OK;

    for (size_t i = 0; i < count && !status; i++) {
        /* The order alternates, because the second one finds the caches warm. */
        if (i % 2)
            direct[i] = time_direct(subject, pair, &status);
        library[i] = time_library(subject, pair, &status);
        if (!(i % 2))
            direct[i] = time_direct(subject, pair, &status);
        cost[i] = library[i] - direct[i];
    }
    *figures = (struct figures){ spread_of(library, count), spread_of(direct, count),
                                 spread_of(cost, count) };
    free(samples);
    return status;
}

/* ---- The table ----------------------------------------------------------------------------- */

static void report_figures(const struct bench *bench, const char *name,
                           const struct calls *calls, const struct figures *figures,
                           double ghz)
{
    static const char *const ways[] = {
        [KEPT] = "kept", [FILLED] = "filled", [MOVED] = "moved"
    };
    json_array_append_new(
        bench->results,
        json_pack("{s:s, s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:f}", "bench", "dispatch",
                  "op", name, "shapes", calls->shapes, "struct", ways[calls->way], "unit",
                  "ns per call", "library", spread_json(figures->library), "direct",
                  spread_json(figures->direct), "cost", spread_json(figures->cost),
                  "cycles", figures->cost.median * ghz));
    if (out_is_text())
        say("  %-12s %5d  %-9s %8.1f %8.1f   %s%6.1f%s %6.1f %6.1f %8.0f %8.1f\n", name,
            calls->shapes, ways[calls->way], figures->library.median,
            figures->direct.median, ink(BOLD), figures->cost.median, ink(PLAIN),
            figures->cost.p10, figures->cost.p90, figures->cost.median * ghz,
            figures->cost.median * ghz / 3.0);
}

/* Whether to measure an op: it was named, or none was. */
static bool wanted(const struct bench *bench, const char *name)
{
    bool any = !bench->words[0];
    for (const char **word = bench->words; *word; word++)
        any |= !strcmp(*word, name);
    return any;
}

/* The step keeps the operands of moving calls apart. */
static bool make_calls(struct pair *pair, uint32_t op, struct hw_buffer *buffer,
                       struct entered *entered)
{
    uint64_t most = 0;
    for (int i = 0; i < VERIFY_CALLS; i++) {
        uint64_t bytes = 0;
        if (!verify_call(op, i, buffer, &pair->ours.args[i], &bytes) ||
            !verify_call(op, i, &entered->memory, &pair->theirs.args[i], &bytes) ||
            bytes > MEMORY / (CALLS + 1)) {
            complain("dispatch: %s: no cases to measure, or out of memory", hw_op_name(op));
            return false;
        }
        most = bytes > most ? bytes : most;
    }
    pair->ours.step = pair->theirs.step = (most + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return true;
}

/* The direct calls use plans, as the library's do. A plugin may have none. */
static void make_plans(struct calls *calls, uint32_t op, const struct direct *direct)
{
    for (int i = 0; i < VERIFY_CALLS; i++)
        if (!direct->table.plan_build ||
            direct->table.plan_build(direct->queue, op, &calls->args[i], &calls->plan[i]))
            calls->plan[i] = NULL;
}

static void drop_plans(struct calls *calls, const struct direct *direct)
{
    for (int i = 0; i < VERIFY_CALLS; i++) {
        if (calls->plan[i])
            direct->table.plan_destroy(calls->plan[i]);
        calls->plan[i] = NULL;
    }
}

/* Measures an op with one shape, with all shapes in turn, then with structs that change. */
static int run_subject(const struct bench *bench, const struct subject *subject,
                       struct pair *pair, int repetitions)
{
    static const struct {
        int shapes;
        enum way way;
    } rows[] = { { 1, KEPT }, { VERIFY_CALLS, KEPT }, { 1, FILLED }, { 1, MOVED } };
    const double ghz = core_ghz();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct figures figures;
        pair->ours.shapes = pair->theirs.shapes = rows[i].shapes;
        pair->ours.way = pair->theirs.way = rows[i].way;
        if (measure(subject, pair, repetitions, &figures)) {
            complain("dispatch: %s: %s", subject->name, hw_message());
            return EXIT_FAILED;
        }
        report_figures(bench, subject->name, &pair->ours, &figures, ghz);
    }
    return 0;
}

static int run_subjects(const struct bench *bench, int repetitions, struct hw_queue *queue,
                        struct hw_buffer *buffer, struct entered *entered)
{
    struct pair pair = { .queue = queue, .direct = &entered->plugin };
    int status = 0;

    for (uint32_t op = 0; op < HW_OP_COUNT && !status; op++) {
        if (!wanted(bench, subjects[op].name))
            continue;
        if (!subjects[op].has(entered->plugin.table.ops)) {
            if (out_is_text())
                say("  %-12s the plugin does not have it\n", subjects[op].name);
            continue;
        }
        if (!make_calls(&pair, op, buffer, entered))
            return EXIT_FAILED;
        make_plans(&pair.theirs, op, &entered->plugin);
        status = run_subject(bench, &subjects[op], &pair, repetitions);
        drop_plans(&pair.theirs, &entered->plugin);
    }
    return status;
}

bool dispatch_accepts(const char **words)
{
    const char *names[HW_OP_COUNT + 1] = { NULL };
    for (int i = 0; i < HW_OP_COUNT; i++)
        names[i] = subjects[i].name;
    for (; *words; words++)
        if (!is_known("op to measure here", *words, names))
            return false;
    return true;
}

int measure_dispatch(const struct bench *bench)
{
    const struct hw_options options = { .size = sizeof options, .threads = "1" };
    struct hw_device *device = NULL;
    struct hw_queue *queue = NULL;
    struct hw_buffer *buffer = NULL;
    struct report report;
    struct entered entered;
    int repetitions = bench->repetitions ? bench->repetitions : REPETITIONS;
    int status = EXIT_FAILED;

    if (!report_open_for(&report, bench->device, &options))
        return EXIT_FAILED;
    if (!(device = report_device(&report, bench->device)))
        goto close;
    /* Withdrawn ops are measured, too: the overhead does not depend on the result. */
    if (hw_device_reset(device) || hw_queue_open(device, NULL, &queue) ||
        hw_buffer_alloc(device, MEMORY, HW_BUFFER_ZEROED, &buffer)) {
        complain("dispatch: %s", hw_message());
        goto close;
    }
    if (!enter(&entered, report_plugin_path(&report, device), device_index(device)))
        goto close;
    if (out_is_text())
        say("\ndispatch on %s: nanoseconds per call on few elements, %d times %d calls each way:\n"
            "one shape repeated, %d shapes in turn, a struct that is filled before each call,\n"
            "and operands that move before each call\n"
            "  op          shapes  struct     library   direct     cost    p10    p90   cycles"
            "  ns@3GHz\n",
            hw_device_name(device), repetitions, CALLS, VERIFY_CALLS);
    status = run_subjects(bench, repetitions, queue, buffer, &entered);
    leave(&entered);
close:
    hw_buffer_free(buffer);
    hw_queue_close(queue);
    report_close(&report);
    return status;
}
