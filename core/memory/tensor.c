/* SPDX-License-Identifier: MIT */
/* tensor.c - constructors and views of tensors. Nothing here accesses the memory of a tensor. */
#include "base/argument.h"
#include "base/message.h"
#include "call/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t hw_tensor_bytes(const struct hw_tensor *tensor)
{
    if (!tensor || hw_dtype_bytes(tensor->dtype) == 0 || tensor->rank < 1 ||
        tensor->rank > HW_MAX_RANK || tensor_empty(tensor))
        return 0;
    uint64_t bytes = (uint64_t)hw_dtype_bytes(tensor->dtype);
    for (int i = 0; i < tensor->rank; i++) {
        int64_t step = i == tensor->rank - 1 ? hw_dtype_block(tensor->dtype) : 1;
        uint64_t reach;
        if (tensor->extent[i] < 0 || tensor->stride[i] < 0 ||
            __builtin_mul_overflow((uint64_t)(tensor->extent[i] / step - 1),
                                   (uint64_t)tensor->stride[i], &reach) ||
            __builtin_add_overflow(bytes, reach, &bytes))
            return 0;
    }
    return bytes;
}

/* ---- constructors ---- */

/* After an error the tensor is absent, so that no op accepts it. */
static enum hw_status tensor_refuse(struct hw_tensor *tensor, enum hw_status status)
{
    memset(tensor, 0, sizeof *tensor);
    return status;
}

/* Checks the tensor that `function` made, like the check of an op. */
static enum hw_status tensor_accept(struct hw_tensor *tensor, const struct hw_tensor *from,
                                    const char *function)
{
    char why[FAULT_SIZE];
    if (!tensor_fault(from, false, why))
        return *tensor = *from, HW_OK;
    return tensor_refuse(tensor, fail(HW_INVALID, "%s: %s", function, why));
}

/* Sets dtype, rank, extents, and the strides of a contiguous tensor. */
static enum hw_status tensor_shape(struct hw_tensor *tensor, int32_t dtype, int32_t rank,
                                   const int64_t *extents, const char *function)
{
    uint64_t bytes;
    memset(tensor, 0, sizeof *tensor);
    if (!extents)
        return fail_null(function, "extents");
    if (hw_dtype_bytes(dtype) == 0)
        return fail(HW_INVALID, "%s: %d is not a dtype", function, (int)dtype);
    if (rank < 1 || rank > HW_MAX_RANK)
        return fail(HW_INVALID, "%s: rank is %d, must be 1 to %d", function, (int)rank,
                    HW_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (extents[i] < 0)
            return fail(HW_INVALID, "%s: extents[%d] is %" PRId64 ", must not be negative",
                        function, i, extents[i]);
    tensor->dtype = dtype;
    tensor->rank = rank;
    memcpy(tensor->extent, extents, (size_t)rank * sizeof *extents);
    if (!make_dense(tensor, NULL, &bytes))
        return fail(HW_INVALID, "%s: more than 2^63 bytes", function);
    return HW_OK;
}

enum hw_status hw_tensor_host(struct hw_tensor *tensor, const void *data, int32_t dtype,
                              int32_t rank, const int64_t *extents)
{
    REQUIRE(tensor);
    struct hw_tensor t;
    enum hw_status status = tensor_shape(&t, dtype, rank, extents, "hw_tensor_host");
    if (status)
        return tensor_refuse(tensor, status);
    t.data = (void *)(uintptr_t)data;
    return tensor_accept(tensor, &t, "hw_tensor_host");
}

enum hw_status hw_tensor_view(struct hw_tensor *tensor, struct hw_buffer *buffer,
                              uint64_t offset, int32_t dtype, int32_t rank,
                              const int64_t *extents)
{
    REQUIRE(tensor);
    struct hw_tensor t;
    enum hw_status status = tensor_shape(&t, dtype, rank, extents, "hw_tensor_view");
    if (!status && !buffer)
        status = fail_null("hw_tensor_view", "buffer");
    if (status)
        return tensor_refuse(tensor, status);
    t.buffer = buffer;
    t.offset = offset;
    return tensor_accept(tensor, &t, "hw_tensor_view");
}

enum hw_status hw_tensor_alloc(struct hw_device *device, uint32_t flags, int32_t dtype,
                               int32_t rank, const int64_t *extents,
                               struct hw_tensor *tensor)
{
    REQUIRE(tensor);
    struct hw_tensor t;
    char why[FAULT_SIZE];
    enum hw_status status = tensor_shape(&t, dtype, rank, extents, "hw_tensor_alloc");
    if (!status && shape_fault(&t, why))
        status = fail(HW_INVALID, "hw_tensor_alloc: %s", why);
    if (status || (status = hw_buffer_alloc(device, hw_tensor_bytes(&t), flags, &t.buffer)))
        return tensor_refuse(tensor, status);
    *tensor = t;
    return HW_OK;
}

/* ---- views ---- */

/* HW_OK if views of `of` can be made. */
static enum hw_status view_check(const struct hw_tensor *tensor, const struct hw_tensor *of,
                                 const char *function)
{
    char why[FAULT_SIZE];
    if (!tensor || !of)
        return fail_null(function, tensor ? "of" : "tensor");
    if (of->layout)
        return fail(HW_INVALID, "%s: of is packed; a packed tensor can only be used whole",
                    function);
    if (tensor_fault(of, false, why))
        return fail(HW_INVALID, "%s: of: %s", function, why);
    return HW_OK;
}

static enum hw_status axis_check(const char *function, const struct hw_tensor *of,
                                 int32_t axis)
{
    return axis >= 0 && axis < of->rank
               ? HW_OK
               : fail(HW_INVALID, "%s: axis is %d, must be 0 to %d", function, (int)axis,
                      (int)of->rank - 1);
}

static bool blocks_along(const struct hw_tensor *t, int32_t axis)
{
    return axis == t->rank - 1 && hw_dtype_block(t->dtype) > 1;
}

enum hw_status hw_tensor_slice(struct hw_tensor *tensor, const struct hw_tensor *of,
                               int32_t axis, int64_t begin, int64_t end)
{
    enum hw_status status = view_check(tensor, of, "hw_tensor_slice");
    if (status || (status = axis_check("hw_tensor_slice", of, axis)))
        return status;
    if (begin < 0 || begin > end || end > of->extent[axis])
        return fail(HW_INVALID,
                    "hw_tensor_slice: elements %" PRId64 " to %" PRId64
                    " exceed extent[%d], which is %" PRId64,
                    begin, end, (int)axis, of->extent[axis]);
    int64_t block = blocks_along(of, axis) ? hw_dtype_block(of->dtype) : 1;
    if (begin % block || end % block)
        return fail(HW_INVALID,
                    "hw_tensor_slice: elements %" PRId64 " to %" PRId64
                    " are not whole blocks of %" PRId64 " (%s)",
                    begin, end, block, hw_dtype_name(of->dtype));
    struct hw_tensor t = *of;
    t.extent[axis] = end - begin;
    if (!tensor_empty(
            &t)) /* an empty view keeps its offset: a new one could be past the end */
        t.offset += (uint64_t)(begin / block) * (uint64_t)t.stride[axis];
    return tensor_accept(tensor, &t, "hw_tensor_slice");
}

enum hw_status hw_tensor_transpose(struct hw_tensor *tensor, const struct hw_tensor *of,
                                   int32_t axis_a, int32_t axis_b)
{
    enum hw_status status = view_check(tensor, of, "hw_tensor_transpose");
    if (status || (status = axis_check("hw_tensor_transpose", of, axis_a)) ||
        (status = axis_check("hw_tensor_transpose", of, axis_b)))
        return status;
    if (axis_a != axis_b && (blocks_along(of, axis_a) || blocks_along(of, axis_b)))
        return fail(HW_INVALID,
                    "hw_tensor_transpose: rows of %s blocks cannot be transposed",
                    hw_dtype_name(of->dtype));
    struct hw_tensor t = *of;
    t.extent[axis_a] = of->extent[axis_b];
    t.stride[axis_a] = of->stride[axis_b];
    t.extent[axis_b] = of->extent[axis_a];
    t.stride[axis_b] = of->stride[axis_a];
    return tensor_accept(tensor, &t, "hw_tensor_transpose");
}

/* The number of elements; false if it overflows. */
static bool element_count(const struct hw_tensor *t, int64_t *n)
{
    *n = 1;
    if (tensor_empty(t))
        return *n = 0, true;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(*n, t->extent[i], n))
            return false;
    return true;
}

enum hw_status hw_tensor_reshape(struct hw_tensor *tensor, const struct hw_tensor *of,
                                 int32_t rank, const int64_t *extents)
{
    struct hw_tensor t;
    int64_t before, after;
    char text[DESCRIBE_SIZE], new_text[DESCRIBE_SIZE];
    enum hw_status status = view_check(tensor, of, "hw_tensor_reshape");
    if (status ||
        (status = tensor_shape(&t, of->dtype, rank, extents, "hw_tensor_reshape")))
        return status;
    if (!element_count(of, &before) || !element_count(&t, &after) || before != after)
        return fail(HW_INVALID,
                    "hw_tensor_reshape: %s and %s have different numbers of elements",
                    describe(of, text), describe(&t, new_text));
    if (!tensor_dense(of))
        return fail(
            HW_INVALID,
            "hw_tensor_reshape: %s is not contiguous; hw_copy() makes a copy that is",
            describe(of, text));
    t.buffer = of->buffer;
    t.data = of->data;
    t.offset = of->offset;
    return tensor_accept(tensor, &t, "hw_tensor_reshape");
}
