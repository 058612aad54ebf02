/* SPDX-License-Identifier: MIT */
/* check.c - what ops.h promises, held against one call: shapes, dtypes, strides, bounds,
 * overlap.
 *
 * Pure: nothing is touched, nothing allocated; strings are made only for an error. Ordinary
 * calls never come here: ops.c sees that they are. */
#include "work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BIT(dtype) (UINT32_C(1) << (dtype))
#define FLOATS     (BIT(HW_F32) | BIT(HW_F16) | BIT(HW_BF16))
#define BLOCKS     (BIT(HW_Q8_0) | BIT(HW_Q4_0) | BIT(HW_Q4_K) | BIT(HW_Q5_K) | BIT(HW_Q6_K))
#define EVERY      (FLOATS | BLOCKS | BIT(HW_I8) | BIT(HW_I32) | BIT(HW_I64))

/* ---- one operand ---- */

/* Dtypes and ranks that an operand may have, and whether it is written. */
struct rule {
    uint32_t dtypes;
    int32_t rank_min, rank_max;
    bool written;
};

static void dtype_list(uint32_t dtypes, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (int32_t d = 1; d < HW_DTYPE_END && length < size; d++)
        if (dtypes & BIT(d))
            length += (size_t)snprintf(text + length, size - length, "%s%s",
                                       length ? " " : "", hw_dtype_name(d));
}

static enum hw_status bad_form(const struct check *c, const char *field,
                               const struct hw_tensor *t, struct rule rule)
{
    char list[96];
    if (t->rank == -1)
        return fail_in(HW_INVALID, "%s: %s: ", c->op, field);
    if (t->dtype == HW_NONE)
        return fail(HW_INVALID, "%s: %s is absent", c->op, field);
    if (t->dtype < 0 || t->dtype >= HW_DTYPE_END)
        return fail(HW_INVALID, "%s: %s: %d is no dtype", c->op, field, (int)t->dtype);
    if (!(rule.dtypes & BIT(t->dtype))) {
        dtype_list(rule.dtypes, list, sizeof list);
        return fail(HW_INVALID, "%s: %s is %s; it may be %s", c->op, field,
                    hw_dtype_name(t->dtype), list);
    }
    if (t->rank < rule.rank_min || t->rank > rule.rank_max)
        return fail(HW_INVALID, "%s: %s has rank %d; it may be %d to %d", c->op, field,
                    (int)t->rank, (int)rule.rank_min, (int)rule.rank_max);
    return fail(HW_INVALID, "%s: %s is packed for a device; only b of a matmul may be",
                c->op, field);
}

static enum hw_status bad_layout(const struct check *c, const char *field,
                                 const struct hw_tensor *t, bool written)
{
    const int64_t block = hw_dtype_block(t->dtype), bytes = hw_dtype_bytes(t->dtype);
    const int32_t last = t->rank - 1;
    char text[TENSOR_TEXT];
    uint64_t span;

    for (int32_t i = 0; i < t->rank; i++) {
        if (t->extent[i] < 0)
            return fail(HW_INVALID, "%s: %s: extent %d is %lld", c->op, field, (int)i,
                        (long long)t->extent[i]);
        if (t->stride[i] < 0)
            return fail(HW_INVALID, "%s: %s: stride %d is %lld; strides are not negative",
                        c->op, field, (int)i, (long long)t->stride[i]);
        if (written && t->extent[i] > 1 && t->stride[i] == 0)
            return fail(HW_INVALID, "%s: %s is written, and its stride %d is 0", c->op,
                        field, (int)i);
    }
    if (t->extent[last] % block)
        return fail(HW_INVALID, "%s: %s: innermost extent %lld is not a multiple of %lld",
                    c->op, field, (long long)t->extent[last], (long long)block);
    if (block > 1 && t->stride[last] != bytes)
        return fail(
            HW_INVALID, "%s: %s: the innermost stride of %s is %lld bytes, not %lld", c->op,
            field, hw_dtype_name(t->dtype), (long long)bytes, (long long)t->stride[last]);
    if (!tensor_span(t, &span))
        return fail(HW_INVALID, "%s: %s: extents times strides overflow", c->op, field);
    if (!t->buffer && !t->data)
        return fail(HW_INVALID, "%s: %s: host tensor without data", c->op, field);
    if (t->buffer && t->buffer->device != c->impl) {
        const struct hw_device *owner = hw_buffer_device(t->buffer);
        return fail(HW_INVALID,
                    "%s: %s is a buffer of %s, the queue is one of %s: use hw_copy", c->op,
                    field, owner->name, c->device->name);
    }
    if (t->buffer && (t->offset > t->buffer->bytes || span > t->buffer->bytes - t->offset))
        return fail(HW_INVALID, "%s: %s: %llu bytes from offset %llu, in a buffer of %llu",
                    c->op, field, (unsigned long long)span, (unsigned long long)t->offset,
                    (unsigned long long)t->buffer->bytes);
    if (written && t->buffer && (t->buffer->flags & HW_BUFFER_READ_ONLY))
        return fail(HW_INVALID, "%s: %s is written, and its buffer is read-only", c->op,
                    field);
    if (written)
        return fail(HW_INVALID, "%s: elements of %s, %s, overlap each other", c->op, field,
                    tensor_text(t, text));
    return fail(HW_INVALID, "%s: %s: address and strides of %s are multiples of %lld",
                c->op, field, hw_dtype_name(t->dtype), (long long)(block > 1 ? 2 : bytes));
}

/* Whether no two elements share a byte, strides in any order: sorted by stride, each step
 * clears all that lies below it. */
static bool is_injective(const struct hw_tensor *t)
{
    bool done[HW_MAX_RANK] = { false };
    int64_t reach = hw_dtype_bytes(t->dtype);
    for (int32_t n = 0; n < t->rank; n++) {
        int32_t least = -1;
        for (int32_t i = 0; i < t->rank; i++)
            if (!done[i] && (least < 0 || t->stride[i] < t->stride[least]))
                least = i;
        done[least] = true;
        const int64_t count = least == t->rank - 1
                                  ? t->extent[least] / hw_dtype_block(t->dtype)
                                  : t->extent[least];
        if (count <= 1)
            continue;
        if (t->stride[least] < reach)
            return false;
        reach += (count - 1) * t->stride[least];
    }
    return true;
}

/* Where an operand's bytes lie: host addresses, or offsets in a buffer that the host can
 * not see. Empty and absent operands lie nowhere. */
struct range {
    const struct hw_buffer *space; /* NULL: the host's */
    uint64_t begin, end;
};

static inline void range_of(const struct hw_tensor *t, uint64_t bytes, struct range *range)
{
    const struct hw_buffer *buffer = t->buffer;
    const char *base = buffer ? buffer->host : t->data;
    range->space = buffer && !base ? buffer : NULL;
    range->begin = (uint64_t)(uintptr_t)base + t->offset;
    range->end = range->begin + bytes;
}

/* Everything about one operand by itself. Adds to check->cold. */
static enum hw_status operand_is(struct check *c, const char *field,
                                 const struct hw_tensor *t, struct rule rule,
                                 struct range *range)
{
    if ((uint32_t)t->dtype >= HW_DTYPE_END || !(rule.dtypes & BIT(t->dtype)) ||
        t->rank < rule.rank_min || t->rank > rule.rank_max || t->layout)
        return bad_form(c, field, t, rule);
    const int32_t last = t->rank - 1;
    const int64_t bytes = hw_dtype_bytes(t->dtype), block = hw_dtype_block(t->dtype);
    const int64_t align = block == 1 ? bytes : 2;
    uint64_t span = 0, all = t->offset;
    bool good = true, repeats = false;
    for (int32_t i = 0; i <= last; i++) {
        good &= t->extent[i] >= 0 && t->stride[i] >= 0;
        repeats |= t->extent[i] > 1 && t->stride[i] == 0;
        all |= (uint64_t)t->stride[i];
    }
    if (!good || t->extent[last] % block || !tensor_span(t, &span))
        return bad_layout(c, field, t, rule.written);
    if (span == 0) {
        c->empty |= rule.written;
        return HW_OK;
    }
    if (t->buffer)
        good = t->buffer->device == c->impl && t->offset <= t->buffer->bytes &&
               span <= t->buffer->bytes - t->offset &&
               !(rule.written && (t->buffer->flags & HW_BUFFER_READ_ONLY));
    else
        good = t->data != NULL;
    all |= t->buffer ? 0 : (uint64_t)(uintptr_t)t->data;
    if (!good || (rule.written && repeats) || (block > 1 && t->stride[last] != bytes))
        return bad_layout(c, field, t, rule.written);
    if ((all & (uint64_t)(align - 1)) || (rule.written && !is_injective(t)))
        return bad_layout(c, field, t, !(all & (uint64_t)(align - 1)));
    if (!t->buffer && !c->host_tensors)
        c->cold |= COLD_STAGE;
    if (!tensor_is_rows(t))
        c->cold |= COLD_VIEW;
    range_of(t, span, range);
    return HW_OK;
}

/* ---- two operands ---- */

static inline bool same_extents(const struct hw_tensor *a, const struct hw_tensor *b)
{
    bool same = a->rank == b->rank;
    for (int32_t i = 0; i < a->rank; i++)
        same &= a->extent[i] == b->extent[i];
    return same;
}

static enum hw_status bad_pair(const struct check *c, const char *field,
                               const struct hw_tensor *t, const char *other_field,
                               const struct hw_tensor *other, const char *rule)
{
    char text[TENSOR_TEXT], other_text[TENSOR_TEXT];
    return fail(HW_INVALID, "%s: %s is %s, %s is %s: %s", c->op, field,
                tensor_text(t, text), other_field, tensor_text(other, other_text), rule);
}

/* Same dtype and extents. */
static inline enum hw_status alike(const struct check *c, const char *field,
                                   const struct hw_tensor *t, const char *other_field,
                                   const struct hw_tensor *other)
{
    if (t->dtype != other->dtype)
        return bad_pair(c, field, t, other_field, other, "their dtypes must be equal");
    if (!same_extents(t, other))
        return bad_pair(c, field, t, other_field, other, "their extents must be equal");
    return HW_OK;
}

/* `t` repeats to `to`, aligned at the innermost extent. */
static inline bool broadcasts(const struct hw_tensor *t, const struct hw_tensor *to)
{
    bool fits = t->rank <= to->rank;
    for (int32_t i = 1; fits && i <= t->rank; i++) {
        const int64_t n = t->extent[t->rank - i];
        fits = n == to->extent[to->rank - i] || n == 1;
    }
    return fits;
}

/* Columns of one matrix: the same outermost step, and the two spans within it side by side.
 */
static bool interleave(const struct hw_tensor *a, const struct hw_tensor *b, uint64_t apart)
{
    if (a->rank < 2 || a->rank != b->rank)
        return false;
    struct hw_tensor row_a = *a, row_b = *b;
    int32_t axis = 0; /* the outermost that has more than one element */
    while (axis < a->rank - 1 && a->extent[axis] <= 1 && b->extent[axis] <= 1)
        axis++;
    const uint64_t step = (uint64_t)a->stride[axis];
    uint64_t span_a, span_b;
    if (axis == a->rank - 1 || a->stride[axis] != b->stride[axis] || step == 0)
        return false;
    row_a.extent[axis] = row_b.extent[axis] = 1;
    if (!tensor_span(&row_a, &span_a) || !tensor_span(&row_b, &span_b))
        return false;
    const uint64_t from = apart % step; /* where b's row starts in a's step */
    return span_a <= from && from + span_b <= step;
}

/* A written operand and another whose bytes meet: one and the same, where that is allowed,
 * or columns of one matrix, or an error. */
static enum hw_status overlap(const struct check *c, const char *field,
                              const struct hw_tensor *t, const char *other_field,
                              const struct hw_tensor *other, uint64_t apart, bool in_place)
{
    if (in_place && apart == 0 && t->dtype == other->dtype && same_extents(t, other) &&
        memcmp(t->stride, other->stride, sizeof t->stride[0] * (size_t)t->rank) == 0)
        return HW_OK;
    if ((int64_t)apart >= 0 ? interleave(t, other, apart) : interleave(other, t, -apart))
        return HW_OK;
    return fail(HW_INVALID, "%s: %s overlaps %s%s", c->op, field, other_field,
                in_place ? "; in place means the same address and strides" : "");
}

static inline bool meet(const struct range *a, const struct range *b)
{
    return a->begin < b->end && b->begin < a->end && a->space == b->space;
}

/* ---- how the checks below read ---- */

#define TRY(call)                                                                          \
    do {                                                                                   \
        enum hw_status status_ = (call);                                                   \
        if (status_)                                                                       \
            return status_;                                                                \
    } while (0)
#define OPERAND(field, ...)                                                                \
    TRY(operand_is(c, #field, &op->field, (struct rule){ __VA_ARGS__ }, &field##_range))
#define READS(field, types, low, high)                                                     \
    struct range field##_range = { 0 };                                                    \
    OPERAND(field, types, low, high, false)
#define MAY_READ(field, types, low, high)                                                  \
    struct range field##_range = { 0 };                                                    \
    if (op->field.dtype)                                                                   \
    OPERAND(field, types, low, high, false)
#define WRITES(field, types, low, high)                                                    \
    struct range field##_range = { 0 };                                                    \
    OPERAND(field, types, low, high, true)
#define ALIKE(a, b) TRY(alike(c, #a, &op->a, #b, &op->b))
#define MEET(out, in, in_place)                                                            \
    do {                                                                                   \
        if (meet(&out##_range, &in##_range))                                               \
            TRY(overlap(c, #out, &op->out, #in, &op->in,                                   \
                        in##_range.begin - out##_range.begin, in_place));                  \
    } while (0)
#define APART(out, in)  MEET(out, in, false)
#define MAY_BE(out, in) MEET(out, in, true)
#define PAIR(rule, a, b, words)                                                            \
    do {                                                                                   \
        if (!(rule))                                                                       \
            return bad_pair(c, #a, &op->a, #b, &op->b, words);                             \
    } while (0)
#define VALUE(rule, ...)                                                                   \
    do {                                                                                   \
        if (!(rule))                                                                       \
            return fail(HW_INVALID, __VA_ARGS__);                                          \
    } while (0)

static inline int64_t from_right(const struct hw_tensor *t, int32_t i)
{
    return i < t->rank ? t->extent[t->rank - 1 - i] : 1;
}

static inline bool same_or_f32(const struct hw_tensor *t, const struct hw_tensor *x)
{
    return !t->dtype || t->dtype == x->dtype || t->dtype == HW_F32;
}

/* ---- one check an op ---- */

static enum hw_status check_matmul(struct check *c, const struct hw_matmul *op)
{
    READS(a, FLOATS, 2, 4);
    READS(b, FLOATS | BLOCKS, 2, 4);
    MAY_READ(bias, FLOATS, 1, 1);
    WRITES(c, FLOATS, 2, 4);
    VALUE(op->transpose_a <= 1 && op->transpose_b <= 1,
          "matmul: transpose_a and transpose_b are 0 or 1");
    const int ta = op->transpose_a != 0, tb = op->transpose_b != 0;
    PAIR(tb || !(BLOCKS & BIT(op->b.dtype)), b, c,
         "a block type is stored [N,K]: set transpose_b");
    PAIR(from_right(&op->a, ta ? 1 : 0) == from_right(&op->b, tb ? 0 : 1), a, b,
         "their K differ");
    PAIR(from_right(&op->c, 1) == from_right(&op->a, ta ? 0 : 1), c, a, "their M differ");
    PAIR(from_right(&op->c, 0) == from_right(&op->b, tb ? 1 : 0), c, b, "their N differ");
    const bool batched = (op->a.rank | op->b.rank | op->c.rank) != 2;
    for (int32_t i = 2; batched && i < HW_MAX_RANK; i++) {
        const int64_t n = from_right(&op->c, i);
        const int64_t na = from_right(&op->a, i), nb = from_right(&op->b, i);
        PAIR(na == n || na == 1, a, c, "batches do not broadcast");
        PAIR(nb == n || nb == 1, b, c, "batches do not broadcast");
    }
    if (op->bias.dtype)
        PAIR(op->bias.extent[0] == from_right(&op->c, 0), bias, c, "bias is [N]");
    APART(c, a);
    APART(c, b);
    APART(c, bias);
    return HW_OK;
}

static inline bool good_eps(float eps)
{
    return eps >= 0.0f && eps < INFINITY;
}

static enum hw_status check_rmsnorm(struct check *c, const struct hw_rmsnorm *op)
{
    READS(x, FLOATS, 1, 4);
    MAY_READ(weight, FLOATS, 1, 1);
    WRITES(y, FLOATS, 1, 4);
    ALIKE(y, x);
    PAIR(same_or_f32(&op->weight, &op->x), weight, x, "weight is of x's dtype, or f32");
    if (op->weight.dtype)
        PAIR(op->weight.extent[0] == from_right(&op->x, 0), weight, x, "weight is [cols]");
    VALUE(good_eps(op->eps), "rmsnorm: eps is %g; it must be finite and not negative",
          (double)op->eps);
    MAY_BE(y, x);
    APART(y, weight);
    return HW_OK;
}

static enum hw_status check_softmax(struct check *c, const struct hw_softmax *op)
{
    READS(x, FLOATS, 1, 4);
    MAY_READ(mask, FLOATS, 1, 4);
    WRITES(y, FLOATS, 1, 4);
    ALIKE(y, x);
    PAIR(same_or_f32(&op->mask, &op->x), mask, x, "mask is of x's dtype, or f32");
    if (op->mask.dtype)
        PAIR(broadcasts(&op->mask, &op->x), mask, x, "mask does not broadcast to x");
    VALUE(op->log <= 1, "softmax: log is 0 or 1");
    VALUE(isfinite(op->scale), "softmax: scale is not finite");
    MAY_BE(y, x);
    APART(y, mask);
    return HW_OK;
}

static enum hw_status check_silu(struct check *c, const struct hw_silu *op)
{
    READS(x, FLOATS, 1, 4);
    WRITES(y, FLOATS, 1, 4);
    ALIKE(y, x);
    MAY_BE(y, x);
    return HW_OK;
}

static enum hw_status check_rope(struct check *c, const struct hw_rope *op)
{
    READS(x, FLOATS, 3, 4);
    MAY_READ(positions, BIT(HW_I32), 1, 1);
    MAY_READ(factors, BIT(HW_F32), 1, 1);
    WRITES(y, FLOATS, 3, 4);
    ALIKE(y, x);
    const int64_t width = from_right(&op->x, 0), dims = op->dims ? op->dims : width;
    VALUE(dims >= 0 && dims <= width && dims % 2 == 0,
          "rope: dims is %lld; it must be even and at most %lld, the last extent of x",
          (long long)dims, (long long)width);
    VALUE(op->interleaved <= 1, "rope: interleaved is 0 or 1");
    VALUE(op->theta >= 0.0f && isfinite(op->theta) && isfinite(op->scale),
          "rope: theta %g and scale %g must be finite, theta positive", (double)op->theta,
          (double)op->scale);
    if (op->positions.dtype)
        PAIR(op->positions.extent[0] == from_right(&op->x, 2), positions, x,
             "positions is [T]");
    if (op->factors.dtype)
        VALUE(op->factors.extent[0] == dims / 2,
              "rope: factors has %lld elements; dims/2 is %lld",
              (long long)op->factors.extent[0], (long long)dims / 2);
    MAY_BE(y, x);
    APART(y, positions);
    APART(y, factors);
    return HW_OK;
}

#define MAX_HEAD 256

static enum hw_status attention_shapes(struct check *c, const struct hw_attention *op)
{
    const int64_t q_heads = from_right(&op->q, 1), kv_heads = from_right(&op->k, 1);
    for (int32_t i = 2; i < HW_MAX_RANK; i++)
        PAIR(from_right(&op->k, i) == from_right(&op->v, i), k, v,
             "batches and keys of k and v differ");
    PAIR(kv_heads == from_right(&op->v, 1), k, v, "their heads differ");
    PAIR(from_right(&op->q, 3) == from_right(&op->k, 3), q, k, "their batches differ");
    PAIR(from_right(&op->q, 0) == from_right(&op->k, 0), q, k, "their head sizes differ");
    PAIR(from_right(&op->q, 0) <= MAX_HEAD && from_right(&op->v, 0) <= MAX_HEAD, q, v,
         "heads have at most 256 elements");
    PAIR(kv_heads > 0 ? q_heads % kv_heads == 0 : q_heads == 0, q, k,
         "query heads are a multiple of key heads");
    for (int32_t i = 1; i < HW_MAX_RANK; i++)
        PAIR(from_right(&op->y, i) == from_right(&op->q, i), y, q,
             "y has q's batches, queries and heads");
    PAIR(from_right(&op->y, 0) == from_right(&op->v, 0), y, v, "y has v's head size");
    return HW_OK;
}

static enum hw_status attention_bias(struct check *c, const struct hw_attention *op)
{
    const int64_t full[] = { from_right(&op->k, 2), from_right(&op->q, 2),
                             from_right(&op->q, 1), from_right(&op->q, 3) };
    PAIR(same_or_f32(&op->bias, &op->q), bias, q, "bias is of q's dtype, or f32");
    PAIR(from_right(&op->bias, 0) == full[0], bias, k, "bias has a value for each key");
    for (int32_t i = 1; i < HW_MAX_RANK; i++) {
        const int64_t n = from_right(&op->bias, i);
        PAIR(n == full[i] || n == 1, bias, q, "bias does not broadcast to [B,Hq,Tq,Tmax]");
    }
    return HW_OK;
}

static enum hw_status check_attention(struct check *c, const struct hw_attention *op)
{
    const uint32_t cache = FLOATS | BIT(HW_Q8_0);
    READS(q, FLOATS, 3, 4);
    READS(k, cache, 3, 4);
    READS(v, cache, 3, 4);
    MAY_READ(bias, FLOATS, 1, 4);
    MAY_READ(lengths, BIT(HW_I32), 1, 1);
    WRITES(y, FLOATS, 3, 4);
    PAIR(op->y.dtype == op->q.dtype, y, q, "their dtypes must be equal");
    PAIR(op->k.dtype == op->v.dtype, k, v, "their dtypes must be equal");
    TRY(attention_shapes(c, op));
    if (op->bias.dtype)
        TRY(attention_bias(c, op));
    if (op->lengths.dtype)
        PAIR(op->lengths.extent[0] == from_right(&op->q, 3), lengths, q, "lengths is [B]");
    VALUE(op->length >= 0 && op->length <= from_right(&op->k, 2),
          "attention: length is %lld; k has %lld keys", (long long)op->length,
          (long long)from_right(&op->k, 2));
    VALUE(op->window >= 0, "attention: window is %lld", (long long)op->window);
    VALUE(op->causal <= 1, "attention: causal is 0 or 1");
    VALUE(isfinite(op->scale) && isfinite(op->softcap) && op->softcap >= 0.0f,
          "attention: scale %g and softcap %g must be finite, softcap not negative",
          (double)op->scale, (double)op->softcap);
    APART(y, q);
    APART(y, k);
    APART(y, v);
    APART(y, bias);
    APART(y, lengths);
    return HW_OK;
}

/* One rule, two ops. */
#define CHECK_BINARY(name)                                                                 \
    static enum hw_status check_##name(struct check *c, const struct hw_##name *op)        \
    {                                                                                      \
        READS(a, FLOATS, 1, 4);                                                            \
        READS(b, FLOATS, 1, 4);                                                            \
        WRITES(y, FLOATS, 1, 4);                                                           \
        PAIR(op->a.dtype == op->y.dtype, a, y, "their dtypes must be equal");              \
        PAIR(op->b.dtype == op->y.dtype, b, y, "their dtypes must be equal");              \
        PAIR(broadcasts(&op->a, &op->y), a, y, "a does not broadcast to y");               \
        PAIR(broadcasts(&op->b, &op->y), b, y, "b does not broadcast to y");               \
        MAY_BE(y, a);                                                                      \
        MAY_BE(y, b);                                                                      \
        return HW_OK;                                                                      \
    }
CHECK_BINARY(add)
CHECK_BINARY(mul)

static enum hw_status check_swiglu(struct check *c, const struct hw_swiglu *op)
{
    READS(gate, FLOATS, 1, 4);
    MAY_READ(up, FLOATS, 1, 4);
    WRITES(y, FLOATS, 1, 4);
    if (op->up.dtype) {
        ALIKE(up, gate);
        ALIKE(y, gate);
        MAY_BE(y, gate);
        MAY_BE(y, up);
        return HW_OK;
    }
    PAIR(op->y.dtype == op->gate.dtype, y, gate, "their dtypes must be equal");
    PAIR(op->y.rank == op->gate.rank && from_right(&op->y, 0) <= INT64_MAX / 2 &&
             2 * from_right(&op->y, 0) == from_right(&op->gate, 0),
         gate, y, "without up, gate is [..,2F] and y [..,F]");
    for (int32_t i = 1; i < HW_MAX_RANK; i++)
        PAIR(from_right(&op->y, i) == from_right(&op->gate, i), gate, y,
             "their outer extents must be equal");
    APART(y, gate);
    return HW_OK;
}

static enum hw_status check_add_rmsnorm(struct check *c, const struct hw_add_rmsnorm *op)
{
    WRITES(residual, FLOATS, 1, 4);
    READS(x, FLOATS, 1, 4);
    MAY_READ(weight, FLOATS, 1, 1);
    WRITES(y, FLOATS, 1, 4);
    ALIKE(y, residual);
    ALIKE(x, residual);
    PAIR(same_or_f32(&op->weight, &op->x), weight, x, "weight is of x's dtype, or f32");
    if (op->weight.dtype)
        PAIR(op->weight.extent[0] == from_right(&op->x, 0), weight, x, "weight is [cols]");
    VALUE(good_eps(op->eps), "add_rmsnorm: eps is %g; it must be finite and not negative",
          (double)op->eps);
    APART(residual, x);
    APART(residual, weight);
    APART(y, residual);
    MAY_BE(y, x);
    APART(y, weight);
    return HW_OK;
}

static enum hw_status check_get_rows(struct check *c, const struct hw_get_rows *op)
{
    READS(table, FLOATS | BLOCKS, 2, 2);
    READS(rows, BIT(HW_I32), 1, 1);
    WRITES(y, FLOATS, 2, 2);
    PAIR(op->y.extent[0] == op->rows.extent[0], y, rows, "y has a row for each index");
    PAIR(op->y.extent[1] == op->table.extent[1], y, table, "their columns differ");
    APART(y, table);
    APART(y, rows);
    return HW_OK;
}

static enum hw_status check_set_rows(struct check *c, const struct hw_set_rows *op)
{
    READS(x, FLOATS, 2, 2);
    READS(rows, BIT(HW_I32), 1, 1);
    WRITES(table, FLOATS | BIT(HW_Q8_0), 2, 2);
    PAIR(op->x.extent[0] == op->rows.extent[0], x, rows, "x has a row for each index");
    PAIR(op->x.extent[1] == op->table.extent[1], x, table, "their columns differ");
    c->empty |= op->x.extent[0] == 0;
    APART(table, x);
    APART(table, rows);
    return HW_OK;
}

static enum hw_status check_copy(struct check *c, const struct hw_copy *op)
{
    const uint32_t quantised = BIT(HW_Q8_0) | BIT(HW_Q4_0);
    READS(src, EVERY, 1, 4);
    WRITES(dst, EVERY, 1, 4);
    PAIR(same_extents(&op->src, &op->dst), dst, src, "their extents must be equal");
    const uint32_t from = BIT(op->src.dtype), to = BIT(op->dst.dtype);
    PAIR(from == to || ((from & (FLOATS | BLOCKS)) && (to & FLOATS)) ||
             ((from & FLOATS) && (to & quantised)),
         dst, src, "this conversion does not exist");
    APART(dst, src);
    c->cold &= ~(uint32_t)COLD_VIEW; /* copy takes any strides */
    return HW_OK;
}

static enum hw_status check_argmax(struct check *c, const struct hw_argmax *op)
{
    READS(x, FLOATS, 1, 4);
    WRITES(y, BIT(HW_I32), 1, 4);
    const int32_t rank = op->x.rank, shift = op->y.rank == rank ? 0 : 1;
    PAIR(op->y.rank == rank || (rank > 1 && op->y.rank == rank - 1), y, x,
         "y has x's leading extents");
    for (int32_t i = 0; i < rank - 1; i++)
        PAIR(op->y.extent[i] == op->x.extent[i], y, x, "y has x's leading extents");
    PAIR(shift || op->y.extent[rank - 1] == 1, y, x, "y's last extent is 1, or dropped");
    PAIR(c->empty || from_right(&op->x, 0) > 0, x, y, "rows of nothing have no largest");
    APART(y, x);
    return HW_OK;
}

#define ANY(NAME, name)                                                                    \
    static enum hw_status any_##name(struct check *c, const void *op)                      \
    {                                                                                      \
        return check_##name(c, op);                                                        \
    }
HW_OPS(ANY)

#define ROW(NAME, name) any_##name,
enum hw_status (*const op_check[HW_OP_COUNT])(struct check *check,
                                              const void *op) = { HW_OPS(ROW) };
