/* SPDX-License-Identifier: MIT */
/* call.c - ops and queries about ops. An op is sent as its struct, followed by views of its
 * buffers; in the struct, the number of a view replaces the pointer to a buffer. The lists of ops.h
 * make this one code for all ops.
 *
 * The library waits for the first call of a form (dtypes, shapes, strides, scalars) on a queue,
 * because its status decides about a fallback. Once the plugin has accepted the form, the library
 * does not wait: an error of a later call comes from remote_queue_wait(). */
#include "worker/remote.h"

#include "base/likely.h"
#include "operands.h"

#include <string.h>

/* ---- the form of a call ---- */

struct scalar {
    uint32_t offset;
    enum hw_field_type type;
};

#define S(op, field, type, zero) { offsetof(struct hw_##op, field), HW_FIELD_##type },
#define X(NAME, name)                                                                      \
    static const struct scalar scalars_##name[] = { HW_SCALARS_##NAME(S){                  \
        0, HW_FIELD_TENSOR } };
HW_OPS(X)
#undef X
#undef S

/* Each list ends with a row of type tensor. */
static const struct scalar *const scalars[HW_OP_COUNT] = {
#define X(NAME, name) scalars_##name,
    HW_OPS(X)
#undef X
};

static inline uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t mix_tensor(uint64_t hash, const struct hw_tensor *t)
{
    if (t->dtype == HW_NONE)
        return mix(hash, 0);
    hash = mix(hash, (uint64_t)(uint32_t)t->dtype << 32 | (uint32_t)t->rank);
    hash = mix(hash, (uint64_t)t->layout << 32 | (t->offset & 255));
    for (int i = 0; i < HW_MAX_RANK; i++)
        hash = mix(mix(hash, (uint64_t)t->extent[i]), (uint64_t)t->stride[i]);
    return hash;
}

/* A 64-bit scalar counts tokens and differs from call to call: only zero or not zero matters. */
static uint64_t mix_scalar(uint64_t hash, const void *args, const struct scalar *scalar)
{
    const char *at = (const char *)args + scalar->offset;
    int64_t long_number;
    uint32_t number;
    if (scalar->type == HW_FIELD_I64) {
        memcpy(&long_number, at, sizeof long_number);
        return mix(hash, long_number ? 2 : 1);
    }
    memcpy(&number, at, sizeof number);
    return mix(hash, number);
}

/* A hash of the form of a call; never 0. */
static uint64_t form_of(uint32_t op, const void *args)
{
    const struct op_operands *row = &op_operands[op];
    uint64_t hash = op + 1;
    for (uint32_t i = 0; i < row->count; i++)
        hash = mix_tensor(hash, operand_at(args, &row->operand[i]));
    for (const struct scalar *s = scalars[op]; s->type != HW_FIELD_TENSOR; s++)
        hash = mix_scalar(hash, args, s);
    return hash ? hash : 1;
}

/* ---- an op as bytes ---- */

/* Whether a view is sent for the operand. The other fields of an absent operand have no meaning. */
static bool is_viewed(const struct hw_tensor *t)
{
    return t->dtype != HW_NONE && t->buffer;
}

static uint32_t count_views(uint32_t op, const void *args)
{
    const struct op_operands *row = &op_operands[op];
    uint32_t count = 0;
    for (uint32_t i = 0; i < row->count; i++)
        count += is_viewed(operand_at(args, &row->operand[i]));
    return count;
}

/* Replaces pointers to buffers with numbers of views: addresses mean nothing in the worker. */
static void write_op(void *to, const struct wire_op *head, const void *args)
{
    const struct op_operands *row = &op_operands[head->op];
    unsigned char *copy = (unsigned char *)to + sizeof *head;
    unsigned char *view_at = copy + head->bytes;
    uint64_t number = 0;
    memcpy(to, head, sizeof *head);
    memcpy(copy, args, head->bytes);
    for (uint32_t i = 0; i < row->count; i++) {
        const struct hw_tensor *from = operand_at(args, &row->operand[i]);
        struct hw_tensor tensor = *from;
        const bool viewed = head->views && is_viewed(from);
        tensor.data = NULL;
        tensor.buffer = (struct hw_buffer *)(uintptr_t)(viewed ? ++number : 0);
        memcpy(copy + row->operand[i].offset, &tensor, offsetof(struct hw_tensor, offset));
        if (!viewed)
            continue;
        const struct wire_view view = remote_view(from->buffer);
        memcpy(view_at, &view, sizeof view);
        view_at += sizeof view;
    }
}

static uint32_t op_size(const struct wire_op *head)
{
    return (uint32_t)sizeof *head + head->bytes +
           head->views * (uint32_t)sizeof(struct wire_view);
}

/* ---- ops ---- */

void *remote_begin_op(struct remote_queue *queue, enum wire_call call, uint32_t op,
                      const void *args, int32_t *status)
{
    const struct wire_op head = { .op = op,
                                  .bytes = queue->worker->op_bytes[op],
                                  .device = queue->device->index,
                                  .views = count_views(op, args) };
    void *to = remote_begin(queue, call, op_size(&head), status);
    if (likely(to))
        write_op(to, &head, args);
    return to;
}

static int32_t submit(struct remote_queue *queue, uint32_t op, const void *args)
{
    const uint64_t form = form_of(op, args);
    uint64_t *known = &queue->forms[form % REMOTE_FORMS];
    int32_t status;
    if (unlikely(!remote_begin_op(queue, WIRE_OP, op, args, &status)))
        return status;
    if (likely(*known == form)) {
        remote_push(queue);
        return HW_OK;
    }
    status = remote_answer(queue, NULL, 0);
    if (!status)
        *known = form;
    return status;
}

#define X(NAME, name)                                                                      \
    static int32_t op_##name(void *device, void *queue, const struct hw_##name *op)        \
    {                                                                                      \
        (void)device;                                                                      \
        return submit(queue, HW_OP_##NAME, op);                                            \
    }
HW_OPS(X)
#undef X

void remote_fill_ops(struct hw_plugin_ops *ops, uint64_t which)
{
#define X(NAME, name) ops->name = which >> HW_OP_##NAME & 1 ? op_##name : NULL;
    HW_OPS(X)
#undef X
}

/* ---- queries ---- */

int32_t remote_supports(void *of, uint32_t op, const void *args, char *why, size_t why_size,
                        uint64_t *scratch)
{
    const struct remote_device *device = of;
    const struct wire_op head = { .op = op,
                                  .bytes = device->worker->op_bytes[op],
                                  .device = device->index };
    struct wire_support support = { 0 };
    unsigned char bytes[sizeof head + WIRE_STRUCT];
    write_op(bytes, &head, args);
    const int32_t status = worker_ask(device->worker,
                                      &(struct question){ .channel = WIRE_CONTROL,
                                                          .call = WIRE_SUPPORTS,
                                                          .arguments = bytes,
                                                          .bytes = op_size(&head),
                                                          .data = &support,
                                                          .data_bytes = sizeof support });
    if (status && why_size) {
        strncpy(why, worker_message(), why_size - 1);
        why[why_size - 1] = '\0';
    }
    if (scratch)
        *scratch = support.scratch;
    return status;
}

int32_t remote_kernel_info(void *of, uint32_t op, uint32_t index,
                           struct hw_kernel_info *info)
{
    const struct remote_device *device = of;
    const struct wire_row arguments = { .device = device->index, .op = op, .index = index };
    struct hw_kernel_info row;
    const int32_t status = worker_ask(device->worker,
                                      &(struct question){ .channel = WIRE_CONTROL,
                                                          .call = WIRE_KERNEL_INFO,
                                                          .arguments = &arguments,
                                                          .bytes = sizeof arguments,
                                                          .data = &row,
                                                          .data_bytes = sizeof row });
    row.size = sizeof row;
    if (!status)
        hw_answer(info, &row);
    return status;
}

/* ---- packed weights ---- */

/* Returns 0 for a tensor that is not in a buffer: the worker cannot access other host memory. */
static uint64_t put_tensor(struct wire_pack *pack, struct hw_tensor *to,
                           const struct hw_tensor *from)
{
    *to = *from;
    to->data = NULL;
    to->buffer = NULL;
    if (!from->buffer)
        return 0;
    pack->view[pack->views++] = remote_view(from->buffer);
    to->buffer = (struct hw_buffer *)(uintptr_t)pack->views;
    return pack->views;
}

int32_t remote_pack_size(void *of, const struct hw_tensor *src, uint64_t *bytes,
                         uint32_t *layout)
{
    const struct remote_device *device = of;
    struct wire_pack arguments = { .device = device->index };
    struct wire_packed packed;
    arguments.src = *src;
    arguments.src.data = NULL;
    arguments.src.buffer = NULL;
    const int32_t status = worker_ask(device->worker,
                                      &(struct question){ .channel = WIRE_CONTROL,
                                                          .call = WIRE_PACK_SIZE,
                                                          .arguments = &arguments,
                                                          .bytes = sizeof arguments,
                                                          .data = &packed,
                                                          .data_bytes = sizeof packed });
    if (status)
        return status;
    *bytes = packed.bytes;
    *layout = packed.layout;
    return HW_OK;
}

int32_t remote_pack(void *of, const struct hw_tensor *dst, const struct hw_tensor *src)
{
    struct remote_queue *queue = of;
    struct wire_pack pack = { .device = queue->device->index };
    int32_t status;
    if (!put_tensor(&pack, &pack.dst, dst) || !put_tensor(&pack, &pack.src, src))
        return worker_fail(queue->worker, HW_UNSUPPORTED,
                           "in worker mode (HW_WORKER), weights are "
                           "packed only from a buffer");
    void *arguments = remote_begin(queue, WIRE_PACK, sizeof pack, &status);
    if (!arguments)
        return status;
    memcpy(arguments, &pack, sizeof pack);
    return remote_answer(queue, NULL, 0);
}
