/* SPDX-License-Identifier: MIT */
/* ordinary.h - the short check of ordinary calls; part of ops.c, which inlines it. Most
 * calls are ordinary: rows of contiguous elements, strides that decrease from the outermost
 * axis to the innermost, nothing empty, nothing beyond 2^31, operands disjoint or in place.
 * For the ops that are called most, ordinary_<op>() recognises that in a few dozen
 * instructions. All other calls get the full check in check.c, which also finds the reason
 * if one is invalid. A call that is ordinary must be valid; a valid call need not be
 * ordinary. */
#ifndef HW_RUN_ORDINARY_H
#define HW_RUN_ORDINARY_H

#include "base/likely.h"
#include "run/buffer.h"
#include "run/dtype.h"
#include "run/queue.h"

#define HOT static inline __attribute__((always_inline))
#define SHARED                                                                             \
    static __attribute__((                                                                 \
        noinline)) /* shared by several ops: a call costs less than inlining it everywhere */

/* ---- ordinary operands ---- */

/* Two or one of a tensor's 64-bit words at a time. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint64_t aliased __attribute__((may_alias));
#define PAIR(t, field) (*(const pair *)&(t)->field)
#define U64(t, field)  (*(const aliased *)&(t)->field)
/* The same of a form that was seen, which is aligned to 16 bytes. */
typedef uint64_t even_pair __attribute__((vector_size(16), may_alias));
_Static_assert(offsetof(struct seen_form, like.offset) % sizeof(even_pair) == 0 &&
                   offsetof(struct hw_tensor, layout) % sizeof(even_pair) == 0,
               "pairs of words");
#define SEEN(form, field) (*(const even_pair *)&(form)->like.field)

/* The bytes from the first element to the last if the operand's form is ordinary; otherwise
 * 0. */
static uint64_t ordinary_form(const struct hw_tensor *t, uint32_t dtypes)
{
    const uint32_t dtype = (uint32_t)t->dtype, last = (uint32_t)t->rank - 1;
    if (dtype >= HW_DTYPE_END || !(dtypes >> dtype & 1) || last >= HW_MAX_RANK)
        return 0;
    const uint64_t block = dtype_rows[dtype].bytes;
    const uint64_t inner = (uint64_t)t->extent[last] >> dtype_rows[dtype].shift;
    uint64_t large = (uint64_t)t->extent[last] | (inner - 1), outer = 0;
    if (inner << dtype_rows[dtype].shift != (uint64_t)t->extent[last])
        return 0;
    uint64_t reach = inner * block;
    if ((uint64_t)t->stride[last] != block)
        return 0;
    for (uint32_t i = last; i-- > 0;) {
        const uint64_t steps = (uint64_t)t->extent[i] - 1, stride = (uint64_t)t->stride[i];
        if (stride < reach)
            return 0;
        large |= steps | stride;
        outer |= stride;
        reach += steps * stride;
    }
    /* Entries beyond the rank must be zero. */
    pair rest = PAIR(t, layout);
    if (last < 2)
        rest |= PAIR(t, extent[2]) | PAIR(t, stride[2]);
    if (!(last & 1) && (t->extent[last + 1] | t->stride[last + 1]))
        return 0;
    return large >> 31 | (outer & (dtype_rows[dtype].alignment - 1u)) | rest[0] | rest[1]
               ? 0
               : reach;
}

/* Whether the form is ordinary; if so, it is remembered. */
SHARED bool see_form(struct seen_form *seen, const struct hw_tensor *t, uint32_t dtypes)
{
    const uint64_t reach = ordinary_form(t, dtypes);
    if (!reach)
        return false;
    seen->like = *t;
    seen->reach = reach;
    seen->align = dtype_rows[t->dtype].alignment - 1u;
    return true;
}

/* Not zero if dtype, rank, extents, strides or layout differ from those seen. Several
 * results are or-ed before one is_zero(). */
HOT pair unlike(const struct hw_tensor *t, const struct seen_form *seen)
{
    const pair kind = { 0, UINT64_MAX }; /* dtype and rank, not the offset before them */
    return ((PAIR(t, offset) ^ SEEN(seen, offset)) & kind) |
           (PAIR(t, extent[0]) ^ SEEN(seen, extent[0])) |
           (PAIR(t, extent[2]) ^ SEEN(seen, extent[2])) |
           (PAIR(t, stride[0]) ^ SEEN(seen, stride[0])) |
           (PAIR(t, stride[2]) ^ SEEN(seen, stride[2])) | PAIR(t, layout);
}

HOT bool is_zero(pair bits)
{
    return !(bits[0] | bits[1]);
}

/* Where the operand begins, as a number to compare: the address in host memory, otherwise
 * one derived from the plugin's handle. 0 if the queue's device cannot access it, or if it
 * is not ordinary. */
HOT uint64_t ordinary_address(const struct hw_queue *queue, const struct hw_tensor *t,
                              const struct seen_form *form, bool written)
{
    const struct hw_buffer *buffer = t->buffer;
    const uint64_t offset = t->offset, reach = form->reach;
    if ((offset | (uint64_t)(uintptr_t)t->data) & form->align)
        return 0;
    if (!buffer) {
        const uint64_t begin = (uint64_t)(uintptr_t)t->data + offset;
        return t->data && queue->host_tensors && begin >= offset && begin + reach > begin
                   ? begin
                   : 0;
    }
    if (buffer->device != queue->device_impl || offset > buffer->bytes ||
        reach > buffer->bytes - offset ||
        (written && (buffer->flags & HW_BUFFER_READ_ONLY)))
        return 0;
    return offset + buffer_of(buffer)->address;
}

/* The numbers may wrap. */
HOT bool ranges_disjoint(uint64_t a, uint64_t a_reach, uint64_t b, uint64_t b_reach)
{
    return b - a >= a_reach && a - b >= b_reach;
}

HOT bool ranges_disjoint_or_same(uint64_t a, uint64_t b, uint64_t reach)
{
    return a == b || ranges_disjoint(a, reach, b, reach);
}

/* ---- ordinary calls ---- */

/* Shapes repeat from call to call and from layer to layer. Operands with the form of the
 * last ordinary call are ordinary too. Before the first one, the reach that was seen is
 * zero. */

HOT bool ordinary_silu(struct hw_queue *queue, const struct hw_silu *op)
{
    struct seen_form *seen = &queue->seen[HW_OP_SILU][0];
    if (unlikely(!is_zero(unlike(&op->x, seen) | unlike(&op->y, seen)) || !seen->reach) &&
        !(see_form(seen, &op->x, FLOATS) && is_zero(unlike(&op->y, seen))))
        return false;
    const uint64_t x = ordinary_address(queue, &op->x, seen, false);
    const uint64_t y = ordinary_address(queue, &op->y, seen, true);
    return x && y && ranges_disjoint_or_same(y, x, seen->reach);
}

/* a, b and y have one form; y is disjoint from the others or in place. */
SHARED bool ordinary_binary(struct hw_queue *queue, struct seen_form *seen,
                            const struct hw_tensor *a, const struct hw_tensor *b,
                            const struct hw_tensor *y)
{
    if (unlikely(!is_zero(unlike(a, seen) | unlike(b, seen) | unlike(y, seen)) ||
                 !seen->reach) &&
        !(see_form(seen, a, FLOATS) && is_zero(unlike(b, seen) | unlike(y, seen))))
        return false;
    const uint64_t at_a = ordinary_address(queue, a, seen, false);
    const uint64_t at_b = ordinary_address(queue, b, seen, false);
    const uint64_t at_y = ordinary_address(queue, y, seen, true);
    return at_a && at_b && at_y && ranges_disjoint_or_same(at_y, at_a, seen->reach) &&
           ranges_disjoint_or_same(at_y, at_b, seen->reach);
}

HOT bool ordinary_add(struct hw_queue *queue, const struct hw_add *op)
{
    return ordinary_binary(queue, queue->seen[HW_OP_ADD], &op->a, &op->b, &op->y);
}

HOT bool ordinary_mul(struct hw_queue *queue, const struct hw_mul *op)
{
    return ordinary_binary(queue, queue->seen[HW_OP_MUL], &op->a, &op->b, &op->y);
}

HOT bool ordinary_swiglu(struct hw_queue *queue, const struct hw_swiglu *op)
{
    return op->up.dtype &&
           ordinary_binary(queue, queue->seen[HW_OP_SWIGLU], &op->gate, &op->up, &op->y);
}

/* Whether `x` and its weight, [cols] of x's dtype or f32, are ordinary and match each
 * other; if so, both are remembered. */
SHARED bool see_rows(struct seen_form seen[2], const struct hw_tensor *x,
                     const struct hw_tensor *weight)
{
    const bool fit = see_form(&seen[0], x, FLOATS) && see_form(&seen[1], weight, FLOATS) &&
                     weight->rank == 1 && weight->extent[0] == x->extent[x->rank - 1] &&
                     (weight->dtype == HW_F32 || weight->dtype == x->dtype);
    if (!fit)
        seen[0].reach = 0;
    return fit;
}

HOT bool ordinary_eps(float eps, uint32_t reserved)
{
    return eps > 0.0f && eps < 1e30f && !reserved;
}

HOT bool ordinary_rmsnorm(struct hw_queue *queue, const struct hw_rmsnorm *op)
{
    struct seen_form *seen = queue->seen[HW_OP_RMSNORM];
    if (unlikely(!is_zero(unlike(&op->x, seen) | unlike(&op->weight, seen + 1) |
                          unlike(&op->y, seen)) ||
                 !seen->reach) &&
        !(see_rows(seen, &op->x, &op->weight) && is_zero(unlike(&op->y, seen))))
        return false;
    const uint64_t x = ordinary_address(queue, &op->x, seen, false);
    const uint64_t weight = ordinary_address(queue, &op->weight, seen + 1, false);
    const uint64_t y = ordinary_address(queue, &op->y, seen, true);
    return x && weight && y && ranges_disjoint_or_same(y, x, seen->reach) &&
           ranges_disjoint(y, seen->reach, weight, seen[1].reach) &&
           ordinary_eps(op->eps, op->reserved);
}

HOT bool ordinary_add_rmsnorm(struct hw_queue *queue, const struct hw_add_rmsnorm *op)
{
    struct seen_form *seen = queue->seen[HW_OP_ADD_RMSNORM];
    if (unlikely(!is_zero(unlike(&op->x, seen) | unlike(&op->weight, seen + 1) |
                          unlike(&op->residual, seen) | unlike(&op->y, seen)) ||
                 !seen->reach) &&
        !(see_rows(seen, &op->x, &op->weight) &&
          is_zero(unlike(&op->residual, seen) | unlike(&op->y, seen))))
        return false;
    const uint64_t residual = ordinary_address(queue, &op->residual, seen, true);
    const uint64_t x = ordinary_address(queue, &op->x, seen, false);
    const uint64_t weight = ordinary_address(queue, &op->weight, seen + 1, false);
    const uint64_t y = ordinary_address(queue, &op->y, seen, true);
    return residual && x && weight && y && ranges_disjoint_or_same(y, x, seen->reach) &&
           ranges_disjoint(residual, seen->reach, x, seen->reach) &&
           ranges_disjoint(residual, seen->reach, y, seen->reach) &&
           ranges_disjoint(residual, seen->reach, weight, seen[1].reach) &&
           ranges_disjoint(y, seen->reach, weight, seen[1].reach) &&
           ordinary_eps(op->eps, op->reserved);
}

/* The matmuls of a layer differ in N and K. */
HOT uint32_t shape_slot(const struct hw_matmul *op)
{
    const uint32_t mix = (uint32_t)op->b.extent[0] * 3 + (uint32_t)op->b.extent[1];
    return mix * UINT32_C(0x9E3779B1) >> 30;
}
_Static_assert(SEEN_SHAPES == 4, "two bits of shape_slot()");

/* Whether the forms are ordinary and match each other; if so, they are remembered. */
SHARED bool see_matmul(struct seen_matmul *seen, const struct hw_matmul *op)
{
    const uint32_t ta = op->transpose_a, tb = op->transpose_b;
    seen->c.reach = 0; /* until all forms are ordinary */
    if ((op->a.rank | op->b.rank | op->c.rank) != 2 || (ta | tb) > 1 ||
        (!tb && op->b.dtype > HW_BF16))
        return false;
    if (op->a.extent[1 - ta] != op->b.extent[tb] || op->a.extent[ta] != op->c.extent[0] ||
        op->b.extent[1 - tb] != op->c.extent[1])
        return false;
    seen->transposes = U64(op, transpose_a);
    return see_form(&seen->a, &op->a, FLOATS) &&
           see_form(&seen->b, &op->b, FLOATS | BLOCKS) &&
           see_form(&seen->c, &op->c, FLOATS);
}

/* Two matrices, without batches and bias. */
HOT bool ordinary_matmul(struct hw_queue *queue, const struct hw_matmul *op)
{
    struct seen_matmul *seen = &queue->seen_matmul[shape_slot(op)];
    if (unlikely(!is_zero(unlike(&op->a, &seen->a) | unlike(&op->b, &seen->b) |
                          unlike(&op->c, &seen->c)) ||
                 seen->transposes != U64(op, transpose_a) || !seen->c.reach) &&
        !see_matmul(seen, op))
        return false;
    const uint64_t a = ordinary_address(queue, &op->a, &seen->a, false);
    const uint64_t b = ordinary_address(queue, &op->b, &seen->b, false);
    const uint64_t c = ordinary_address(queue, &op->c, &seen->c, true);
    return a && b && c && ranges_disjoint(c, seen->c.reach, a, seen->a.reach) &&
           ranges_disjoint(c, seen->c.reach, b, seen->b.reach) && !op->bias.dtype;
}

/* For the other ops the full check costs little beside the op itself. */
#define RARE(name)                                                                         \
    HOT bool ordinary_##name(struct hw_queue *queue, const struct hw_##name *op)           \
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

#endif
