/* SPDX-License-Identifier: MIT */
/* transfer.c - moves bytes between two tensors, as rows that are contiguous in both and lie at
 * regular distances. The host moves them, or the plugin in the queue's order. Copies between
 * devices are in copy.c. */
#include "memory/transfer.h"

#include "base/message.h"
#include "call/layout.h"
#include "call/queue.h"
#include "memory/device.h"

/* ---- rows ---- */

/* Two tensors of the same extents, seen as a run of bytes repeated along at most four axes. */
struct walk {
    uint64_t run;
    int axes;
    int64_t n[HW_MAX_RANK], a[HW_MAX_RANK], b[HW_MAX_RANK]; /* innermost first */
};

static int64_t steps(const struct hw_tensor *t, int axis)
{
    return axis == t->rank - 1 ? t->extent[axis] / hw_dtype_block(t->dtype)
                               : t->extent[axis];
}

/* Walks an axis with stride 0 in both tensors only once. */
static struct walk walk_of(const struct hw_tensor *a, const struct hw_tensor *b)
{
    struct walk w = { 0 };
    if (tensor_empty(a))
        return w; /* an empty tensor: strides do not matter */
    w.run = (uint64_t)hw_dtype_bytes(a->dtype);
    for (int i = a->rank - 1; i >= 0; i--) {
        const int64_t n = steps(a, i), sa = a->stride[i], sb = b->stride[i];
        if (n == 1 || (sa == 0 && sb == 0))
            continue;
        if (w.axes == 0 && (uint64_t)sa == w.run && (uint64_t)sb == w.run) {
            w.run *= (uint64_t)n;
            continue;
        }
        const int last = w.axes - 1;
        if (w.axes && sa == w.a[last] * w.n[last] && sb == w.b[last] * w.n[last]) {
            w.n[last] *= n;
            continue;
        }
        w.n[w.axes] = n;
        w.a[w.axes] = sa;
        w.b[w.axes++] = sb;
    }
    return w;
}

/* How many axes one transfer covers: the innermost one, unless its rows overlap or repeat. */
static int axes_at_once(const struct walk *w)
{
    return w->axes && (uint64_t)w->a[0] >= w->run && (uint64_t)w->b[0] >= w->run;
}

/* Drivers move shorter rows one by one, so each counts as a transfer. */
#define ROW_BYTES 64

uint64_t move_count(const struct hw_tensor *a, const struct hw_tensor *b)
{
    const struct walk w = walk_of(a, b);
    uint64_t calls = w.run ? 1 : 0;
    const int first = w.run < ROW_BYTES ? 0 : axes_at_once(&w);
    for (int i = w.axes; i-- > first;)
        if (__builtin_mul_overflow(calls, (uint64_t)w.n[i], &calls))
            return UINT64_MAX;
    return calls;
}

/* Moves one piece: the bytes, rows and pitches of `piece`, from `b` to `a`. */
typedef enum hw_status move_fn(void *user, uint64_t a, uint64_t b,
                               const struct hw_transfer *piece);

static enum hw_status each_move(const struct hw_tensor *a, const struct hw_tensor *b,
                                move_fn *fn, void *user)
{
    const struct walk w = walk_of(a, b);
    const int first = axes_at_once(&w);
    const struct hw_transfer piece = { .bytes = w.run,
                                       .rows = first ? (uint64_t)w.n[0] : 1,
                                       .dst_pitch = first ? (uint64_t)w.a[0] : w.run,
                                       .src_pitch = first ? (uint64_t)w.b[0] : w.run };
    int64_t at[HW_MAX_RANK + 1] = { 0 };
    uint64_t a_at = 0, b_at = 0;
    while (w.run) {
        enum hw_status status = fn(user, a_at, b_at, &piece);
        if (status)
            return status;
        int i = first;
        for (; i < w.axes; i++) {
            a_at += (uint64_t)w.a[i];
            b_at += (uint64_t)w.b[i];
            if (++at[i] < w.n[i])
                break;
            at[i] = 0;
            a_at -= (uint64_t)w.a[i] * (uint64_t)w.n[i];
            b_at -= (uint64_t)w.b[i] * (uint64_t)w.n[i];
        }
        if (i == w.axes)
            break;
    }
    return HW_OK;
}

/* ---- by the host ---- */

struct addresses {
    char *dst;
    const char *src;
};

static enum hw_status move_here(void *user, uint64_t dst, uint64_t src,
                                const struct hw_transfer *piece)
{
    const struct addresses *at = user;
    hw_transfer_host(piece, at->dst + dst, at->src + src);
    return HW_OK;
}

void host_move(const struct hw_tensor *dst, const struct hw_tensor *src)
{
    struct addresses at = { hw_tensor_address(dst), hw_tensor_address(src) };
    each_move(dst, src, move_here, &at);
}

bool host_view(const struct hw_tensor *tensor, struct hw_tensor *view)
{
    *view = *tensor;
    if (!tensor->buffer)
        return true;
    if (!tensor->buffer->host || tensor->layout)
        return false;
    view->data = tensor->buffer->host;
    view->buffer = NULL;
    return true;
}

/* ---- by the plugin ---- */

struct places {
    struct hw_queue *queue;
    struct hw_transfer transfer; /* of the first byte */
};

static enum hw_status transfer_piece(void *user, uint64_t dst, uint64_t src,
                                     const struct hw_transfer *piece)
{
    const struct places *p = user;
    struct hw_transfer t = p->transfer;
    t.bytes = piece->bytes;
    t.rows = piece->rows;
    t.dst_pitch = piece->dst_pitch;
    t.src_pitch = piece->src_pitch;
    if (t.dst)
        t.dst_offset += dst;
    else
        t.dst_host = (char *)t.dst_host + dst;
    if (t.src)
        t.src_offset += src;
    else
        t.src_host = (const char *)t.src_host + src;
    plugin_message_clear();
    struct hw_device *device = p->queue->device;
    const int32_t answer = device->plugin->table.transfer(p->queue->impl, &t);
    /* With two devices, HW_LOST does not say which one is lost: see peer() in copy.c. */
    const bool two = t.dst && t.src && t.dst->device != t.src->device;
    const enum hw_status status = two && answer ? plugin_failed(answer)
                                                : device_result(device, answer);
    return status ? fail_in(status, "transfer of %llu bytes on %s: ",
                            (unsigned long long)(t.bytes * t.rows), device->name)
                  : HW_OK;
}

enum hw_status queue_move(struct hw_queue *queue, const struct hw_tensor *dst,
                          const struct hw_tensor *src)
{
    struct places p = { .queue = queue, .transfer = { .size = sizeof p.transfer } };
    p.transfer.dst = dst->buffer;
    p.transfer.dst_offset = dst->buffer ? dst->offset : 0;
    p.transfer.dst_host = dst->buffer ? NULL : (char *)dst->data + dst->offset;
    p.transfer.src = src->buffer;
    p.transfer.src_offset = src->buffer ? src->offset : 0;
    p.transfer.src_host = src->buffer ? NULL : (const char *)src->data + src->offset;
    return each_move(dst, src, transfer_piece, &p);
}
