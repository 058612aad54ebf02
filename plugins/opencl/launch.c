/* SPDX-License-Identifier: MIT */
/* From an op to the launch of a kernel; the rows. */
#include "opencl.h"

/* ---- rows ---- */

kernel_plan_fn plan_portable;
const char *plan_portable(struct plan *plan, const struct kernel_row *row, const void *args)
{
    return launch_lower(plan, row, args);
}

#define ROW ROW_DECLARE
#include "kernels.def"
#define ROW ROW_ENTRY
static const struct kernel_row rows[] = {
#include "kernels.def"
};

static void describe_needs(uint64_t needs, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s%s%s",
             needs & ON_CPU ? "a CPU with 192 KiB of group memory" : "",
             needs & LOCAL_32K ? "32 KiB of group memory" : "",
             needs & DOTS ? ", dot products of bytes" : "",
             needs & ALLOW_INT8 ? ", HW_PRECISION=int8" : "",
             needs & RIGHT_MATMUL_ID ? "not PoCL 5, which computes it wrong" : "");
}

const struct kernel_table launch_kernels = { rows, sizeof rows / sizeof rows[0],
                                             describe_needs };

/* ---- launches ---- */

enum { LAUNCHES_PER_FLUSH = 16 };

int launch_flush(struct queue *queue, uint32_t count)
{
    queue->unflushed += count;
    if (queue->unflushed < LAUNCHES_PER_FLUSH)
        return 0;
    queue->unflushed = 0;
    return queue->device->cl->flush(queue->handle);
}

static int set_arguments(const struct opencl *cl, void *kernel, const struct lowered *l)
{
    int error = 0;
    for (uint32_t i = 0; i < l->pointers && !error; i++)
        error = cl->set_argument(kernel, i, sizeof(void *),
                                 l->operand[i] ? (void *)&l->operand[i]->buffer->impl
                                               : NULL);
    return error ? error : cl->set_argument(kernel, l->pointers, l->args_bytes, &l->args);
}

static int32_t find_kernel(struct queue *queue, const struct lowered *l,
                           const struct tuned *tuned, enum sharing sharing,
                           struct ready *ready)
{
    struct launch launch;
    int32_t status;
    if (!tuned) {
        status = program_portable(queue, l, sharing, &ready->kernel, &ready->group);
        ready->items = (size_t)l->groups * ready->group;
        return status;
    }
    tuned->choose(queue->device, l, &launch);
    ready->group = launch.group;
    ready->items = (size_t)launch.groups * launch.group;
    return program_tuned(queue, tuned, &launch, sharing, &ready->kernel);
}

static int32_t prepare(struct queue *queue, const struct plan *plan,
                       const struct tuned *tuned, enum sharing sharing,
                       struct stages *stages)
{
    struct device *device = queue->device;
    struct ready *ready = &stages->stage[stages->count];
    *ready = (struct ready){ .workspace = plan->workspace ? plan->lowered.pointers + 1
                                                          : 0 };
    int32_t status = find_kernel(queue, &plan->lowered, tuned, sharing, ready);
    if (status)
        return status;
    stages->count++;
    return answer(device, set_arguments(device->cl, ready->kernel, &plan->lowered),
                  "set the arguments of a kernel");
}

int32_t launch_prepare(struct queue *queue, const struct plan *plan, enum sharing sharing,
                       struct stages *stages)
{
    struct device *device = queue->device;
    int32_t status = HW_OK;
    stages->count = 0;
    if (!plan->lowered.groups)
        return HW_OK;
    status = prepare(queue, plan, plan->tuned, sharing, stages);
    if (!status && plan->second)
        status = prepare(queue, plan, plan->second, sharing, stages);
    for (uint32_t i = 0; status && sharing == OWN_KERNEL && i < stages->count; i++)
        note(device, device->cl->release_kernel(stages->stage[i].kernel),
             "release a kernel");
    return status;
}

int launch_bind(struct queue *queue, const struct ready *ready)
{
    return ready->workspace
               ? queue->device->cl->set_argument(ready->kernel, ready->workspace,
                                                 sizeof queue->workspace.memory,
                                                 &queue->workspace.memory)
               : 0;
}

int launch_ready(struct queue *queue, const struct ready *ready)
{
    return queue->device->cl->launch(queue->handle, ready->kernel, 1, NULL, &ready->items,
                                     &ready->group, 0, NULL, NULL);
}

/* ---- workspaces ---- */

/* Submitted work keeps the memory alive until it is complete. */
void launch_release(struct queue *queue)
{
    struct device *device = queue->device;
    if (!queue->workspace.bytes)
        return;
    note(device, device->cl->release_buffer(queue->workspace.memory),
         "release memory for kernels");
    hw_count_memory(device->host, device, -(int64_t)queue->workspace.bytes);
    queue->workspace.bytes = 0;
}

int32_t launch_reserve(struct queue *queue, uint64_t bytes)
{
    struct device *device = queue->device;
    char what[160] = "";
    int error = 0;
    if (bytes <= queue->workspace.bytes)
        return HW_OK;
    launch_release(queue);
    int32_t status = hw_count_memory(device->host, device, (int64_t)bytes);
    if (status)
        return status;
    void *memory = device->cl->create_buffer(device->context, MEMORY_READ_WRITE, bytes,
                                             NULL, &error);
    if (error)
        memory_describe(device, bytes, "for kernels ", what, sizeof what);
    status = answer(device, error, what);
    if (status)
        hw_count_memory(device->host, device, -(int64_t)bytes);
    else
        queue->workspace = (struct workspace){ memory, bytes, ++device->workspaces };
    return status;
}

/* ---- ops ---- */

int32_t launch_plan(struct queue *queue, uint32_t op, const void *args, struct plan *plan)
{
    const char *why = kernel_plan(&queue->choice, op, args, plan);
    return why ? hw_fail(queue->device->host, HW_UNSUPPORTED, "%s", why) : HW_OK;
}

static int32_t submit(struct queue *queue, uint32_t op, const void *args)
{
    struct plan plan;
    struct stages stages;
    int error = 0;
    int32_t status = check_lost(queue->device);
    if (!status)
        status = launch_plan(queue, op, args, &plan);
    if (!status)
        status = launch_reserve(queue, plan.workspace);
    if (!status)
        status = launch_prepare(queue, &plan, SHARED_KERNEL, &stages);
    if (status)
        return status;
    for (uint32_t i = 0; i < stages.count && !error; i++) {
        error = launch_bind(queue, &stages.stage[i]);
        if (!error)
            error = launch_ready(queue, &stages.stage[i]);
    }
    if (!error)
        error = launch_flush(queue, stages.count);
    return answer(queue->device, error, "launch a kernel");
}

KERNEL_QUERIES_WITH(plan.workspace)
KERNEL_OPS
