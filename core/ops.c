/* SPDX-License-Identifier: MIT */
/* ops.c - the path of every call: the check, then one indirect call across the boundary. No
 * lock, no allocation, no string.
 *
 * Most calls are ordinary: rows of contiguous elements, outer strides that fall from the
 * outermost in, nothing empty, nothing beyond 2^31, operands apart or in place. For the ops
 * that are called most, ordinary_<op>() sees that in a few dozen instructions, and says no
 * more than yes. All other calls are held against the whole of ops.h by check.c. */
#include "exec.h"

#include <string.h>

#define HOT static inline __attribute__((always_inline))
#define SHARED                                                                             \
    static __attribute__((noinline)) /* of several ops: a call costs less than a copy */

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
    if (dtype >= HW_DTYPE_END || !(dtypes >> dtype & 1) || last >= HW_MAX_RANK ||
        t->layout | t->reserved[0] | t->reserved[1] | t->reserved[2])
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
    for (uint32_t i = HW_MAX_RANK - 1; i > last; i--)
        odd |= (t->extent[i] | t->stride[i]) != 0;
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
             (uint64_t)(a->rank ^ b->rank) | a->layout | a->reserved[0] | a->reserved[1] |
             a->reserved[2]);
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

/* y like x, apart from it or in its place: their bytes, or 0. */
HOT uint64_t ordinary_map(const struct hw_queue *queue, const struct hw_tensor *x,
                          const struct hw_tensor *y)
{
    const uint64_t reach = ordinary_form(x, FLOATS);
    return reach && same_form(y, x) && ordinary_place(queue, x, reach, false) &&
                   ordinary_place(queue, y, reach, true) &&
                   (apart(y, reach, x, reach) || address(y) == address(x))
               ? reach
               : 0;
}

SHARED uint64_t ordinary_pair(const struct hw_queue *queue, const struct hw_tensor *x,
                              const struct hw_tensor *y)
{
    return ordinary_map(queue, x, y);
}

HOT bool ordinary_silu(const struct hw_queue *queue, const struct hw_silu *op)
{
    return ordinary_map(queue, &op->x, &op->y) != 0;
}

SHARED bool ordinary_binary(const struct hw_queue *queue, const struct hw_tensor *a,
                            const struct hw_tensor *b, const struct hw_tensor *y)
{
    const uint64_t reach = ordinary_pair(queue, a, y);
    return reach && same_form(b, a) && ordinary_place(queue, b, reach, false) &&
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
SHARED bool ordinary_weight(const struct hw_queue *queue, const struct hw_tensor *weight,
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
    return eps > 0.0f && eps < 1e30f;
}

HOT bool ordinary_rmsnorm(const struct hw_queue *queue, const struct hw_rmsnorm *op)
{
    const uint64_t reach = ordinary_pair(queue, &op->x, &op->y);
    return reach && ordinary_eps(op->eps) &&
           ordinary_weight(queue, &op->weight, &op->x, &op->y, reach);
}

HOT bool ordinary_add_rmsnorm(const struct hw_queue *queue, const struct hw_add_rmsnorm *op)
{
    const uint64_t reach = ordinary_pair(queue, &op->x, &op->y);
    return reach && ordinary_eps(op->eps) && same_form(&op->residual, &op->x) &&
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

/* A context that forked, and a device that is lost. */
HOT bool unusable(const struct hw_queue *queue)
{
    return (queue->generation ^
            atomic_load_explicit(&process_generation, memory_order_relaxed)) |
           (uint32_t)atomic_load_explicit(&queue->device->lost, memory_order_relaxed);
}

/* True if the plugin can be called as it is; else *status is the answer. */
static __attribute__((noinline)) bool check_whole(struct hw_queue *queue, uint32_t op,
                                                  const void *args, enum hw_status *status)
{
    struct look look = {
        .device = queue->device, .impl = queue->device_impl, .op = op, .odd = ODD_ALWAYS
    };
    *status = op_checks[op](args, &look);
    if (*status)
        return false;
    if (!(look.odd & queue->minds[op]))
        return true;
    *status = route(queue, op, args, look.odd);
    return false;
}

#define X(NAME, name)                                                                      \
    static int32_t call_##name(struct hw_queue *queue, const void *args)                   \
    {                                                                                      \
        return queue->ops.name(queue->device_impl, queue->impl, args);                     \
    }                                                                                      \
    static enum hw_status submit_##name(struct hw_queue *queue, const void *args)          \
    {                                                                                      \
        enum hw_status status;                                                             \
        if (unlikely(queue->minds[HW_OP_##NAME] & ODD_ALWAYS ||                            \
                     !ordinary_##name(queue, args)) &&                                     \
            !check_whole(queue, HW_OP_##NAME, args, &status))                              \
            return status;                                                                 \
        int32_t answer = queue->ops.name(queue->device_impl, queue->impl, args);           \
        if (unlikely(answer))                                                              \
            return submit_failed(queue, HW_OP_##NAME, args, answer);                       \
        count(&queue->calls[HW_OP_##NAME].calls, 1);                                       \
        return HW_OK;                                                                      \
    }
HW_OPS(X)
#undef X

/* ---- the table ---- */

#define T(op, field, role) { #field, offsetof(struct hw_##op, field), ROLE_##role },
#define X(NAME, name)                                                                      \
    static const struct operand operands_##name[] = { HW_OPERANDS_##NAME(T) };             \
    _Static_assert(OPERANDS_##name <= MAX_OPERANDS,                                        \
                   #name ": more operands than MAX_OPERANDS");
HW_OPS(X)
#undef X
#undef T

const struct op_row op_rows[HW_OP_COUNT] = {
#define X(NAME, name)                                                                      \
    { sizeof(struct hw_##name), OPERANDS_##name, operands_##name, submit_##name,           \
      call_##name },
    HW_OPS(X)
#undef X
};

/* ---- entries ---- */

/* What is not the plain case: a wrong argument, or a struct of another version. */
static __attribute__((noinline, cold)) enum hw_status
submit_rare(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    union any_op copy;
    enum hw_status status = queue_ready(queue, "hw_submit");
    if (status)
        return status;
    args = args_of_size(op, args, size, &copy, &status);
    return args ? op_rows[op].submit(queue, args) : status;
}

enum hw_status hw_submit(struct hw_queue *queue, uint32_t op, const void *args, size_t size)
{
    if (unlikely(!queue || op >= HW_OP_COUNT || !args || unusable(queue) ||
                 size != op_rows[op].size))
        return submit_rare(queue, op, args, size);
    return op_rows[op].submit(queue, args);
}
