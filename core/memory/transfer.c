/* SPDX-License-Identifier: MIT */
/* transfer.c - moves bytes between two tensors, as rows that are contiguous in both and lie at
 * regular distances. The host moves them, or the plugin in the queue's order. Copies between
 * devices are in copy.c. */
#include "memory/transfer.h"

#include "base/message.h"
#include "call/layout.h"
#include "call/queue.h"
#include "memory/device.h"

/* ---- contiguous copies ---- */

uint64_t dense_bytes(const struct hw_tensor *tensor)
{
    struct hw_tensor t = *tensor;
    uint64_t bytes;
    return make_dense(&t, tensor, &bytes) ? bytes : UINT64_MAX;
}

struct hw_tensor dense_at(const struct hw_tensor *tensor, struct hw_buffer *buffer,
                          void *memory)
{
    struct hw_tensor t = *tensor;
    make_dense(&t, tensor, &(uint64_t){ 0 });
    t.buffer = buffer;
    t.data = buffer ? NULL : memory;
    t.offset = 0;
    return t;
}

/* ---- rows ---- */

/* Two tensors of the same extents, seen as a run of bytes repeated along at most four axes. */
struct walk {
    uint64_t run;
    int axes;
    int64_t n[HW_MAX_RANK], a[HW_MAX_RANK], b[HW_MAX_RANK]; /* innermost first */
};

static int64_t axis_steps(const struct hw_tensor *t, int axis)
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
        const int64_t n = axis_steps(a, i), sa = a->stride[i], sb = b->stride[i];
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

/* ---- pieces ---- */

/* The transfer at these distances from the first one. */
static struct hw_transfer transfer_behind(const struct hw_transfer *first, uint64_t dst,
                                          uint64_t src)
{
    struct hw_transfer t = *first;
    if (t.dst)
        t.dst_offset += dst;
    else
        t.dst_host = (char *)t.dst_host + dst;
    if (t.src)
        t.src_offset += src;
    else
        t.src_host = (const char *)t.src_host + src;
    return t;
}

static enum hw_status move_piece(struct hw_queue *queue, const struct hw_transfer *t)
{
    struct hw_device *device = queue->device;
    plugin_message_clear();
    const int32_t answer = device->plugin->table.transfer(queue->impl, t);
    /* With two devices, HW_LOST does not say which one is lost: see copy_by_peer() in copy.c. */
    const bool two = t->dst && t->src && t->dst->device != t->src->device;
    const enum hw_status status = two && answer ? plugin_failed(answer)
                                                : device_result(device, answer);
    return status ? fail_in(status, "transfer of %llu bytes on %s: ",
                            (unsigned long long)(t->bytes * t->rows), device->name)
                  : HW_OK;
}

/* A position in a walk. */
struct piece {
    int64_t at[HW_MAX_RANK];
    uint64_t a, b; /* bytes from the first piece */
};

/* Goes on to the next piece; false if there is none. Axes before `axis` are inside a piece. */
static bool piece_next(const struct walk *w, int axis, struct piece *piece)
{
    for (int i = axis; i < w->axes; i++) {
        piece->a += (uint64_t)w->a[i];
        piece->b += (uint64_t)w->b[i];
        if (++piece->at[i] < w->n[i])
            return true;
        piece->at[i] = 0;
        piece->a -= (uint64_t)w->a[i] * (uint64_t)w->n[i];
        piece->b -= (uint64_t)w->b[i] * (uint64_t)w->n[i];
    }
    return false;
}

/* Moves all pieces; `begin` says where the first one lies: in the queue's order by the plugin;
 * without a queue, at once by the host. */
static enum hw_status move_pieces(struct hw_queue *queue, const struct walk *w,
                                  struct hw_transfer begin)
{
    const int first = axes_at_once(w);
    struct piece piece = { .a = 0 };
    enum hw_status status = HW_OK;
    begin.size = sizeof begin;
    begin.bytes = w->run;
    begin.rows = first ? (uint64_t)w->n[0] : 1;
    begin.dst_pitch = first ? (uint64_t)w->a[0] : w->run;
    begin.src_pitch = first ? (uint64_t)w->b[0] : w->run;
    for (bool any = w->run; any && !status; any = piece_next(w, first, &piece)) {
        const struct hw_transfer t = transfer_behind(&begin, piece.a, piece.b);
        if (queue)
            status = move_piece(queue, &t);
        else
            hw_transfer_host(&t, t.dst_host, t.src_host);
    }
    return status;
}

/* ---- tensors ---- */

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

void host_move(const struct hw_tensor *dst, const struct hw_tensor *src)
{
    const struct walk w = walk_of(dst, src);
    move_pieces(NULL, &w,
                (struct hw_transfer){ .dst_host = hw_tensor_address(dst),
                                      .src_host = hw_tensor_address(src) });
}

enum hw_status queue_move(struct hw_queue *queue, const struct hw_tensor *dst,
                          const struct hw_tensor *src)
{
    const struct walk w = walk_of(dst, src);
    return move_pieces(
        queue, &w,
        (struct hw_transfer){ .dst = dst->buffer,
                              .dst_offset = dst->buffer ? dst->offset : 0,
                              .dst_host = dst->buffer ? NULL : hw_tensor_address(dst),
                              .src = src->buffer,
                              .src_offset = src->buffer ? src->offset : 0,
                              .src_host = src->buffer ? NULL : hw_tensor_address(src) });
}
