/* SPDX-License-Identifier: MIT */
/* older.c - a plugin that is older than the library. Its table ends after graph_destroy, its op
 * table has four ops, it states the sizes of five structs, and its structs of matmul and softmax
 * end after the tensors.
 *
 * Unreadable memory follows its tables, and the part of the host's table that it did not write is
 * poisoned. It must never get an op or a field that it does not know: it would return HW_INTERNAL
 * or compute a wrong result. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define NAME            "older"
#define NO_PLUGIN
#include "minimal.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- its header ---- */

struct older_matmul {
    struct hw_tensor a, b, bias, c;
};
struct older_softmax {
    struct hw_tensor x, mask, slopes, sinks, y;
};
struct older_ops {
    uint32_t size;
    uint32_t reserved;
    int32_t (*matmul)(void *device, void *queue, const struct older_matmul *op);
    int32_t (*rmsnorm)(void *device, void *queue, const struct hw_rmsnorm *op);
    int32_t (*softmax)(void *device, void *queue, const struct older_softmax *op);
    int32_t (*silu)(void *device, void *queue, const struct hw_silu *op);
};
static const uint32_t older_sizes[] = { sizeof(struct older_matmul),
                                        sizeof(struct hw_rmsnorm),
                                        sizeof(struct older_softmax),
                                        sizeof(struct hw_silu), sizeof(struct hw_rope) };
#define OLDER_COUNT (sizeof older_sizes / sizeof *older_sizes)
#define OLDER_TABLE offsetof(struct hw_plugin, pack_size)

/* ---- ops on f32 in host memory; the device is the host, for its messages ---- */

static float *floats(const struct hw_tensor *t)
{
    return (float *)hw_tensor_address(t);
}

static const char *refusal(uint32_t op, const void *args)
{
    const struct older_matmul *matmul = args;
    const struct older_softmax *softmax = args;
    const struct hw_silu *silu = args;
    switch (op) {
    case HW_OP_MATMUL:
        return matmul->c.dtype == HW_F32 && matmul->c.rank == 2 && !matmul->bias.dtype
                   ? NULL
                   : "matmul is for two matrices of f32";
    case HW_OP_SOFTMAX:
        return softmax->x.dtype == HW_F32 && softmax->x.rank == 1 && !softmax->mask.dtype
                   ? NULL
                   : "softmax is for a vector of f32 without a mask";
    case HW_OP_SILU:
        return silu->x.dtype == HW_F32 && silu->x.rank == 1 ? NULL
                                                            : "silu is for a vector of f32";
    default:
        return "it has no kernel for this op";
    }
}

static int32_t unknown(const struct hw_host *host, uint32_t op)
{
    return hw_fail(host, HW_INTERNAL, "op %u is asked for, and known are %u", (unsigned)op,
                   (unsigned)OLDER_COUNT);
}

static int32_t supports(void *device, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch)
{
    if (op >= OLDER_COUNT)
        return unknown(device, op);
    const char *words = refusal(op, args);
    *scratch = 0;
    if (words)
        snprintf(why, why_size, "%s", words);
    return words ? HW_UNSUPPORTED : HW_OK;
}

static int32_t kernel_info(void *device, uint32_t op, uint32_t index,
                           struct hw_kernel_info *info)
{
    if (op >= OLDER_COUNT)
        return unknown(device, op);
    if (index > 0 || op == HW_OP_RMSNORM || op == HW_OP_ROPE)
        return HW_END;
    hw_answer(info, &(struct hw_kernel_info){
                        .size = sizeof *info, .eligible = 1, .name = "plain" });
    return HW_OK;
}

static int32_t refuse(const struct hw_host *host, const char *words)
{
    return hw_fail(host, HW_UNSUPPORTED, "%s", words);
}

/* Each row of c is a row of a times b as stored: this version has no transpose flags. */
static int32_t matmul(void *device, void *queue, const struct older_matmul *op)
{
    const char *words = refusal(HW_OP_MATMUL, op);
    (void)queue;
    if (words)
        return refuse(device, words);
    for (int64_t m = 0; m < op->c.extent[0]; m++)
        for (int64_t n = 0; n < op->c.extent[1]; n++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < op->a.extent[1]; k++)
                sum += floats(&op->a)[m * op->a.stride[0] / 4 + k] *
                       floats(&op->b)[k * op->b.stride[0] / 4 + n];
            floats(&op->c)[m * op->c.stride[0] / 4 + n] = sum;
        }
    return HW_OK;
}

/* The scale is 1, and there is no logarithm. */
static int32_t softmax(void *device, void *queue, const struct older_softmax *op)
{
    const char *words = refusal(HW_OP_SOFTMAX, op);
    const int64_t count = op->x.extent[0];
    float sum = 0.0f;
    (void)queue;
    if (words)
        return refuse(device, words);
    for (int64_t i = 0; i < count; i++)
        sum += expf(floats(&op->x)[i]);
    for (int64_t i = 0; i < count; i++)
        floats(&op->y)[i] = expf(floats(&op->x)[i]) / sum;
    return HW_OK;
}

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    const char *words = refusal(HW_OP_SILU, op);
    (void)queue;
    if (words)
        return refuse(device, words);
    for (int64_t i = 0; i < op->x.extent[0]; i++)
        floats(&op->y)[i] = floats(&op->x)[i] / (1.0f + expf(-floats(&op->x)[i]));
    return HW_OK;
}

/* ---- graphs of silu, with only nodes whose structs it knows ---- */

struct graph {
    void *device; /* device and queue are the host */
    uint32_t count;
    struct hw_node nodes[];
};

static int32_t graph_build(void *queue, const struct hw_node *nodes, uint32_t count,
                           void **out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (nodes[i].op >= OLDER_COUNT || nodes[i].bytes != older_sizes[nodes[i].op])
            return unknown(queue, nodes[i].op);
        if (nodes[i].op != HW_OP_SILU)
            return refuse(queue, "graphs are of silu");
    }
    struct graph *graph = malloc(sizeof *graph + count * sizeof *nodes);
    if (!graph)
        return hw_fail(queue, HW_NO_MEMORY, "out of memory");
    graph->device = queue;
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
        status = silu(graph->device, queue, graph->nodes[i].args);
    return status;
}

static void graph_destroy(void *graph)
{
    free(graph);
}

/* ---- the tables ---- */

/* Copies data to memory followed by an unreadable page; returns NULL without memory. The copy is
 * never freed, like the tables of other plugins. */
static const void *at_an_edge(const void *table, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (pages == MAP_FAILED || bytes > page || mprotect(pages + page, page, PROT_NONE))
        return NULL;
    return memcpy(pages + page - bytes, table, bytes);
}

static int32_t older_fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const struct older_ops rows = {
        .size = sizeof rows, .matmul = matmul, .softmax = softmax, .silu = silu
    };
    const void *ops = at_an_edge(&rows, sizeof rows);
    const void *sizes = at_an_edge(older_sizes, sizeof older_sizes);
    if (!ops || !sizes)
        return hw_fail(host, HW_NO_MEMORY, "no memory for its tables");
    fill(host, table);
    table->version = "0.9";
    table->ops = ops;
    table->op_sizes = sizes;
    table->op_count = OLDER_COUNT;
    table->supports = supports;
    table->kernel_info = kernel_info;
    table->graph_build = graph_build;
    table->graph_launch = graph_launch;
    table->graph_destroy = graph_destroy;
    return HW_OK;
}

HW_MANIFEST_("abi=1-1\nname=" NAME "\nvendor=nobody\nrank=99\n");

/* Like HW_PLUGIN() of its header, except for the poison. */
HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    const uint32_t room = plugin->size;
    plugin->size = OLDER_TABLE;
    memset((char *)plugin + OLDER_TABLE, 0x5a, room - OLDER_TABLE);
    return hw_plugin_enter_(host, plugin, NAME, older_fill);
}
