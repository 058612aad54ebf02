/* SPDX-License-Identifier: MIT */
/* tensor.c - views of memory: made, cut, turned, measured. */
#include "work.h"

#include <stdio.h>
#include <string.h>

/* ---- measures ---- */

bool tensor_span(const struct hw_tensor *t, uint64_t *bytes)
{
    uint64_t last = 0;
    *bytes = 0;
    for (int32_t i = 0; i < t->rank; i++) {
        uint64_t n = (uint64_t)t->extent[i], step;
        if (n == 0) {
            *bytes = 0;
            return true;
        }
        if (i == t->rank - 1)
            n /= (uint64_t)hw_dtype_block(t->dtype);
        if (__builtin_mul_overflow(n - 1, (uint64_t)t->stride[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    }
    return !__builtin_add_overflow(last, (uint64_t)hw_dtype_bytes(t->dtype), bytes) &&
           *bytes <= INT64_MAX;
}

uint64_t hw_tensor_bytes(const struct hw_tensor *tensor)
{
    uint64_t bytes = 0;
    if (!tensor || tensor->rank < 1 || tensor->rank > HW_MAX_RANK ||
        !hw_dtype_block(tensor->dtype))
        return 0;
    return tensor_span(tensor, &bytes) ? bytes : 0;
}

int64_t tensor_elements(const struct hw_tensor *tensor)
{
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->extent[i];
    return count;
}

bool tensor_is_rows(const struct hw_tensor *t)
{
    const int32_t last = t->rank - 1;
    return t->extent[last] <= hw_dtype_block(t->dtype) ||
           t->stride[last] == hw_dtype_bytes(t->dtype);
}

bool tensor_is_dense(const struct hw_tensor *t)
{
    int64_t expected = hw_dtype_bytes(t->dtype);
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        const int64_t n = i == t->rank - 1 ? t->extent[i] / hw_dtype_block(t->dtype)
                                           : t->extent[i];
        if (n > 1 && t->stride[i] != expected)
            return false;
        expected *= n;
    }
    return true;
}

void tensor_pack_strides(struct hw_tensor *t)
{
    int64_t stride = hw_dtype_bytes(t->dtype);
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        t->stride[i] = stride;
        stride *= i == t->rank - 1 ? t->extent[i] / hw_dtype_block(t->dtype) : t->extent[i];
    }
    t->offset = 0;
}

const char *tensor_text(const struct hw_tensor *t, char text[TENSOR_TEXT])
{
    int length = snprintf(text, TENSOR_TEXT, "%s [", hw_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank && i < HW_MAX_RANK; i++)
        length += snprintf(text + length, TENSOR_TEXT - (size_t)length, "%s%lld",
                           i ? "," : "", (long long)t->extent[i]);
    snprintf(text + length, TENSOR_TEXT - (size_t)length, "]");
    return text;
}

/* ---- constructors ---- */

static enum hw_status shape(struct hw_tensor *tensor, const char *what, int32_t dtype,
                            int32_t rank, const int64_t *extents)
{
    const int64_t block = hw_dtype_block(dtype);
    uint64_t bytes = (uint64_t)hw_dtype_bytes(dtype);

    if (!tensor || !extents)
        return fail(HW_INVALID, "%s: tensor and extents may not be NULL", what);
    memset(tensor, 0, sizeof *tensor);
    if (!block)
        return fail(HW_INVALID, "%s: %d is no dtype", what, (int)dtype);
    if (rank < 1 || rank > HW_MAX_RANK)
        return fail(HW_INVALID, "%s: rank %d, must be 1 to %d", what, (int)rank,
                    HW_MAX_RANK);
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (extents[i] < 0)
            return fail(HW_INVALID, "%s: extent %d is %lld", what, (int)i,
                        (long long)extents[i]);
        if (i == rank - 1 && extents[i] % block)
            return fail(HW_INVALID,
                        "%s: innermost extent %lld is not a multiple of %lld, the block of "
                        "%s",
                        what, (long long)extents[i], (long long)block,
                        hw_dtype_name(dtype));
        tensor->stride[i] = (int64_t)bytes;
        const uint64_t n = (uint64_t)(i == rank - 1 ? extents[i] / block : extents[i]);
        if (n && (__builtin_mul_overflow(bytes, n, &bytes) || bytes > INT64_MAX)) {
            memset(tensor, 0, sizeof *tensor);
            return fail(HW_INVALID, "%s: the extents overflow 63 bits", what);
        }
        tensor->extent[i] = extents[i];
    }
    tensor->dtype = dtype;
    tensor->rank = rank;
    return HW_OK;
}

/* What an element's address must be a multiple of. */
static uint64_t alignment(int32_t dtype)
{
    return hw_dtype_block(dtype) > 1 ? 2 : (uint64_t)hw_dtype_bytes(dtype);
}

enum hw_status hw_tensor_host(struct hw_tensor *tensor, const void *data, int32_t dtype,
                              int32_t rank, const int64_t *extents)
{
    enum hw_status status = shape(tensor, "hw_tensor_host", dtype, rank, extents);
    if (status)
        return status;
    uint64_t bytes = 0;
    if ((!data && tensor_span(tensor, &bytes) && bytes) ||
        (uintptr_t)data % alignment(dtype)) {
        memset(tensor, 0, sizeof *tensor);
        return fail(HW_INVALID, "hw_tensor_host: data is %p; %s needs %u-byte alignment",
                    data, hw_dtype_name(dtype), (unsigned)alignment(dtype));
    }
    tensor->data = (void *)(uintptr_t)data; /* written to only as an output */
    return HW_OK;
}

enum hw_status hw_tensor_view(struct hw_tensor *tensor, struct hw_buffer *buffer,
                              uint64_t offset, int32_t dtype, int32_t rank,
                              const int64_t *extents)
{
    enum hw_status status = shape(tensor, "hw_tensor_view", dtype, rank, extents);
    uint64_t bytes = 0, end;
    if (status)
        return status;
    if (!buffer)
        status = fail(HW_INVALID, "hw_tensor_view: buffer may not be NULL");
    else if (offset % alignment(dtype))
        status = fail(HW_INVALID, "hw_tensor_view: offset %llu; %s needs a multiple of %u",
                      (unsigned long long)offset, hw_dtype_name(dtype),
                      (unsigned)alignment(dtype));
    else if (!tensor_span(tensor, &bytes) || __builtin_add_overflow(offset, bytes, &end) ||
             end > buffer->bytes)
        status = fail(HW_INVALID,
                      "hw_tensor_view: %llu bytes from offset %llu, in a buffer of %llu",
                      (unsigned long long)bytes, (unsigned long long)offset,
                      (unsigned long long)buffer->bytes);
    if (status) {
        memset(tensor, 0, sizeof *tensor);
        return status;
    }
    tensor->buffer = buffer;
    tensor->offset = offset;
    return HW_OK;
}

enum hw_status hw_tensor_alloc(struct hw_device *device, uint32_t flags, int32_t dtype,
                               int32_t rank, const int64_t *extents,
                               struct hw_tensor *tensor)
{
    enum hw_status status = shape(tensor, "hw_tensor_alloc", dtype, rank, extents);
    uint64_t bytes = 0;
    if (status)
        return status;
    tensor_span(tensor, &bytes); /* shape() saw that it fits */
    status = hw_buffer_alloc(device, bytes ? bytes : 1, flags, &tensor->buffer);
    if (status)
        memset(tensor, 0, sizeof *tensor);
    return status;
}

/* ---- views of views ---- */

static enum hw_status view_of(const char *what, struct hw_tensor *tensor,
                              const struct hw_tensor *of)
{
    if (!tensor || !of)
        return fail(HW_INVALID, "%s: tensor and of may not be NULL", what);
    if (!hw_dtype_block(of->dtype) || of->rank < 1 || of->rank > HW_MAX_RANK || of->layout)
        return fail(HW_INVALID, "%s: the tensor it is a view of is absent, packed or broken",
                    what);
    return HW_OK;
}

static enum hw_status axis_of(const char *what, const struct hw_tensor *of, int32_t axis)
{
    if (axis >= 0 && axis < of->rank)
        return HW_OK;
    return fail(HW_INVALID, "%s: axis %d of a tensor of rank %d", what, (int)axis,
                (int)of->rank);
}

enum hw_status hw_tensor_slice(struct hw_tensor *tensor, const struct hw_tensor *of,
                               int32_t axis, int64_t begin, int64_t end)
{
    static const char what[] = "hw_tensor_slice";
    enum hw_status status = view_of(what, tensor, of);
    if (status || (status = axis_of(what, of, axis)))
        return status;
    const int64_t unit = axis == of->rank - 1 ? hw_dtype_block(of->dtype) : 1;
    if (begin < 0 || end < begin || end > of->extent[axis])
        return fail(HW_INVALID, "%s: %lld to %lld, of an extent of %lld", what,
                    (long long)begin, (long long)end, (long long)of->extent[axis]);
    if (begin % unit || end % unit)
        return fail(HW_INVALID, "%s: %lld to %lld: %s is cut at multiples of %lld only",
                    what, (long long)begin, (long long)end, hw_dtype_name(of->dtype),
                    (long long)unit);
    struct hw_tensor view = *of;
    view.extent[axis] = end - begin;
    if (end > begin)
        view.offset += (uint64_t)(begin / unit) * (uint64_t)of->stride[axis];
    *tensor = view;
    return HW_OK;
}

enum hw_status hw_tensor_transpose(struct hw_tensor *tensor, const struct hw_tensor *of,
                                   int32_t axis_a, int32_t axis_b)
{
    static const char what[] = "hw_tensor_transpose";
    enum hw_status status = view_of(what, tensor, of);
    if (status || (status = axis_of(what, of, axis_a)) ||
        (status = axis_of(what, of, axis_b)))
        return status;
    const int32_t last = of->rank - 1;
    if (hw_dtype_block(of->dtype) > 1 && axis_a != axis_b &&
        (axis_a == last || axis_b == last))
        return fail(HW_INVALID, "%s: the innermost axis of %s stays innermost", what,
                    hw_dtype_name(of->dtype));
    struct hw_tensor view = *of;
    view.extent[axis_a] = of->extent[axis_b];
    view.extent[axis_b] = of->extent[axis_a];
    view.stride[axis_a] = of->stride[axis_b];
    view.stride[axis_b] = of->stride[axis_a];
    *tensor = view;
    return HW_OK;
}

enum hw_status hw_tensor_reshape(struct hw_tensor *tensor, const struct hw_tensor *of,
                                 int32_t rank, const int64_t *extents)
{
    static const char what[] = "hw_tensor_reshape";
    struct hw_tensor view;
    enum hw_status status = view_of(what, tensor, of);
    if (status || (status = shape(&view, what, of->dtype, rank, extents)))
        return status;
    if (!tensor_is_dense(of))
        return fail(HW_INVALID, "%s: the tensor has gaps or is transposed; copy it first",
                    what);
    if (tensor_elements(of) != tensor_elements(&view))
        return fail(HW_INVALID, "%s: %lld elements do not become %lld", what,
                    (long long)tensor_elements(of), (long long)tensor_elements(&view));
    view.buffer = of->buffer;
    view.data = of->data;
    view.offset = of->offset;
    *tensor = view;
    return HW_OK;
}
