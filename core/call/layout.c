/* SPDX-License-Identifier: MIT */
/* layout.c - the bytes that a tensor covers, and its faults. */
#include "call/layout.h"

#include "base/likely.h"
#include "memory/dtype.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- descriptions ---- */

const char *describe(const struct hw_tensor *tensor, char text[DESCRIBE_SIZE])
{
    if (tensor->dtype == HW_NONE) {
        snprintf(text, DESCRIBE_SIZE, "absent");
        return text;
    }
    int n = snprintf(text, DESCRIBE_SIZE, "%s [", hw_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank && i < HW_MAX_RANK; i++)
        n += snprintf(text + n, (size_t)(DESCRIBE_SIZE - n), "%s%" PRId64, i ? ", " : "",
                      tensor->extent[i]);
    snprintf(text + n, (size_t)(DESCRIBE_SIZE - n), "]");
    return text;
}

const char *describe_dtypes(uint32_t dtypes, char text[DESCRIBE_SIZE])
{
    int n = 0;
    text[0] = '\0';
    for (int32_t d = 1; d < HW_DTYPE_END; d++) {
        if (!(dtypes >> d & 1))
            continue;
        uint32_t rest = dtypes >> d >> 1;
        n += snprintf(text + n, (size_t)(DESCRIBE_SIZE - n), "%s%s",
                      n == 0 ? "" : (rest ? ", " : " or "), hw_dtype_name(d));
    }
    return text;
}

/* ---- layout ---- */

bool tensor_empty(const struct hw_tensor *tensor)
{
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->extent[i] == 0)
            return true;
    return false;
}

bool make_dense(struct hw_tensor *tensor, const struct hw_tensor *like, uint64_t *bytes)
{
    const int inner = tensor->rank - 1;
    const int64_t block = hw_dtype_block(tensor->dtype);
    int64_t stride = hw_dtype_bytes(tensor->dtype);
    bool empty = tensor_empty(tensor);
    memset(tensor->stride, 0, sizeof tensor->stride);
    for (int i = inner; i >= 0; i--) {
        int64_t extent = i == inner ? tensor->extent[i] / block : tensor->extent[i];
        if (like && i != inner && like->stride[i] == 0 && extent > 1)
            continue;
        tensor->stride[i] = stride;
        if (!empty && __builtin_mul_overflow(stride, extent, &stride))
            return false;
    }
    *bytes = empty ? 0 : (uint64_t)stride;
    return true;
}

bool tensor_dense(const struct hw_tensor *tensor)
{
    struct hw_tensor dense = *tensor;
    uint64_t bytes;
    if (!make_dense(&dense, NULL, &bytes))
        return false;
    for (int i = 0; i < tensor->rank; i++) {
        int64_t step = i == tensor->rank - 1 ? hw_dtype_block(tensor->dtype) : 1;
        if (tensor->extent[i] > step && tensor->stride[i] != dense.stride[i])
            return false;
    }
    return true;
}

/* ---- one tensor ---- */

bool faulty(char why[FAULT_SIZE], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, FAULT_SIZE, format, arguments);
    va_end(arguments);
    return true;
}

/* The number of steps along an axis; along the innermost axis, steps from block to block. */
static int64_t steps_of(const struct hw_tensor *t, int axis)
{
    const int shift = axis == t->rank - 1 ? dtype_rows[t->dtype].shift : 0;
    return (t->extent[axis] >> shift) - 1;
}

static bool axis_fault(const struct hw_tensor *t, int axis, char why[FAULT_SIZE])
{
    const int64_t extent = t->extent[axis], stride = t->stride[axis];
    const int alignment = dtype_rows[t->dtype].alignment;
    if (unlikely((extent | stride) < 0))
        return faulty(why, "%s[%d] is %" PRId64 ", must not be negative",
                      extent < 0 ? "extent" : "stride", axis, extent < 0 ? extent : stride);
    if (unlikely(stride & (alignment - 1)))
        return faulty(why, "stride[%d] is %" PRId64 ", must be a multiple of %d for %s",
                      axis, stride, alignment, hw_dtype_name(t->dtype));
    return false;
}

/* Blocks are whole, and contiguous. */
static bool blocks_fault(const struct hw_tensor *t, char why[FAULT_SIZE])
{
    const struct dtype_row row = dtype_rows[t->dtype];
    const int inner = t->rank - 1, block = 1 << row.shift;
    if (unlikely(t->extent[inner] & (block - 1)))
        return faulty(why,
                      "extent[%d] is %" PRId64 ", must be a multiple of %d, the block size "
                      "of %s",
                      inner, t->extent[inner], block, hw_dtype_name(t->dtype));
    if (unlikely(block > 1 && t->stride[inner] != row.bytes))
        return faulty(
            why, "stride[%d] is %" PRId64 "; blocks of %s must be contiguous: %d bytes",
            inner, t->stride[inner], hw_dtype_name(t->dtype), row.bytes);
    return false;
}

bool shape_fault(const struct hw_tensor *t, char why[FAULT_SIZE])
{
    if (unlikely(t->dtype <= HW_NONE || t->dtype >= HW_DTYPE_END))
        return faulty(why, t->dtype ? "%d is not a dtype" : "it is absent (dtype %d)",
                      (int)t->dtype);
    if (unlikely(t->rank < 1 || t->rank > HW_MAX_RANK))
        return faulty(why, "rank is %d, must be 1 to %d", (int)t->rank, HW_MAX_RANK);
    if (unlikely(t->reserved[0] | t->reserved[1] | t->reserved[2]))
        return faulty(why, "its reserved fields are not zero");
    for (int i = 0; i < t->rank; i++)
        if (unlikely(axis_fault(t, i, why)))
            return true;
    for (int i = t->rank; i < HW_MAX_RANK; i++)
        if (unlikely(t->extent[i] | t->stride[i]))
            return faulty(
                why, "extent[%d] and stride[%d] are beyond its rank %d and must be zero", i,
                i, (int)t->rank);
    return blocks_fault(t, why);
}

/* Sets the bytes from the first element to the last. */
static bool span_fault(const struct hw_tensor *t, uint64_t *span, char why[FAULT_SIZE])
{
    int64_t count = 1, bytes = dtype_rows[t->dtype].bytes, reach;
    bool overflow = false;
    for (int i = t->rank - 1; i >= 0; i--) {
        overflow |= __builtin_mul_overflow(count, t->extent[i], &count);
        overflow |= __builtin_mul_overflow(steps_of(t, i), t->stride[i], &reach);
        overflow |= __builtin_add_overflow(bytes, reach, &bytes);
    }
    if (unlikely(overflow))
        return faulty(why, "its number of elements or bytes overflows 63 bits");
    *span = count ? (uint64_t)bytes : 0;
    return false;
}

/* Whether `span` bytes of the tensor lie outside its buffer or the address space. */
static bool place_fault(const struct hw_tensor *t, uint64_t span, struct byte_range *where,
                        char why[FAULT_SIZE])
{
    const struct hw_buffer *buffer = t->buffer;
    const void *base = buffer ? buffer->host : t->data;
    const uint64_t alignment = dtype_rows[t->dtype].alignment;
    uint64_t begin = t->offset, end;
    if (unlikely(buffer &&
                 (__builtin_add_overflow(begin, span, &end) || end > buffer->bytes)))
        return faulty(why,
                      "%" PRIu64 " bytes at offset %" PRIu64
                      " exceed its buffer of %" PRIu64 " bytes",
                      span, begin, buffer->bytes);
    if (unlikely(!buffer && !base && span))
        return faulty(why, "it has neither buffer nor data");
    if (unlikely(__builtin_add_overflow(begin, (uint64_t)(uintptr_t)base, &begin) ||
                 __builtin_add_overflow(begin, span, &end)))
        return faulty(why,
                      "%" PRIu64 " bytes at offset %" PRIu64 " exceed the address space",
                      span, t->offset);
    if (unlikely(begin & (alignment - 1)))
        return faulty(
            why, "its first element is not aligned to %" PRIu64 " bytes, as %s must be",
            alignment, hw_dtype_name(t->dtype));
    *where = (struct byte_range){ .space = base ? NULL : buffer,
                                  .begin = span ? begin : 0,
                                  .end = span ? end : 0 };
    return false;
}

/* Whether two elements of an output may share bytes. Sorted by stride, each axis must step over
 * everything inside it. This also refuses layouts that interleave without nesting, but no
 * constructor makes such a layout. */
static bool folds(const struct hw_tensor *t, char why[FAULT_SIZE])
{
    int order[HW_MAX_RANK], n = 0;
    for (int i = 0; i < t->rank; i++) {
        if (steps_of(t, i) <= 0)
            continue;
        int at = n++;
        for (; at > 0 && t->stride[order[at - 1]] > t->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    int64_t inside = dtype_rows[t->dtype].bytes;
    for (int k = 0; k < n; k++) {
        int axis = order[k];
        if (unlikely(t->stride[axis] < inside))
            return faulty(why,
                          "it is an output, and with stride[%d] of %" PRId64
                          " its elements overlap",
                          axis, t->stride[axis]);
        inside += steps_of(t, axis) * t->stride[axis];
    }
    return false;
}

bool bytes_fault(const struct hw_tensor *t, bool writes, struct byte_range *where,
                 char why[FAULT_SIZE])
{
    uint64_t span = 0;
    return span_fault(t, &span, why) || place_fault(t, span, where, why) ||
           (writes && span && folds(t, why));
}

bool tensor_fault(const struct hw_tensor *t, bool writes, char why[FAULT_SIZE])
{
    struct byte_range where;
    return shape_fault(t, why) || bytes_fault(t, writes, &where, why);
}

/* ---- two tensors ---- */

/* The bytes that a tensor covers in each period of `period` bytes: the span of all axes whose
 * stride is not a multiple of the period. */
static bool within_period(const struct hw_tensor *t, int64_t period, uint64_t *span)
{
    int64_t bytes = hw_dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        if (steps_of(t, i) > 0 && t->stride[i] % period != 0)
            bytes += steps_of(t, i) * t->stride[i];
    *span = (uint64_t)bytes;
    return bytes <= period;
}

static bool disjoint_in_period(const struct hw_tensor *a, uint64_t a_begin,
                               const struct hw_tensor *b, uint64_t b_begin, int64_t period)
{
    uint64_t a_span, b_span, p = (uint64_t)period;
    if (!within_period(a, period, &a_span) || !within_period(b, period, &b_span))
        return false;
    uint64_t ahead = (b_begin % p + p - a_begin % p) % p; /* from a to the next b */
    return ahead >= a_span && p - ahead >= b_span;
}

/* Columns of one matrix and heads of one projection are interleaved: modulo a stride of either
 * tensor, they cover different bytes. True means that the tensors share no byte. False does not
 * mean that they share one. */
bool interleaved(const struct hw_tensor *a, const struct byte_range *a_bytes,
                 const struct hw_tensor *b, const struct byte_range *b_bytes)
{
    if (a->layout || b->layout)
        return false;
    for (int i = 0; i < HW_MAX_RANK; i++) {
        if (i < a->rank && a->stride[i] > 0 &&
            disjoint_in_period(a, a_bytes->begin, b, b_bytes->begin, a->stride[i]))
            return true;
        if (i < b->rank && b->stride[i] > 0 &&
            disjoint_in_period(a, a_bytes->begin, b, b_bytes->begin, b->stride[i]))
            return true;
    }
    return false;
}
