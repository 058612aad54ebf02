/* SPDX-License-Identifier: MIT */
/* route.c - the cold path: calls that the device can not take as they are.
 *
 * In this order: a recording queue collects; host tensors that the device can not reach are
 * staged in its memory; operands that are not rows are made so; what the device then still
 * refuses is computed by the next device that can, its operands moved there and back through
 * the host. All of it is synchronous, counted, and never silent. */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- an op whose operands are replaced for one call ---- */

struct stand_in {
    const struct operand *operand;
    struct hw_tensor original, replacement;
    void *memory;             /* on the host; or */
    struct hw_buffer *buffer; /* on the device */
};

struct detour {
    struct hw_queue *queue;
    uint32_t op;
    union any_op args;
    uint32_t count;
    struct stand_in stand_in[MAX_OPERANDS];
};

static void detour_begin(struct detour *d, struct hw_queue *queue, uint32_t op,
                         const void *args)
{
    d->queue = queue;
    d->op = op;
    d->count = 0;
    memcpy(&d->args, args, op_descs[op].size);
}

static void detour_end(struct detour *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        free(d->stand_in[i].memory);
        hw_buffer_free(d->stand_in[i].buffer);
    }
}

static struct stand_in *detour_add(struct detour *d, const struct operand *operand)
{
    struct stand_in *s = &d->stand_in[d->count++];
    *s = (struct stand_in){ .operand = operand };
    s->original = s->replacement = *operand_of(&d->args, operand);
    return s;
}

/* One operand that is both read and written in place keeps one replacement. */
static bool detour_reuse(struct detour *d, const struct operand *operand)
{
    struct hw_tensor *t = operand_of(&d->args, operand);
    for (uint32_t i = 0; i < d->count; i++)
        if (memcmp(&d->stand_in[i].original, t, sizeof *t) == 0) {
            *t = d->stand_in[i].replacement;
            return true;
        }
    return false;
}

/* Whether any operand of the op with this very tensor is read, or written. */
static bool is_used(const struct detour *d, const struct hw_tensor *original, const void *args,
                    bool (*role)(uint8_t))
{
    const struct op_desc *desc = &op_descs[d->op];
    for (uint32_t i = 0; i < desc->operand_count; i++) {
        const struct hw_tensor *t = (const struct hw_tensor *)((const char *)args +
                                                               desc->operand[i].offset);
        if (role(desc->operand[i].role) && memcmp(t, original, sizeof *t) == 0)
            return true;
    }
    return false;
}

static bool reads(uint8_t role)
{
    return role_reads(role);
}

static bool writes(uint8_t role)
{
    return role_writes(role);
}

/* ---- host tensors on a device with memory of its own ---- */

static enum hw_status stage_one(struct detour *d, const struct operand *operand,
                                const void *args)
{
    struct hw_queue *queue = d->queue;
    struct hw_tensor *t = operand_of(&d->args, operand);
    const uint64_t bytes = hw_tensor_bytes(t);
    if (!t->dtype || t->buffer || !bytes || detour_reuse(d, operand))
        return HW_OK;
    struct stand_in *s = detour_add(d, operand);
    enum hw_status status = hw_buffer_alloc(queue->device, bytes, 0, &s->buffer);
    if (status)
        return status;
    s->replacement.buffer = s->buffer;
    s->replacement.data = NULL;
    s->replacement.offset = 0;
    if (is_used(d, &s->original, args, reads) || !tensor_is_dense(&s->original)) {
        const char *first = (const char *)s->original.data + s->original.offset;
        status = transfer(queue, &(struct hw_transfer){
                                     .dst = s->buffer, .src_host = first, .bytes = bytes });
        queue->counts[d->op].staged_bytes += bytes;
    }
    *t = s->replacement;
    return status;
}

static enum hw_status unstage_one(struct detour *d, const struct stand_in *s,
                                  const void *args)
{
    if (!is_used(d, &s->original, args, writes))
        return HW_OK;
    const uint64_t bytes = hw_tensor_bytes(&s->original);
    char *first = (char *)s->original.data + s->original.offset;
    d->queue->counts[d->op].staged_bytes += bytes;
    return transfer(d->queue, &(struct hw_transfer){
                                  .src = s->buffer, .dst_host = first, .bytes = bytes });
}

static enum hw_status run_rows(struct hw_queue *queue, uint32_t op, const void *args);

static enum hw_status run_staged(struct hw_queue *queue, uint32_t op, const void *args)
{
    const struct op_desc *desc = &op_descs[op];
    enum hw_status status = HW_OK;
    struct detour d;
    detour_begin(&d, queue, op, args);
    for (uint32_t i = 0; i < desc->operand_count && !status; i++)
        status = stage_one(&d, &desc->operand[i], args);
    if (!status)
        status = run_rows(queue, op, &d.args);
    for (uint32_t i = 0; i < d.count && !status; i++)
        status = unstage_one(&d, &d.stand_in[i], args);
    if (d.count) { /* the replacements are free again only when the queue has passed */
        enum hw_status waited = hw_queue_wait(queue);
        status = status ? status : waited;
    }
    detour_end(&d);
    return status;
}

/* ---- operands whose innermost extent is not contiguous ---- */

static enum hw_status copy_view(struct hw_queue *queue, const struct hw_tensor *dst,
                                const struct hw_tensor *src)
{
    const struct hw_copy copy = { .src = *src, .dst = *dst };
    return (enum hw_status)queue->ops->copy(queue->device_impl, queue->impl, &copy);
}

static enum hw_status rows_one(struct detour *d, const struct operand *operand,
                               const void *args)
{
    struct hw_tensor *t = operand_of(&d->args, operand);
    if (!t->dtype || t->layout || hw_tensor_bytes(t) == 0 || tensor_is_rows(t) ||
        detour_reuse(d, operand))
        return HW_OK;
    struct stand_in *s = detour_add(d, operand);
    tensor_pack_strides(&s->replacement);
    enum hw_status status = hw_buffer_alloc(
        d->queue->device, hw_tensor_bytes(&s->replacement), 0, &s->buffer);
    if (status)
        return status;
    s->replacement.buffer = s->buffer;
    s->replacement.data = NULL;
    if (is_used(d, &s->original, args, reads))
        status = copy_view(d->queue, &s->replacement, &s->original);
    d->queue->counts[d->op].copied_views++;
    *t = s->replacement;
    return status;
}

static enum hw_status run_rows(struct hw_queue *queue, uint32_t op, const void *args)
{
    const struct op_desc *desc = &op_descs[op];
    enum hw_status status = HW_OK;
    struct detour d;
    if (op == HW_OP_COPY)
        return run_checked(queue, op, args);
    detour_begin(&d, queue, op, args);
    for (uint32_t i = 0; i < desc->operand_count && !status; i++)
        status = rows_one(&d, &desc->operand[i], args);
    if (!status)
        status = run_checked(queue, op, d.count ? (const void *)&d.args : args);
    for (uint32_t i = 0; i < d.count && !status; i++)
        if (is_used(&d, &d.stand_in[i].original, args, writes))
            status = copy_view(queue, &d.stand_in[i].original, &d.stand_in[i].replacement);
    if (d.count) {
        enum hw_status waited = hw_queue_wait(queue);
        status = status ? status : waited;
    }
    detour_end(&d);
    return status;
}

/* ---- another device ---- */

/* All operands in host memory, as they lie. */
static enum hw_status bring_home(struct detour *d, const void *args)
{
    const struct op_desc *desc = &op_descs[d->op];
    enum hw_status status = hw_queue_wait(d->queue);
    for (uint32_t i = 0; i < desc->operand_count && !status; i++) {
        const struct operand *operand = &desc->operand[i];
        struct hw_tensor *t = operand_of(&d->args, operand);
        if (!t->dtype || !t->buffer || detour_reuse(d, operand))
            continue;
        struct stand_in *s = detour_add(d, operand);
        const bool read = is_used(d, &s->original, args, reads);
        status = span_to_host(d->queue, &s->original, read, &s->replacement, &s->memory);
        d->queue->counts[d->op].fallback_bytes += read ? hw_tensor_bytes(t) : 0;
        *t = s->replacement;
    }
    return status;
}

static enum hw_status send_back(struct detour *d, const void *args)
{
    enum hw_status status = HW_OK;
    for (uint32_t i = 0; i < d->count && !status; i++) {
        const struct stand_in *s = &d->stand_in[i];
        if (!is_used(d, &s->original, args, writes))
            continue;
        status = span_from_host(d->queue, &s->original, &s->replacement);
        d->queue->counts[d->op].fallback_bytes += hw_tensor_bytes(&s->original);
    }
    return status;
}

/* The devices after the queue's own, in the order of the context. */
static struct hw_device *next_device(const struct hw_queue *queue, uint32_t *at)
{
    const struct hw_context *context = queue->device->context;
    while (*at < context->device_count) {
        struct hw_device *device = context->devices[(*at)++];
        if (device != queue->device && !atomic_load(&device->lost))
            return device;
    }
    return NULL;
}

/* dtypes of an op's operands, "x f16 [2,64], y f16 [2,64]". */
static void describe(uint32_t op, const void *args, char *text, size_t size)
{
    const struct op_desc *desc = &op_descs[op];
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < desc->operand_count && length < size; i++) {
        const struct hw_tensor *t = (const struct hw_tensor *)((const char *)args +
                                                               desc->operand[i].offset);
        char shape[TENSOR_TEXT];
        if (t->dtype)
            length += (size_t)snprintf(text + length, size - length, "%s%s %s",
                                       length ? ", " : "", desc->operand[i].name,
                                       tensor_text(t, shape));
    }
}

/* Once for each op and dtype of its first operand. */
static void say_fallback(struct hw_queue *queue, uint32_t op, const void *args,
                         const struct hw_device *to, const char *why)
{
    const struct hw_tensor *first = args;
    const uint32_t bit = UINT32_C(1) << first->dtype;
    const bool allowed = queue->device->context->settings.fallback == FALLBACK_ALLOW;
    char text[512];
    if (queue->said[op] & bit)
        return;
    queue->said[op] |= bit;
    describe(op, args, text, sizeof text);
    log_line(queue->device->context, allowed ? HW_LOG_INFO : HW_LOG_WARN,
             "%s: %s: %s does not compute this (%s); %s does, its operands are moved there "
             "and back each time",
             op_descs[op].name, text, queue->device->name, why, to->name);
}

static enum hw_status run_on(struct detour *d, struct hw_device *device, const void *args,
                             const char *why)
{
    struct hw_queue *service;
    enum hw_status status = service_lend(device, &service);
    if (status)
        return status;
    status = hw_submit(service, d->op, &d->args, op_descs[d->op].size);
    if (!status)
        status = hw_queue_wait(service);
    service_return(device);
    if (!status) {
        say_fallback(d->queue, d->op, args, device, why);
        status = send_back(d, args);
    }
    return status;
}

static enum hw_status refuse(const struct hw_queue *queue, uint32_t op, const void *args,
                             const char *why, const char *remedy)
{
    char text[512];
    describe(op, args, text, sizeof text);
    return fail(HW_UNSUPPORTED, "%s: %s: %s does not compute this: %s%s",
                op_descs[op].name, text, queue->device->name, why, remedy);
}

static enum hw_status fall_back(struct hw_queue *queue, uint32_t op, const void *args)
{
    char why[512];
    struct detour d;
    uint32_t at = 0;
    snprintf(why, sizeof why, "%s", hw_message());
    if (queue->hidden)
        return fail(HW_UNSUPPORTED, "%s", why);
    if (queue->device->context->settings.fallback == FALLBACK_ERROR)
        return refuse(queue, op, args, why, "; HW_FALLBACK=error lets no other device");
    struct hw_device *device = next_device(queue, &at);
    if (!device)
        return refuse(queue, op, args, why, "; no other device was selected");

    detour_begin(&d, queue, op, args);
    enum hw_status status = bring_home(&d, args);
    enum hw_status answer = HW_UNSUPPORTED;
    for (; !status && device && answer == HW_UNSUPPORTED; device = next_device(queue, &at))
        answer = run_on(&d, device, args, why);
    detour_end(&d);
    if (status)
        return status;
    if (answer == HW_UNSUPPORTED)
        return refuse(queue, op, args, why, "; nor does any other selected device");
    if (!answer) {
        queue->counts[op].calls++;
        queue->counts[op].fallbacks++;
    }
    return answer;
}

/* ---- the way in ---- */

enum hw_status route_refused(struct hw_queue *queue, uint32_t op, const void *args,
                             int32_t answer)
{
    if (answer == HW_UNSUPPORTED)
        return fall_back(queue, op, args);
    return fail_in(queue_result(queue, answer), "%s: %s: ", queue->device->name,
                   op_descs[op].name);
}

/* A field that the plugin's version of the op's struct does not have, and that is set. */
static bool is_beyond(const struct hw_queue *queue, uint32_t op, const void *args)
{
    const struct hw_plugin *table = &queue->device->plugin->table;
    const uint32_t known = op < table->op_count ? table->op_sizes[op] : 0;
    for (uint32_t i = known; i < op_descs[op].size; i++)
        if (((const unsigned char *)args)[i])
            return true;
    return false;
}

enum hw_status route(struct hw_queue *queue, uint32_t op, const void *args, uint32_t cold)
{
    if (cold & COLD_CHECK)
        return HW_OK;
    if (atomic_load(&queue->device->lost))
        return fail(HW_LOST, "%s is lost: close its queues and buffers",
                    queue->device->name);
    if (queue->recording)
        return record_op(queue, op, args, cold & ~(uint32_t)COLD_QUEUE);
    if (queue->old_plugin && is_beyond(queue, op, args)) {
        fail(HW_UNSUPPORTED, "its plugin is older than a field that is set");
        return fall_back(queue, op, args);
    }
    if (cold & COLD_STAGE)
        return run_staged(queue, op, args);
    return run_rows(queue, op, args);
}
