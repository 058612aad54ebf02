/* SPDX-License-Identifier: MIT */
/* ops.c - the path of every call: the check, then one indirect call.
 *
 * Most calls are ordinary: rows of contiguous elements, outer strides that fall from the
 * outermost in, nothing empty, nothing beyond 2^31, operands apart or in place. For the ops
 * that are called most, ordinary_<op>() sees that in a few dozen instructions, and says no
 * more than yes. All other calls are held against the whole of ops.h by check.c. */
#include "work.h"

#include <string.h>

#define HOT static inline __attribute__((always_inline))

/* ---- ordinary operands ---- */

/* Bytes of a block, the logarithm of its elements, and what its address and strides have no
 * bits of: a plain element lies at a multiple of its size, a block at an even address. */
#define LOG2(n) ((n) == 1 ? 0 : (n) == 32 ? 5 : 8)
static const struct {
    uint8_t bytes, shift, align;
} block_of[HW_DTYPE_END] = {
#define X(NAME, value, name, elements, size)                                               \
    [value] = { size, LOG2(elements), elements == 1 ? size - 1 : 1 },
    HW_DTYPES(X)
#undef X
};

#define BIT(dtype) (UINT32_C(1) << (dtype))
#define FLOATS     (BIT(HW_F32) | BIT(HW_F16) | BIT(HW_BF16))
#define WEIGHTS                                                                            \
    (FLOATS | BIT(HW_Q8_0) | BIT(HW_Q4_0) | BIT(HW_Q4_K) | BIT(HW_Q5_K) | BIT(HW_Q6_K))

/* Bytes from the first element to the last, if the operand's form is ordinary; else 0. */
HOT uint64_t ordinary_form(const struct hw_tensor *t, uint32_t dtypes)
{
    const uint32_t dtype = (uint32_t)t->dtype, last = (uint32_t)t->rank - 1;
    if (dtype >= HW_DTYPE_END || !(dtypes >> dtype & 1) || last >= HW_MAX_RANK || t->layout)
        return 0;
    uint64_t block = dtype == HW_F32 ? 4 : 2, align = block - 1;
    uint64_t inner = (uint64_t)t->extent[last], large = inner - 1, outer = 0;
    bool odd = false;
    if (dtypes != FLOATS) {
        const uint32_t shift = block_of[dtype].shift;
        block = block_of[dtype].bytes;
        align = block_of[dtype].align;
        odd = inner >> shift << shift != inner;
        inner >>= shift;
    }
    uint64_t reach = inner * block;
    odd |= (uint64_t)t->stride[last] != block;
    for (uint32_t i = last; i-- > 0;) {
        const uint64_t steps = (uint64_t)t->extent[i] - 1, stride = (uint64_t)t->stride[i];
        large |= steps | stride;
        outer |= stride;
        odd |= stride < reach;
        reach += steps * stride;
    }
    return odd || large >> 31 || outer & align ? 0 : reach;
}

HOT bool ordinary_place(const struct hw_queue *queue, const struct hw_tensor *t,
                        uint64_t reach, bool written)
{
    const struct hw_buffer *buffer = t->buffer;
    if ((t->offset | (uint64_t)(uintptr_t)t->data) & block_of[t->dtype].align)
        return false;
    if (!buffer)
        return t->data && queue->host_tensors;
    return buffer->device == queue->device_impl && t->offset <= buffer->bytes &&
           reach <= buffer->bytes - t->offset &&
           !(written && (buffer->flags & HW_BUFFER_READ_ONLY));
}

typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
#define PAIR(t, field) (*(const pair *)&(t)->field)

/* Of one dtype, rank, extents and strides. */
HOT bool same_form(const struct hw_tensor *a, const struct hw_tensor *b)
{
    const pair differ = (PAIR(a, extent[0]) ^ PAIR(b, extent[0])) |
                        (PAIR(a, extent[2]) ^ PAIR(b, extent[2])) |
                        (PAIR(a, stride[0]) ^ PAIR(b, stride[0])) |
                        (PAIR(a, stride[2]) ^ PAIR(b, stride[2]));
    return !(differ[0] | differ[1] | (uint64_t)(a->dtype ^ b->dtype) |
             (uint64_t)(a->rank ^ b->rank) | a->layout);
}

/* As a number that can be compared: exact on the host, else as good as the plugin's
 * handles. */
HOT uint64_t address(const struct hw_tensor *t)
{
    const struct hw_buffer *buffer = t->buffer;
    const void *base = t->data;
    uint64_t offset = t->offset;
    if (buffer) {
        base = buffer->host ? buffer->host : buffer->impl;
        offset += buffer->host ? 0 : buffer->offset;
    }
    return (uint64_t)(uintptr_t)base + offset;
}

HOT bool apart(const struct hw_tensor *a, uint64_t a_reach, const struct hw_tensor *b,
               uint64_t b_reach)
{
    const uint64_t from = address(a), to = address(b);
    return from + a_reach <= to || to + b_reach <= from;
}

/* ---- ordinary calls ---- */

/* y like x, apart from it or in its place. */
HOT bool ordinary_map(const struct hw_queue *queue, const struct hw_tensor *x,
                      const struct hw_tensor *y)
{
    const uint64_t reach = ordinary_form(x, FLOATS);
    return reach && same_form(y, x) && ordinary_place(queue, x, reach, false) &&
           ordinary_place(queue, y, reach, true) &&
           (apart(y, reach, x, reach) || address(y) == address(x));
}

HOT bool ordinary_silu(const struct hw_queue *queue, const struct hw_silu *op)
{
    return ordinary_map(queue, &op->x, &op->y);
}

HOT bool ordinary_binary(const struct hw_queue *queue, const struct hw_tensor *a,
                         const struct hw_tensor *b, const struct hw_tensor *y)
{
    const uint64_t reach = ordinary_form(a, FLOATS);
    return ordinary_map(queue, a, y) && same_form(b, a) &&
           ordinary_place(queue, b, reach, false) &&
           (apart(y, reach, b, reach) || address(y) == address(b));
}

HOT bool ordinary_add(const struct hw_queue *queue, const struct hw_add *op)
{
    return ordinary_binary(queue, &op->a, &op->b, &op->y);
}

HOT bool ordinary_mul(const struct hw_queue *queue, const struct hw_mul *op)
{
    return ordinary_binary(queue, &op->a, &op->b, &op->y);
}

HOT bool ordinary_swiglu(const struct hw_queue *queue, const struct hw_swiglu *op)
{
    return op->up.dtype && ordinary_binary(queue, &op->gate, &op->up, &op->y);
}

/* weight: [cols] of x's dtype or f32, apart from what is written. */
HOT bool ordinary_weight(const struct hw_queue *queue, const struct hw_tensor *weight,
                         const struct hw_tensor *x, const struct hw_tensor *y,
                         uint64_t reach)
{
    if (!weight->dtype)
        return true;
    const uint64_t bytes = ordinary_form(weight, FLOATS);
    return bytes && weight->rank == 1 && weight->extent[0] == x->extent[x->rank - 1] &&
           (weight->dtype == HW_F32 || weight->dtype == x->dtype) &&
           ordinary_place(queue, weight, bytes, false) && apart(y, reach, weight, bytes);
}

HOT bool ordinary_eps(float eps)
{
    return eps >= 0.0f && eps < 1e30f;
}

HOT bool ordinary_rmsnorm(const struct hw_queue *queue, const struct hw_rmsnorm *op)
{
    return ordinary_map(queue, &op->x, &op->y) && ordinary_eps(op->eps) &&
           ordinary_weight(queue, &op->weight, &op->x, &op->y,
                           ordinary_form(&op->x, FLOATS));
}

HOT bool ordinary_add_rmsnorm(const struct hw_queue *queue, const struct hw_add_rmsnorm *op)
{
    const uint64_t reach = ordinary_form(&op->x, FLOATS);
    return ordinary_map(queue, &op->x, &op->y) && ordinary_eps(op->eps) &&
           same_form(&op->residual, &op->x) &&
           ordinary_place(queue, &op->residual, reach, true) &&
           apart(&op->residual, reach, &op->x, reach) &&
           apart(&op->residual, reach, &op->y, reach) &&
           ordinary_weight(queue, &op->weight, &op->x, &op->y, reach) &&
           ordinary_weight(queue, &op->weight, &op->x, &op->residual, reach);
}

/* Two matrices, no batches, no bias. */
HOT bool ordinary_matmul(const struct hw_queue *queue, const struct hw_matmul *op)
{
    const uint64_t a = ordinary_form(&op->a, FLOATS), b = ordinary_form(&op->b, WEIGHTS);
    const uint64_t c = ordinary_form(&op->c, FLOATS);
    const uint32_t ta = op->transpose_a, tb = op->transpose_b;
    return a && b && c && (op->a.rank | op->b.rank | op->c.rank) == 2 && !op->bias.dtype &&
           (ta | tb) <= 1 && (tb || !block_of[op->b.dtype].shift) &&
           op->a.extent[1 - ta] == op->b.extent[tb] &&
           op->a.extent[ta] == op->c.extent[0] && op->b.extent[1 - tb] == op->c.extent[1] &&
           ordinary_place(queue, &op->a, a, false) &&
           ordinary_place(queue, &op->b, b, false) &&
           ordinary_place(queue, &op->c, c, true) && apart(&op->c, c, &op->a, a) &&
           apart(&op->c, c, &op->b, b);
}

/* The others cost more than their check. */
#define RARE(name)                                                                         \
    HOT bool ordinary_##name(const struct hw_queue *queue, const struct hw_##name *op)     \
    {                                                                                      \
        (void)queue, (void)op;                                                             \
        return false;                                                                      \
    }
RARE(softmax)
RARE(rope)
RARE(attention)
RARE(get_rows)
RARE(set_rows)
RARE(copy)
RARE(argmax)

/* ---- the call ---- */

/* HW_OK with *done set: there is nothing more to do. */
static __attribute__((noinline)) enum hw_status
check_whole(struct hw_queue *queue, uint32_t op, const void *args, bool *done)
{
    struct check check = { .device = queue->device,
                           .impl = queue->device_impl,
                           .host_tensors = queue->host_tensors,
                           .op = op_descs[op].name,
                           .cold = queue->cold };
    enum hw_status status = op_check[op](&check, args);
    *done = status || check.empty || check.cold;
    if (status || check.empty)
        return status;
    return check.cold ? route(queue, op, args, check.cold) : HW_OK;
}

#define SUBMIT(NAME, name)                                                                 \
    static enum hw_status submit_##name(struct hw_queue *queue, const void *args)          \
    {                                                                                      \
        if (UNLIKELY(queue->cold || !ordinary_##name(queue, args))) {                      \
            bool done;                                                                     \
            enum hw_status status = check_whole(queue, HW_OP_##NAME, args, &done);         \
            if (done)                                                                      \
                return status;                                                             \
        }                                                                                  \
        int32_t answer = queue->ops->name(queue->device_impl, queue->impl, args);          \
        if (UNLIKELY(answer))                                                              \
            return route_refused(queue, HW_OP_##NAME, args, answer);                       \
        queue->counts[HW_OP_##NAME].calls++;                                               \
        return HW_OK;                                                                      \
    }
HW_OPS(SUBMIT)

#define ROW(NAME, name) submit_##name,
static enum hw_status (*const submit[HW_OP_COUNT])(struct hw_queue *,
                                                   const void *) = { HW_OPS(ROW) };

/* From an application built with another version of ops.h. */
static __attribute__((noinline)) enum hw_status
submit_resized(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    const size_t known = op_descs[op].size;
    union any_op copy;
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)args)[i])
            return fail(
                HW_UNSUPPORTED,
                "%s: byte %zu of its struct is set, and this library knows %zu: the "
                "program was built for a newer one",
                op_descs[op].name, i, known);
    memset(&copy, 0, sizeof copy);
    memcpy(&copy, args, size < known ? size : known);
    return submit[op](queue, &copy);
}

enum hw_status hw_submit(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    if (UNLIKELY(!queue || !args || op >= HW_OP_COUNT))
        return fail(HW_INVALID, !queue  ? "hw_submit: queue may not be NULL"
                                : !args ? "hw_submit: the op's struct may not be NULL"
                                        : "hw_submit: no such op");
    if (UNLIKELY(queue->generation !=
                 atomic_load_explicit(&process_generation, memory_order_relaxed)))
        return guard(queue->device->context);
    if (UNLIKELY(size != op_descs[op].size))
        return submit_resized(queue, op, args, size);
    return submit[op](queue, args);
}

enum hw_status run_checked(struct hw_queue *queue, uint32_t op, const void *args)
{
    int32_t answer = HW_UNSUPPORTED;
    switch (op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        answer = queue->ops->name(queue->device_impl, queue->impl, args);                  \
        break;
        HW_OPS(X)
#undef X
    }
    if (answer)
        return route_refused(queue, op, args, answer);
    queue->counts[op].calls++;
    return HW_OK;
}
