/* SPDX-License-Identifier: MIT */
/* From an op to the launch of a kernel; the rows. */
#include "opencl.h"

/* ---- rows ---- */

kernel_plan_fn plan_portable;
const char *plan_portable(struct plan *plan, const struct kernel_row *row, const void *args)
{
    plan->tuned = NULL;
    return lower(row->op, args, &plan->lowered);
}

#define ROW ROW_DECLARE
#include "kernels.def"
#define ROW ROW_ENTRY
static const struct kernel_row rows[] = {
#include "kernels.def"
};

static void describe_needs(uint64_t needs, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s",
             needs & ON_CPU ? "a CPU with 192 KiB of group memory" : "",
             needs & LOCAL_32K ? "32 KiB of group memory" : "",
             needs & RIGHT_MATMUL_ID ? "not PoCL 5, which computes it wrong" : "");
}

const struct kernel_table launch_kernels = { rows, sizeof rows / sizeof rows[0],
                                             describe_needs };

/* ---- launches ---- */

enum { LAUNCHES_PER_FLUSH = 16 };

static int set_arguments(const struct opencl *cl, void *kernel, const struct lowered *l)
{
    int error = 0;
    for (uint32_t i = 0; i < l->pointers && !error; i++)
        error = cl->set_argument(kernel, i, sizeof(void *),
                                 l->operand[i] ? (void *)&l->operand[i]->buffer->impl
                                               : NULL);
    return error ? error : cl->set_argument(kernel, l->pointers, l->args_bytes, &l->args);
}

static int32_t find_kernel(struct queue *queue, const struct plan *plan, void **kernel,
                           size_t *group, int64_t *groups)
{
    struct launch launch;
    *groups = plan->lowered.groups;
    if (!plan->tuned)
        return program_portable(queue, &plan->lowered, kernel, group);
    plan->tuned->choose(queue->device, &plan->lowered, &launch);
    *groups = launch.groups;
    return program_tuned(queue, plan->tuned, &launch, kernel, group);
}

static int32_t launch(struct queue *queue, const struct plan *plan)
{
    const struct opencl *cl = queue->device->cl;
    int64_t groups;
    size_t group;
    void *kernel;
    const int32_t status = find_kernel(queue, plan, &kernel, &group, &groups);
    if (status)
        return status;
    const size_t items = (size_t)groups * group;
    int error = set_arguments(cl, kernel, &plan->lowered);
    if (!error)
        error = cl->launch(queue->handle, kernel, 1, NULL, &items, &group, 0, NULL, NULL);
    if (!error && ++queue->unflushed == LAUNCHES_PER_FLUSH) {
        queue->unflushed = 0;
        error = cl->flush(queue->handle);
    }
    return answer(queue->device, error, "launch a kernel");
}

static int32_t submit(struct queue *queue, uint32_t op, const void *args)
{
    struct plan plan;
    const int32_t status = check_lost(queue->device);
    if (status)
        return status;
    const char *why = kernel_plan(&queue->choice, op, args, &plan);
    if (why)
        return hw_fail(queue->device->host, HW_UNSUPPORTED, "%s", why);
    return plan.lowered.groups ? launch(queue, &plan) : HW_OK;
}

KERNEL_QUERIES
KERNEL_OPS
