/* SPDX-License-Identifier: MIT */
/* fuzz_ops.c - ops with arbitrary structs: the plugin only gets operands inside the buffers, and
 * other calls are rejected with a message.
 *
 * The input is the number of an op, a distance by which the operands move for the third call, and
 * the bytes of the struct. Pointers cannot be arbitrary: the lowest bits of each operand's pointer
 * choose one of two buffers, or host memory. Each struct is submitted three times: first, repeated,
 * and with the operands moved. */
#define _GNU_SOURCE
#include "call/queue.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 4, LARGE = 1 << 12, SMALL = 640, HOST = 4096 };

static struct hw_context *context;
static struct hw_queue *queue;
static struct hw_buffer *buffers[2];
static char host[HOST];
static unsigned asked; /* calls that the plugin got */

/* ---- the promises to the plugin ---- */

/* The number of bytes up to the tensor's last element; false if it overflows, or if there are no
 * elements. */
static bool span_of(const struct hw_tensor *tensor, uint64_t *end)
{
    const uint64_t block = (uint64_t)hw_dtype_block(tensor->dtype);
    uint64_t part;
    if (!block || tensor->rank < 1 || tensor->rank > HW_MAX_RANK)
        return false;
    *end = (uint64_t)hw_dtype_bytes(tensor->dtype);
    for (int32_t i = 0; i < tensor->rank; i++) {
        const uint64_t count = (uint64_t)tensor->extent[i] /
                               (i + 1 == tensor->rank ? block : 1);
        if (tensor->extent[i] < 1 || tensor->stride[i] < 0 || count == 0 ||
            __builtin_mul_overflow(count - 1, (uint64_t)tensor->stride[i], &part) ||
            __builtin_add_overflow(*end, part, end))
            return false;
    }
    return !__builtin_add_overflow(*end, tensor->offset, end);
}

/* An input without elements, such as a table without rows or a product over no terms. */
static bool is_empty(const struct hw_tensor *tensor)
{
    for (int32_t i = 0; i < tensor->rank && i < HW_MAX_RANK; i++)
        if (tensor->extent[i] == 0)
            return true;
    return false;
}

static void check_operand(const struct hw_tensor *tensor, const struct operand_row *row)
{
    uint64_t end;
    if (!tensor->dtype) {
        if (!role_optional(row->role))
            abort();
        return;
    }
    if (is_empty(tensor))
        return;
    if (!span_of(tensor, &end) || end > (tensor->buffer ? tensor->buffer->bytes : HOST) ||
        (!tensor->buffer && !tensor->data))
        abort();
    for (int32_t i = 0; i < tensor->rank && role_writes(row->role); i++)
        if (tensor->extent[i] > 1 && tensor->stride[i] == 0)
            abort();
}

static int32_t check_call(uint32_t op, const void *args)
{
    const struct op_row *row = &op_rows[op];
    for (uint32_t i = 0; i < row->operand_count; i++)
        check_operand(operand_at(args, &row->operands[i]), &row->operands[i]);
    asked++;
    return HW_OK;
}

#define X(NAME, name)                                                                      \
    static int32_t check_##name(void *device, void *q, const struct hw_##name *op)         \
    {                                                                                      \
        (void)device, (void)q;                                                             \
        return check_call(HW_OP_##NAME, op);                                               \
    }
HW_OPS(X)
#undef X

/* ---- the device ---- */

#if defined(FUZZ_PLUGINS)
static const char *plugin_directory(char path[PATH_MAX])
{
    (void)path;
    return FUZZ_PLUGINS ":!";
}
#else
/* Beside the program, which may have been moved to another machine. */
static const char *plugin_directory(char path[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 16);
    char *end = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    if (!end)
        abort();
    strcpy(end, "/plugins:!");
    return path;
}
#endif

/* Opens hw_null.so and replaces its functions by those above. */
static void open_device(void)
{
    char path[PATH_MAX];
    struct hw_device *device;
    const struct hw_options options = { .size = sizeof options,
                                        .plugin_path = plugin_directory(path),
                                        .backends = "null",
                                        .probe = "inproc",
                                        .trust = "off",
                                        .memory_limit = "64M",
                                        .fallback = "error",
                                        .log = "off" };
    if (hw_open(&options, &context) || hw_device_find(context, "null", &device) ||
        hw_queue_open(device, NULL, &queue) ||
        hw_buffer_alloc(device, LARGE, 0, &buffers[0]) ||
        hw_buffer_alloc(device, SMALL, 0, &buffers[1]))
        abort();
#define X(NAME, name) queue->ops.name = check_##name;
    HW_OPS(X)
#undef X
}

/* ---- the input ---- */

/* The library trusts the application about host memory. */
static void place(struct hw_tensor *tensor)
{
    const uintptr_t chosen = (uintptr_t)tensor->buffer, there = (uintptr_t)tensor->data;
    uint64_t end;
    const bool fits = span_of(tensor, &end) && end <= HOST;
    tensor->buffer = chosen % 4 < 2 || !fits ? buffers[chosen % 2] : NULL;
    tensor->data = there % 2 ? host : NULL;
}

static void move(struct hw_tensor *tensor, int32_t bytes)
{
    if (tensor->buffer)
        tensor->offset += (uint64_t)(int64_t)bytes;
}

/* The library reads the missing part of a truncated operand as zeros. Such an operand gets no
 * address here, because half an address is none. */
static void each_operand(char *args, size_t bytes, uint32_t op, int32_t by)
{
    for (uint32_t i = 0; op < HW_OP_COUNT && i < op_rows[op].operand_count; i++) {
        const struct operand_row *row = &op_rows[op].operands[i];
        const size_t left = row->offset < bytes ? bytes - row->offset : 0;
        struct hw_tensor tensor = { 0 };
        const size_t part = left < sizeof tensor ? left : sizeof tensor;
        if (part)
            memcpy(&tensor, args + row->offset, part);
        if (part < sizeof tensor)
            tensor = (struct hw_tensor){ .dtype = tensor.dtype, .rank = tensor.rank };
        else if (by)
            move(&tensor, by);
        else
            place(&tensor);
        if (part)
            memcpy(args + row->offset, &tensor, part);
    }
}

/* An op without elements is done without the plugin. */
static void submit(uint32_t op, const void *args, size_t bytes)
{
    const unsigned before = asked;
    const enum hw_status status = hw_submit(queue, op, args, bytes);
    if (status && (!hw_message()[0] || asked != before))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!context)
        open_device();
    if (size < HEAD)
        return 0;
    const uint32_t op = data[0];
    const int32_t by = (int16_t)(data[2] | data[3] << 8);
    const size_t bytes = size - HEAD;
    char *args = malloc(bytes ? bytes : 1); /* of exactly its size, and aligned */
    if (!args)
        abort();
    memcpy(args, data + HEAD, bytes);
    each_operand(args, bytes, op, 0);
    submit(op, args, bytes);
    submit(op, args, bytes);
    each_operand(args, bytes, op, by ? by : 64);
    submit(op, args, bytes);
    if (hw_queue_wait(queue))
        abort();
    free(args);
    return 0;
}
