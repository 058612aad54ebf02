/* SPDX-License-Identifier: MIT */
/* newer.c - a plugin that is newer than the library. Its header has one more op, and
 * more fields in the structs of silu and copy. Each of these fields must be zero: the
 * plugin returns HW_INTERNAL if it is not. */
#define NAME  "newer"
#define LINES "vendor=nobody\nrank=99\n"
#define CHANGES
#include "minimal.h"

#include <math.h>

/* ---- its header ---- */

struct newer_silu {
    struct hw_silu known;
    float beta;
    uint32_t flags;
    struct hw_tensor gates[8]; /* longer than any struct that the library knows */
};
struct newer_copy {
    struct hw_copy known;
    uint32_t blocks[64];
};
struct newer_ops {
    struct hw_plugin_ops known;
    int32_t (*later)(void *device, void *queue, const void *op);
};
#define NEWER_COUNT (HW_OP_COUNT + 1)
static const uint32_t known_sizes[] = HW_OP_SIZES;
static uint32_t newer_sizes[NEWER_COUNT];

/* ---- ops on f32 in host memory; the device is the host, for its messages ---- */

static const char *refusal(uint32_t op, const void *args)
{
    const struct hw_silu *silu = args;
    const struct hw_copy *copy = args;
    switch (op) {
    case HW_OP_SILU:
        return silu->x.dtype == HW_F32 && silu->x.rank == 1 ? NULL
                                                            : "silu is for a vector of f32";
    case HW_OP_COPY:
        return copy->src.dtype == HW_F32 && copy->dst.dtype == HW_F32 && copy->src.rank == 1
                   ? NULL
                   : "copy is for a vector of f32";
    default:
        return "it has no kernel for this op";
    }
}

/* Returns whether all fields that the library does not know are zero. */
static int32_t check(const struct hw_host *host, uint32_t op, const void *args)
{
    const unsigned char *bytes = args;
    for (uint32_t i = known_sizes[op]; i < newer_sizes[op]; i++)
        if (bytes[i])
            return hw_fail(host, HW_INTERNAL, "byte %u of the struct of op %u is %u",
                           (unsigned)i, (unsigned)op, bytes[i]);
    const char *words = refusal(op, args);
    return words ? hw_fail(host, HW_UNSUPPORTED, "%s", words) : HW_OK;
}

static int32_t supports(void *device, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch)
{
    const char *words = refusal(op, args);
    *scratch = 0;
    if (words)
        snprintf(why, why_size, "%s", words);
    return words ? HW_UNSUPPORTED : check(device, op, args);
}

static float *number(const struct hw_tensor *t, int64_t i)
{
    return (float *)(void *)((char *)hw_tensor_address(t) + i * t->stride[0]);
}

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    const int32_t status = check(device, HW_OP_SILU, op);
    (void)queue;
    for (int64_t i = 0; i < op->x.extent[0] && !status; i++)
        *number(&op->y, i) = *number(&op->x, i) / (1.0f + expf(-*number(&op->x, i)));
    return status;
}

static int32_t copy(void *device, void *queue, const struct hw_copy *op)
{
    const int32_t status = check(device, HW_OP_COPY, op);
    (void)queue;
    for (int64_t i = 0; i < op->src.extent[0] && !status; i++)
        *number(&op->dst, i) = *number(&op->src, i);
    return status;
}

static int32_t later(void *device, void *queue, const void *op)
{
    (void)queue, (void)op;
    return hw_fail(device, HW_INTERNAL, "nobody can have asked for this op");
}

/* ---- graphs ---- */

struct graph {
    uint32_t count;
    struct hw_node nodes[];
};

static int32_t graph_build(void *queue, const struct hw_node *nodes, uint32_t count,
                           void **out)
{
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].bytes != newer_sizes[nodes[i].op])
            return hw_fail(queue, HW_INTERNAL, "a node has %u bytes",
                           (unsigned)nodes[i].bytes);
    struct graph *graph = malloc(sizeof *graph + count * sizeof *nodes);
    if (!graph)
        return hw_fail(queue, HW_NO_MEMORY, "out of memory");
    graph->count = count;
    memcpy(graph->nodes, nodes, count * sizeof *nodes);
    *out = graph;
    return HW_OK;
}

static int32_t graph_launch(void *queue, void *self)
{
    const struct graph *graph = self;
    int32_t status = HW_OK;
    for (uint32_t i = 0; i < graph->count && !status; i++)
        status = graph->nodes[i].op == HW_OP_SILU
                     ? silu(queue, queue, graph->nodes[i].args)
                     : copy(queue, queue, graph->nodes[i].args);
    return status;
}

static void graph_destroy(void *graph)
{
    free(graph);
}

static void change(struct hw_plugin *table)
{
    static const struct newer_ops ops = {
        .known = { .size = sizeof ops, .silu = silu, .copy = copy }, .later = later
    };
    memcpy(newer_sizes, known_sizes, sizeof known_sizes);
    newer_sizes[HW_OP_SILU] = sizeof(struct newer_silu);
    newer_sizes[HW_OP_COPY] = sizeof(struct newer_copy);
    newer_sizes[HW_OP_COUNT] = sizeof(struct hw_tensor);
    table->version = "2.0";
    table->ops = &ops.known;
    table->op_sizes = newer_sizes;
    table->op_count = NEWER_COUNT;
    table->supports = supports;
    table->graph_build = graph_build;
    table->graph_launch = graph_launch;
    table->graph_destroy = graph_destroy;
}
