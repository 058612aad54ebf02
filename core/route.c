/* SPDX-License-Identifier: MIT */
/* route.c - the cold path of a call: operands that the plugin can not take as they are.
 *
 * Views whose innermost extent is not contiguous are copied to scratch by the plugin's own
 * copy op; host tensors go to the device and back where it can not read them in place. All
 * of it is queued in the queue's order, and counted. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

/* A call whose operands are being replaced. */
struct call {
    struct hw_queue *queue;
    uint32_t op;
    union any_op args;                    /* with the replacements */
    struct buffer *scratch[MAX_OPERANDS]; /* NULL: the operand is the caller's */
};

/* ---- host tensors ---- */

#define GATHER_BYTES                                                                       \
    (UINT64_C(1) << 20) /* smaller tensors are gathered in pinned memory first */
#define DIRECT_RUNS 16  /* tensors in more pieces as well */

/* Memory that the queue has yet to write can not be read or written by the host before. */
static enum hw_status settle_debts(struct hw_queue *queue, const struct hw_tensor *host)
{
    const uint64_t begin = (uint64_t)(uintptr_t)hw_tensor_address(host);
    const uint64_t end = begin + hw_tensor_bytes(host);
    for (const struct owed *owed = queue->owed; owed; owed = owed->next)
        if (begin < owed->end && owed->begin < end)
            return queue_settle(queue);
    return HW_OK;
}

/* The same elements, contiguous, in host memory. */
static struct hw_tensor in_host_memory(const struct hw_tensor *of, void *memory)
{
    struct hw_tensor t = *of;
    uint64_t bytes;
    make_dense(&t, of, &bytes); /* fits: its bytes have been allocated */
    t.buffer = NULL;
    t.data = memory;
    t.offset = 0;
    return t;
}

static uint64_t dense_bytes(const struct hw_tensor *of)
{
    struct hw_tensor t = *of;
    uint64_t bytes;
    return make_dense(&t, of, &bytes) ? bytes : UINT64_MAX;
}

enum hw_status stage_in(struct hw_queue *queue, uint32_t op, const struct hw_tensor *to,
                        const struct hw_tensor *host)
{
    const uint64_t bytes = dense_bytes(to);
    enum hw_status status = settle_debts(queue, host);
    if (status)
        return status;
    count(&queue->calls[op].staged_bytes, bytes);
    if (bytes > GATHER_BYTES && run_count(to, host) <= DIRECT_RUNS)
        return queue_move(queue, to, host);
    void *memory = scratch_host(queue, bytes);
    if (!memory)
        return HW_NO_MEMORY;
    const struct hw_tensor gathered = in_host_memory(to, memory);
    host_move(&gathered, host);
    return queue_move(queue, to, &gathered);
}

enum hw_status stage_out(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                         const struct hw_tensor *from)
{
    const uint64_t bytes = dense_bytes(host);
    const bool direct = run_count(host, from) <= DIRECT_RUNS;
    enum hw_status status = settle_debts(queue, host);
    if (status)
        return status;
    struct owed *owed = calloc(1, sizeof *owed);
    void *memory = direct || !owed ? NULL : scratch_host(queue, bytes);
    if (!owed || (!direct && !memory)) {
        free(owed);
        return fail(HW_NO_MEMORY, "out of memory for a tensor on its way to the host");
    }
    const struct hw_tensor scattered = direct ? *host : in_host_memory(host, memory);
    if ((status = queue_move(queue, &scattered, from))) {
        free(owed);
        return status;
    }
    owed->begin = (uint64_t)(uintptr_t)hw_tensor_address(host);
    owed->end = owed->begin + hw_tensor_bytes(host);
    owed->to = *host;
    owed->from = memory;
    owed->next = queue->owed;
    queue->owed = owed;
    count(&queue->calls[op].staged_bytes, bytes);
    return HW_OK;
}

/* ---- views ---- */

/* Axes that repeat, once. */
static struct hw_tensor once(const struct hw_tensor *t, const struct hw_tensor *dense)
{
    struct hw_tensor u = *t;
    for (int i = 0; i < u.rank - 1; i++)
        if (dense->stride[i] == 0 && u.extent[i] > 1)
            u.extent[i] = 1;
    return u;
}

/* Asked before the op runs: an output that can not be put back must not be computed. */
static enum hw_status can_copy(const struct call *call, const struct hw_tensor *dst,
                               const struct hw_tensor *src)
{
    const struct hw_device *device = call->queue->device;
    const struct hw_copy copy = { .src = *src, .dst = *dst };
    uint64_t scratch = 0;
    char why[FAULT_SIZE] = "";
    if (plugin_has(device->plugin, HW_OP_COPY) &&
        device->plugin->table.supports(device->impl, HW_OP_COPY, &copy, why, sizeof why,
                                       &scratch) == HW_OK)
        return HW_OK;
    why[sizeof why - 1] = '\0';
    return fail(HW_UNSUPPORTED, "the output is a view, and %s can not copy it: %s",
                device->name, why);
}

static enum hw_status copy_view(struct call *call, const struct hw_tensor *dst,
                                const struct hw_tensor *src, const struct hw_tensor *dense)
{
    struct hw_queue *queue = call->queue;
    const struct hw_copy copy = { .src = once(src, dense), .dst = once(dst, dense) };
    plugin_asked();
    int32_t status = queue->ops.copy(queue->device_impl, queue->impl, &copy);
    if (status)
        return fail_in(answered(queue->device, status),
                       "%s: making a view contiguous on %s: ", hw_op_name(call->op),
                       queue->device->name);
    count(&queue->calls[call->op].copied_views, 1);
    return HW_OK;
}

/* ---- operands ---- */

static bool innermost_apart(const struct hw_tensor *t)
{
    return !t->layout && t->extent[t->rank - 1] > 1 &&
           t->stride[t->rank - 1] != hw_dtype_bytes(t->dtype);
}

static bool must_stage(const struct call *call, const struct hw_tensor *t)
{
    return !t->buffer && !call->queue->host_tensors;
}

static bool must_replace(const struct call *call, const struct hw_tensor *t)
{
    if (t->dtype == HW_NONE || tensor_empty(t))
        return false;
    return must_stage(call, t) || (call->op != HW_OP_COPY && innermost_apart(t));
}

/* The operand's stand-in in scratch, with its contents if the op reads them. */
static enum hw_status replace(struct call *call, uint32_t index, const struct hw_tensor *t)
{
    const struct operand *operand = &op_rows[call->op].operands[index];
    struct hw_tensor dense = *t;
    uint64_t bytes;
    if (!make_dense(&dense, t, &bytes))
        return fail(HW_NO_MEMORY, "%s: %s: more than 2^63 bytes", hw_op_name(call->op),
                    operand->name);
    enum hw_status status = scratch_take(call->queue, bytes, 0, &call->scratch[index]);
    if (status)
        return status;
    dense.buffer = &call->scratch[index]->base;
    dense.data = NULL;
    dense.offset = 0;
    *operand_in(&call->args, operand) = dense;
    const bool stage = must_stage(call, t);
    if (role_writes(operand->role) && !stage && (status = can_copy(call, t, &dense)))
        return status;
    if (!role_reads(operand->role))
        return HW_OK;
    return stage ? stage_in(call->queue, call->op, &dense, t)
                 : copy_view(call, &dense, t, &dense);
}

static enum hw_status replace_all(struct call *call, const void *args)
{
    const struct op_row *row = &op_rows[call->op];
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct hw_tensor *t = operand_at(args, &row->operands[i]);
        enum hw_status status = must_replace(call, t) ? replace(call, i, t) : HW_OK;
        if (status)
            return status;
    }
    return HW_OK;
}

static enum hw_status write_back(struct call *call, const void *args)
{
    const struct op_row *row = &op_rows[call->op];
    for (uint32_t i = 0; i < row->operand_count; i++) {
        if (!call->scratch[i] || !role_writes(row->operands[i].role))
            continue;
        const struct hw_tensor *t = operand_at(args, &row->operands[i]);
        const struct hw_tensor *dense = operand_at(&call->args, &row->operands[i]);
        enum hw_status status = must_stage(call, t)
                                    ? stage_out(call->queue, call->op, t, dense)
                                    : copy_view(call, t, dense, dense);
        if (status)
            return status;
    }
    return HW_OK;
}

/* A transposed view of a matrix is what a flag of matmul says, too: nothing to copy then.
 */
static void say_transposed(struct hw_tensor *t, uint32_t *flag)
{
    const int inner = t->rank - 1;
    if (!innermost_apart(t) || t->stride[inner - 1] != hw_dtype_bytes(t->dtype))
        return;
    const int64_t extent = t->extent[inner], stride = t->stride[inner];
    t->extent[inner] = t->extent[inner - 1];
    t->stride[inner] = t->stride[inner - 1];
    t->extent[inner - 1] = extent;
    t->stride[inner - 1] = stride;
    *flag ^= 1;
}

/* ---- the whole ---- */

static void give_scratch(struct call *call)
{
    for (uint32_t i = 0; i < MAX_OPERANDS; i++) {
        scratch_give(call->queue, call->scratch[i]);
        call->scratch[i] = NULL;
    }
}

/* `whole`: the op with the caller's operands; `args`: with those that the plugin gets. */
static enum hw_status call_routed(struct call *call, const void *whole)
{
    struct hw_queue *queue = call->queue;
    enum hw_status status = replace_all(call, whole);
    if (status == HW_UNSUPPORTED) {
        give_scratch(call);
        return fall_back(queue, call->op, whole, status);
    }
    if (status)
        return status;
    plugin_asked();
    int32_t answer = op_rows[call->op].call(queue, &call->args);
    if (answer) {
        give_scratch(call);
        return submit_failed(queue, call->op, whole, answer);
    }
    count(&queue->calls[call->op].calls, 1);
    return write_back(call, whole);
}

enum hw_status route(struct hw_queue *queue, uint32_t op, const void *args, uint32_t odd)
{
    struct call call = { .queue = queue, .op = op };
    union any_op whole;
    enum hw_status status;
    if (queue->recording)
        return graph_add(queue, op, args, odd);
    if (odd & ODD_EMPTY) {
        count(&queue->calls[op].calls, 1);
        return HW_OK;
    }
    memcpy(&whole, args, op_rows[op].size);
    if (op == HW_OP_MATMUL) {
        say_transposed(&whole.matmul.a, &whole.matmul.transpose_a);
        say_transposed(&whole.matmul.b, &whole.matmul.transpose_b);
    }
    if (args_known(queue->device->plugin, op, &whole)) {
        /* The flags may be newer than the plugin. */
        memcpy(&whole, args, op_rows[op].size);
        if ((status = args_known(queue->device->plugin, op, args)))
            return fall_back(queue, op, args, status);
    }
    memcpy(&call.args, &whole, op_rows[op].size);
    status = call_routed(&call, &whole);
    give_scratch(&call);
    if (!status && queue->flags & HW_QUEUE_SYNCHRONOUS &&
        (queue->owed || queue->busy_bytes))
        status = queue_settle(queue);
    return status;
}
