/* SPDX-License-Identifier: MIT */
/* launch.h - from an op to the launch of a kernel: plans, launches, and the functions that plan a
 * graph's nodes together. */
#ifndef CUDA_LAUNCH_H
#define CUDA_LAUNCH_H

#include "cuda.h"

struct heads_job;

/* Where an op is launched. */
struct launcher {
    struct device *device;
    void *stream;       /* it may be recording */
    uint64_t workspace; /* an address, with plan.workspace bytes behind the counters */
    bool in_order;      /* no launch may begin early */
    /* for a graph: all its nodes, and the rotation whose angles are in its workspace, or nothing */
    const struct hw_node *nodes;
    uint32_t node_count;
    struct heads_job *rotated;
};

/* One launch of a tuned kernel.
 *
 * `early`: its groups may start before the preceding kernel in the stream has completed
 * (programmatic dependent launch), if the device can do so. Until such a kernel has executed
 * griddepcontrol.wait, it must not write anything, and may read only its arguments and weights
 * whose buffer is HW_BUFFER_READ_ONLY. Only a copy writes such weights, and the kernel after a copy
 * is never launched early. */
struct launch {
    enum tuned kernel;
    unsigned groups[3], threads, shared; /* threads and bytes of shared memory of a group */
    bool early;
};

/* Set by a row's plan function: the portable kernel, or a function that launches others. */
struct plan {
    struct lowered lowered;
    int32_t (*launch)(const struct launcher *at, const struct plan *plan, const void *op);
    uint64_t workspace;       /* bytes of device memory that its kernels share */
    unsigned threads, shared; /* for the use of `launch` */
    bool rounds;              /* also for `launch`: activations are rounded to 8 bits */
};

/* The most that a tuned kernel may use with SHARED_160K. */
enum { SHARED_MOST = 160 << 10 };

/* Addresses begin .. end - 1. */
struct range {
    uint64_t begin, end;
};

static inline bool are_apart(struct range x, struct range y)
{
    return x.end <= y.begin || y.end <= x.begin;
}

extern const struct kernel_table launch_kernels;

/* The address from which kernels count an operand's offset; 0 if it is absent or has no buffer. */
uint64_t launch_base(const struct hw_tensor *t);
/* The addresses of a tensor; an empty range if it is absent. */
struct range launch_range(const struct hw_tensor *t);
/* The first step of every row's plan function: lowers the op, and resets fields that an earlier row
 * may have set before it refused. */
const char *launch_lower(struct plan *plan, const struct kernel_row *row, const void *args);
/* Plans an op with the queue's rows. */
int32_t launch_plan(struct queue *queue, uint32_t op, const void *args, struct plan *plan);
/* Launches a plan in the device's context. */
int32_t launch_planned(const struct launcher *at, const struct plan *plan,
                       const void *args);
/* Launches a kernel whose only parameter is the struct at `args`. */
int32_t launch_kernel(const struct launcher *at, const struct launch *launch,
                      const void *args);
/* Launches a kernel with the parameters of the planned portable kernel. */
int32_t launch_as_portable(const struct launcher *at, const struct launch *launch,
                           const struct plan *plan);
/* Makes a workspace large enough, in the device's context. Kernels that use the old one may still
 * run on `stream`. */
int32_t launch_reserve(struct device *device, void *stream, struct workspace *workspace,
                       uint64_t bytes);
void launch_release(struct device *device, struct workspace *workspace);
void launch_unload(struct device *device);
/* Loads an image, PTX that ends with a NUL or machine code, in the device's context. `name` is for
 * the message, which also quotes the driver's compiler. */
int32_t launch_load(struct device *device, const void *image, const char *name,
                    void **module);

/* ---- graph.c ------------------------------------------------------------------------------- */

/* Whether an op of the graph, except the first `own` of `nodes`, writes to the range. */
bool graph_writes(const struct launcher *at, const struct hw_node *nodes, uint32_t own,
                  struct range range);

/* ---- kernels/gemv_graph.c, kernels/heads.c - ------------------------------------------------ */

/* Launches the first nodes of a graph as one kernel, if a kernel can compute several of them, and
 * sets `taken` to their number; 0: none. */
typedef int32_t launch_nodes_fn(const struct launcher *at, const struct queue *queue,
                                const struct hw_node *nodes, uint32_t count,
                                uint32_t *taken);
launch_nodes_fn gemv_launch_nodes, heads_launch_nodes;

/* ---- kernels/attention_decode.c ------------------------------------------------------------ */

struct heads_args;

/* Launches the jobs, and the attention over their results, as one kernel if it can compute them;
 * otherwise leaves `taken` 0. */
int32_t decode_launch_step(const struct launcher *at, const struct queue *queue,
                           const struct heads_args *jobs, const struct hw_node *nodes,
                           uint32_t count, uint32_t *taken);

#endif
