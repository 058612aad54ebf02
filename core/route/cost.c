/* SPDX-License-Identifier: MIT */
/* cost.c - the CPU plugin computes a call whose operands are all in host memory that the queue's
 * device cannot read, if that is expected to be faster than copying the operands to the device and
 * back. This applies only to queues of a device that the library itself chose. Such calls are
 * counted, and hw_explain() shows them.
 *
 * The estimate counts the bytes that a call moves and the multiplications that it needs. The rates
 * are the same on every machine, so that the same program routes the same calls everywhere.
 * docs/routing.md has the rules and the formula. */
#include "route/cost.h"

#include "base/argument.h"
#include "base/message.h"
#include "call/args.h"
#include "call/check.h"
#include "call/queue.h"
#include "memory/device.h"
#include "memory/transfer.h"
#include "route/fallback.h"
#include "route/stage.h"
#include "route/support.h"

#include <string.h>

/* They favour the device over the CPU: only a call that takes a few microseconds leaves it. */
static const double device_launch = 20e-6; /* two transfers, a kernel and the wait */
static const double link_bytes = 25e9;     /* per second: PCIe 4.0 x16 */
static const double cpu_launch = 5e-6;  /* waiting for the device's queue, waking threads */
static const double cpu_bytes = 4e9;    /* per second, by one core */
static const double cpu_products = 1e9; /* multiplications per second, by one core */

static double element_count(const struct hw_tensor *t)
{
    double count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= (double)t->extent[i];
    return count;
}

static double bytes_of(const struct hw_tensor *t)
{
    return t->dtype != HW_NONE ? (double)dense_bytes(t) : 0;
}

/* ---- multiplications ---- */

/* a [..,M,K] times b [..,K,N]: M N K for each matrix of c. */
static double products_of_matmul(const struct hw_matmul *op)
{
    const struct hw_tensor *a = &op->a;
    return element_count(&op->c) * (double)a->extent[a->rank - (op->transpose_a ? 2 : 1)];
}

static double products_of_matmul_id(const struct hw_matmul_id *op)
{
    return element_count(&op->ids) * (double)op->b.extent[1] * (double)op->b.extent[2];
}

/* The products of each query and each key in use, and of each weight and a value. k is
 * [..,Tmax,Hkv,D]. */
static double products_of_attention(const struct hw_attention *op)
{
    const struct hw_tensor *q = &op->q, *k = &op->k, *v = &op->v;
    const double d = (double)q->extent[q->rank - 1], dv = (double)v->extent[v->rank - 1];
    const double all = (double)k->extent[k->rank - 3], length = (double)op->length;
    const double keys = length > 0 && length < all ? length : all;
    return element_count(q) / (d > 0 ? d : 1) * keys * (d + dv);
}

static double products_of_conv2d(const struct hw_conv2d *op)
{
    const double outputs = (double)op->weight.extent[0];
    return outputs > 0 ? element_count(&op->y) * (element_count(&op->weight) / outputs) : 0;
}

/* ---- seconds ---- */

/* `bytes`: of all operands. There is no default, so that the compiler finds a forgotten op. */
static double cpu_seconds(uint32_t op, const void *args, double bytes)
{
    switch ((enum hw_op)op) {
    case HW_OP_MATMUL:
        return products_of_matmul(args) / cpu_products;
    case HW_OP_MATMUL_ID:
        return products_of_matmul_id(args) / cpu_products;
    case HW_OP_ATTENTION:
        return products_of_attention(args) / cpu_products;
    case HW_OP_CONV2D:
        return products_of_conv2d(args) / cpu_products;
    case HW_OP_GET_ROWS: /* touches only some rows of the table */
        return 2 * bytes_of(&((const struct hw_get_rows *)args)->y) / cpu_bytes;
    case HW_OP_SET_ROWS:
        return 2 * bytes_of(&((const struct hw_set_rows *)args)->x) / cpu_bytes;
    case HW_OP_RMSNORM:
    case HW_OP_SOFTMAX:
    case HW_OP_SILU:
    case HW_OP_ROPE:
    case HW_OP_ADD:
    case HW_OP_MUL:
    case HW_OP_SWIGLU:
    case HW_OP_ADD_RMSNORM:
    case HW_OP_COPY:
    case HW_OP_ARGMAX:
    case HW_OP_LAYERNORM:
    case HW_OP_SUB:
    case HW_OP_DIV:
    case HW_OP_SCALE:
    case HW_OP_TOP_K:
    case HW_OP_DOT:
    case HW_OP_ACTIVATION:
    case HW_OP_GLU:
    case HW_OP_COUNT:
        break;
    }
    return bytes / cpu_bytes;
}

struct hw_route_info cost_of(uint32_t op, const void *args)
{
    const struct op_row *row = &op_rows[op];
    double moved = 0, touched = 0;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct operand_row *operand = &row->operands[i];
        const double bytes = bytes_of(operand_at(args, operand));
        touched += bytes;
        moved += bytes * (role_reads(operand->role) + role_writes(operand->role));
    }
    return (struct hw_route_info){ .moved = moved,
                                   .own = device_launch + moved / link_bytes,
                                   .cpu = cpu_launch + cpu_seconds(op, args, touched) };
}

/* ---- which queues ---- */

static const char *pinned_by(const struct hw_queue *queue, bool imported)
{
    const struct hw_device *device = queue->device;
    const struct hw_context *context = device->context;
    const uint32_t chosen = atomic_load(&device->chosen);
    if (context->settings.fallback == FALLBACK_ERROR)
        return "HW_FALLBACK=error allows no other device";
    if (queue->host_tensors)
        return "the device reads host memory itself";
    if (imported)
        return "the application made the queue itself (hw_queue_import)";
    if (chosen & CHOSEN_BY_NAME)
        return "the device is named: by HW_BACKENDS, HW_REQUIRE or the application";
    if (!(chosen & CHOSEN_BY_DEFAULT))
        return "the application chose the device: it is not from hw_device_default()";
    if (!context->reference)
        return "the CPU plugin of this build is not selected";
    const struct catalog *found = catalog_of(context);
    if (device_position(found, context->reference) < device_position(found, device))
        return "the CPU plugin is not behind the device in HW_BACKENDS";
    return NULL;
}

void cost_route_begin(struct hw_queue *queue, bool imported)
{
    queue->pinned_why = pinned_by(queue, imported);
}

/* ---- whether the queue has work outstanding ---- */

static uint64_t calls_submitted(const struct hw_queue *queue)
{
    uint64_t calls = 0;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        calls += atomic_load_explicit(&queue->calls[op].calls, memory_order_relaxed);
    return calls;
}

void cost_route_settled(struct hw_queue *queue)
{
    queue->idle_at = calls_submitted(queue);
}

static bool is_busy(const struct hw_queue *queue)
{
    return queue->pending || queue->busy || calls_submitted(queue) != queue->idle_at;
}

/* Whether the call reads or overwrites host memory that the queue still has to write. Staging would
 * have to wait for the queue as well. */
static bool must_wait(const struct hw_queue *queue, uint32_t op, const void *args)
{
    bool must = false;
    for (uint32_t i = 0; i < op_rows[op].operand_count && !must; i++) {
        const struct hw_tensor *t = operand_at(args, &op_rows[op].operands[i]);
        must = t->dtype != HW_NONE && pending_overlaps(queue, t);
    }
    return must;
}

/* ---- which calls ---- */

static bool all_in_host_memory(uint32_t op, const void *args)
{
    bool all = true;
    for (uint32_t i = 0; i < op_rows[op].operand_count && all; i++)
        all = !operand_at(args, &op_rows[op].operands[i])->buffer;
    return all;
}

/* Why the queue's device computes the call; NULL: the CPU does. Opens the CPU's device if nothing
 * else speaks against it. */
static const char *own_why(const struct hw_queue *queue, uint32_t op, const void *args)
{
    struct hw_device *cpu = queue->device->context->reference;
    union any_op as;
    if (!all_in_host_memory(op, args))
        return "an operand is in a buffer, and buffers stay where they are";
    if (queue->recording || queue->in_graph)
        return "graphs are computed by the device that they are recorded for";
    const struct hw_route_info cost = cost_of(op, args);
    if (!cost_favours_cpu(&cost))
        return "the estimates do not show that the CPU is twice as fast";
    if (is_busy(queue) && !must_wait(queue, op, args))
        return "the queue has work outstanding, for which the call does not wait";
    if (device_wake(cpu) || device_computes(cpu, op, args, &as))
        return "the CPU plugin does not compute it";
    return NULL;
}

/* ---- a call ---- */

/* Computes the call on the CPU. */
static enum hw_status compute_on_cpu(struct hw_queue *queue, struct hw_queue *helper,
                                     uint32_t op, const void *args)
{
    struct call_counts *counts = &queue->calls[op];
    enum hw_status status = hw_submit(helper, op, args, op_rows[op].size);
    if (status) {
        queue_drain(helper);
        return status;
    }
    if ((status = queue_settle(helper)))
        return status;
    count(&counts->calls, 1);
    count(&counts->routed, 1);
    queue->idle_at++;
    return HW_OK;
}

bool cost_route(struct hw_queue *queue, uint32_t op, const void *args,
                enum hw_status *status)
{
    struct hw_device *cpu = queue->device->context->reference;
    struct hw_queue *helper;
    if (queue->pinned_why || own_why(queue, op, args) || queue_helper(queue, cpu, &helper))
        return false;
    /* Earlier work may use the operands in ways that are not counted. */
    if ((*status = queue_settle(queue)))
        return true;
    *status = compute_on_cpu(queue, helper, op, args);
    if (!*status || *status == HW_INVALID)
        return true;
    /* Nothing was written, or no input was: the queue's device may compute the call. */
    if (*status == HW_UNSUPPORTED || may_retry(op, args))
        return false;
    fail_in(*status, "%s on %s, which is expected to be faster than %s: ", hw_op_name(op),
            cpu->name, queue->device->name);
    return true;
}

/* ---- for applications ---- */

/* Sets the device that computes the call, and the reason. */
static void route_decide(struct hw_queue *queue, uint32_t op, const void *args,
                         struct hw_route_info *info)
{
    union any_op as;
    info->device = queue->device;
    if (device_computes(queue->device, op, args, &as)) {
        info->device = fallback_device(queue, op, args);
        info->why = "the queue's device does not compute it, so it falls back";
    } else if (queue->pinned_why) {
        info->why = queue->pinned_why;
    } else if (!(info->why = own_why(queue, op, args))) {
        info->device = queue->device->context->reference;
        info->why = "the CPU is expected to be faster than moving the operands";
    }
}

enum hw_status hw_queue_route(struct hw_queue *queue, uint32_t op, const void *args,
                              size_t size, struct hw_route_info *info)
{
    union any_op copy;
    enum hw_status status = queue_ready(queue, "hw_queue_route");
    if (status)
        return status;
    REQUIRE(info);
    if ((status = check_size(__func__, "info", info, 2 * sizeof(uint32_t))) ||
        (status = args_resize(op, &args, size, &copy)))
        return status;
    struct check check = { .device = queue->device, .op = op };
    if ((status = check_call(args, &check)))
        return status;
    struct hw_route_info now = cost_of(op, args);
    route_decide(queue, op, args, &now);
    return answer_struct(info, &now, sizeof now);
}
