/* SPDX-License-Identifier: MIT */
/* nomem_answers.c - queries while memory runs out. Most of them allocate nothing, so their trials
 * make no allocation that could fail. */
#include "foreign.h"
#include "nomem.h"

#include <stdlib.h>
#include <string.h>

static struct hw_tensor t;
static const int64_t extents[] = { 6, 4 };

static void tensor(void)
{
    ok(hw_tensor_alloc(scene.cpu, 0, HW_F32, 2, extents, &t));
}

static enum hw_status if_true(int answer)
{
    return answer ? HW_OK : HW_INTERNAL;
}

/* ---- calls without a context ---- */

static enum hw_status version(void)
{
    return if_true(hw_version() == HW_VERSION);
}

static enum hw_status version_string(void)
{
    return if_true(*hw_version_string());
}

static enum hw_status message(void)
{
    return if_true(hw_message() != NULL);
}

static enum hw_status status_name(void)
{
    return if_true(!strcmp(hw_status_name(HW_OK), "HW_OK"));
}

static enum hw_status dtype_name(void)
{
    return if_true(!strcmp(hw_dtype_name(HW_F32), "f32"));
}

static enum hw_status op_name(void)
{
    return if_true(!strcmp(hw_op_name(HW_OP_SILU), "silu"));
}

static enum hw_status op_find(void)
{
    uint32_t op;
    return hw_op_find("silu", &op);
}

static enum hw_status op_field(void)
{
    struct hw_field_info info = { .size = sizeof info };
    return hw_op_field(HW_OP_SILU, 0, &info);
}

static enum hw_status op_size(void)
{
    return if_true(hw_op_size(HW_OP_SILU) == sizeof(struct hw_silu));
}

/* ---- tensors and buffers ---- */

static enum hw_status host(void)
{
    static float x[24];
    struct hw_tensor made;
    return hw_tensor_host(&made, x, HW_F32, 2, extents);
}

static enum hw_status view(void)
{
    struct hw_tensor made;
    return hw_tensor_view(&made, t.buffer, 0, HW_F32, 2, extents);
}

static enum hw_status slice(void)
{
    struct hw_tensor made;
    return hw_tensor_slice(&made, &t, 0, 1, 2);
}

static enum hw_status transpose(void)
{
    struct hw_tensor made;
    return hw_tensor_transpose(&made, &t, 0, 1);
}

static enum hw_status reshape(void)
{
    const int64_t all = 24;
    struct hw_tensor made;
    return hw_tensor_reshape(&made, &t, 1, &all);
}

static enum hw_status tensor_bytes(void)
{
    return if_true(hw_tensor_bytes(&t) == 96);
}

static enum hw_status buffer_host(void)
{
    hw_buffer_host(t.buffer);
    return HW_OK;
}

static enum hw_status buffer_bytes(void)
{
    return if_true(hw_buffer_bytes(t.buffer) >= 96);
}

static enum hw_status buffer_device(void)
{
    return if_true(hw_buffer_device(t.buffer) == scene.cpu);
}

/* ---- devices and queues ---- */

static enum hw_status count(void)
{
    return if_true(hw_device_count(scene.context) >= 3);
}

static enum hw_status at(void)
{
    return if_true(hw_device_at(scene.context, 0) == scene.near);
}

static enum hw_status default_device(void)
{
    return if_true(hw_device_default(scene.context) == scene.near);
}

static enum hw_status find(void)
{
    struct hw_device *device;
    return hw_device_find(scene.context, "foreign:1", &device);
}

static enum hw_status find_nothing(void)
{
    struct hw_device *device;
    const enum hw_status status = hw_device_find(scene.context, "nothing", &device);
    return status == HW_NO_DEVICE && *hw_message() ? HW_OK : status;
}

static enum hw_status import(void)
{
    struct foreign_device theirs = { FOREIGN_FIRST };
    struct hw_device *device;
    return hw_device_import(scene.context, FOREIGN_DEVICE, &theirs, &device);
}

static enum hw_status name(void)
{
    return if_true(!strcmp(hw_device_name(scene.near), "discrete:0"));
}

static enum hw_status backend(void)
{
    return if_true(!strcmp(hw_device_backend(scene.near), "discrete"));
}

static enum hw_status info(void)
{
    struct hw_device_info facts = { .size = sizeof facts };
    return hw_device_info(scene.cpu, &facts);
}

static enum hw_status supports(void)
{
    const struct hw_silu op = { .x = t, .y = t };
    return hw_device_supports(scene.cpu, HW_OP_SILU, &op, sizeof op);
}

static enum hw_status reset(void)
{
    return hw_device_reset(scene.near);
}

static enum hw_status kernel(void)
{
    struct hw_kernel_info row = { .size = sizeof row };
    return hw_device_kernel(scene.cpu, HW_OP_SILU, 0, &row);
}

static enum hw_status pool(void)
{
    struct hw_pool_stats stats = { .size = sizeof stats };
    return hw_pool_stats(scene.near, &stats);
}

static enum hw_status queue_device(void)
{
    return if_true(hw_queue_device(scene.on_near) == scene.near);
}

static enum hw_status queue_calls(void)
{
    struct hw_call_stats stats = { .size = sizeof stats };
    return hw_queue_calls(scene.on_near, HW_OP_SILU, &stats);
}

static enum hw_status route(void)
{
    static float x[24];
    const struct hw_tensor in_memory = hw_host_2d(x, HW_F32, 6, 4);
    const struct hw_silu op = { .x = in_memory, .y = in_memory };
    struct hw_route_info decision = { .size = sizeof decision };
    return hw_queue_route(scene.on_near, HW_OP_SILU, &op, sizeof op, &decision);
}

static enum hw_status look_again(void)
{
    const uint32_t count = hw_device_count(scene.context);
    const enum hw_status status = hw_rescan(scene.context);
    return hw_device_count(scene.context) == count ? status : HW_INTERNAL;
}

/* Writes the report without allocating, or names the missing part in it. */
static enum hw_status explain(void)
{
    static char text[1 << 18];
    const size_t size = hw_explain(scene.context, text, sizeof text);
    return if_true(size < sizeof text && *text == '{' && text[size - 1] == '}');
}

const struct trial answers[] = {
    { "hw_version", NULL, version, 0 },
    { "hw_version_string", NULL, version_string, 0 },
    { "hw_message", NULL, message, 0 },
    { "hw_status_name", NULL, status_name, 0 },
    { "hw_dtype_name", NULL, dtype_name, 0 },
    { "hw_op_name", NULL, op_name, 0 },
    { "hw_op_find", NULL, op_find, 0 },
    { "hw_op_field", NULL, op_field, 0 },
    { "hw_op_size", NULL, op_size, 0 },
    { "hw_tensor_host", NULL, host, 0 },
    { "hw_tensor_view", tensor, view, 0 },
    { "hw_tensor_slice", tensor, slice, 0 },
    { "hw_tensor_transpose", tensor, transpose, 0 },
    { "hw_tensor_reshape", tensor, reshape, 0 },
    { "hw_tensor_bytes", tensor, tensor_bytes, 0 },
    { "hw_buffer_host", tensor, buffer_host, 0 },
    { "hw_buffer_bytes", tensor, buffer_bytes, 0 },
    { "hw_buffer_device", tensor, buffer_device, 0 },
    { "hw_device_count", NULL, count, 0 },
    { "hw_device_at", NULL, at, 0 },
    { "hw_device_default", NULL, default_device, 0 },
    { "hw_device_find", NULL, find, 0 },
    { "hw_device_find", NULL, find_nothing, 0 },
    { "hw_device_import", NULL, import, 0 },
    { "hw_device_name", NULL, name, 0 },
    { "hw_device_backend", NULL, backend, 0 },
    { "hw_device_info", NULL, info, 0 },
    { "hw_device_supports", tensor, supports, 0 },
    { "hw_device_reset", NULL, reset, 0 },
    { "hw_device_kernel", NULL, kernel, 0 },
    { "hw_pool_stats", tensor, pool, 0 },
    { "hw_queue_device", NULL, queue_device, 0 },
    { "hw_queue_calls", NULL, queue_calls, 0 },
    { "hw_queue_route", NULL, route, 0 },
    { "hw_explain", NULL, explain, 0 },
    { "hw_rescan", NULL, look_again, 3 },
    { 0 },
};
