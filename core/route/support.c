/* SPDX-License-Identifier: MIT */
/* support.c - asks a plugin whether its device can compute an op. Runs nothing. */
#include "route/support.h"

#include "base/argument.h"
#include "base/message.h"
#include "call/args.h"
#include "call/check.h"
#include "call/layout.h"
#include "memory/device.h"
#include "memory/transfer.h"
#include "route/op_state.h"

#include <string.h>

enum hw_status plugin_supports(struct hw_device *device, uint32_t op, const void *args)
{
    char why[256] = "";
    uint64_t scratch = 0;
    union plugin_op longer;
    enum hw_status status = args_known(device->plugin, op, args);
    if (status || (status = check_rejected(device, op, args)))
        return status;
    args = plugin_args(device->plugin, op, args, &longer);
    plugin_message_clear();
    status = device_result(device, device->plugin->table.supports(
                                       device->impl, op, args, why, sizeof why, &scratch));
    why[sizeof why - 1] = '\0';
    return status == HW_UNSUPPORTED && why[0] ? fail(status, "%s", why) : status;
}

/* ---- operands that must be replaced ---- */

bool innermost_strided(const struct hw_tensor *t)
{
    return !t->layout && t->extent[t->rank - 1] > 1 &&
           t->stride[t->rank - 1] != hw_dtype_bytes(t->dtype);
}

bool must_stage(const struct hw_device *device, const struct hw_tensor *t)
{
    return !t->buffer && !(device->info.features & HW_FEATURE_HOST_TENSORS);
}

bool must_replace(const struct hw_device *device, uint32_t op, const struct hw_tensor *t)
{
    if (t->dtype == HW_NONE || tensor_empty(t))
        return false;
    return must_stage(device, t) || (op != HW_OP_COPY && innermost_strided(t));
}

/* An empty operand needs no copy, and plugins need not handle its strides. */
void straighten_empty(uint32_t op, struct hw_tensor *t)
{
    if (t->dtype != HW_NONE && op != HW_OP_COPY && tensor_empty(t) && innermost_strided(t))
        make_dense(t, NULL, &(uint64_t){ 0 });
}

/* The tensor with each repeated axis once. */
static struct hw_tensor tensor_once(const struct hw_tensor *t,
                                    const struct hw_tensor *dense)
{
    struct hw_tensor u = *t;
    for (int i = 0; i < u.rank - 1; i++)
        if (dense->stride[i] == 0 && u.extent[i] > 1)
            u.extent[i] = 1;
    return u;
}

struct hw_copy copy_of_view(const struct hw_tensor *dst, const struct hw_tensor *src,
                            const struct hw_tensor *dense)
{
    return (struct hw_copy){ .src = tensor_once(src, dense),
                             .dst = tensor_once(dst, dense) };
}

/* ---- support by the device ---- */

/* Whether the device can copy a view to contiguous memory, and back if the op writes it. */
static enum hw_status view_supported(struct hw_device *device,
                                     const struct operand_row *operand,
                                     const struct hw_tensor *view,
                                     const struct hw_tensor *dense)
{
    const struct hw_copy in = copy_of_view(dense, view, dense),
                         out = copy_of_view(view, dense, dense);
    enum hw_status status = HW_OK;
    if (role_reads(operand->role))
        status = plugin_supports(device, HW_OP_COPY, &in);
    if (!status && role_writes(operand->role))
        status = plugin_supports(device, HW_OP_COPY, &out);
    return status ? fail_in(status, "%s is a view, which must be copied: ", operand->name)
                  : HW_OK;
}

static enum hw_status computes_as(struct hw_device *device, uint32_t op, const void *args)
{
    const struct op_row *row = &op_rows[op];
    enum hw_status status;
    union any_op dense;
    memcpy(&dense, args, row->size);
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct operand_row *operand = &row->operands[i];
        const struct hw_tensor *t = operand_at(args, operand);
        straighten_empty(op, operand_in(&dense, operand));
        if (!must_replace(device, op, t))
            continue;
        if (dense_bytes(t) == UINT64_MAX)
            return fail(HW_NO_MEMORY, "%s has more than 2^63 bytes", operand->name);
        *operand_in(&dense, operand) = dense_at(t, t->buffer, t->data);
    }
    status = plugin_supports(device, op, &dense);
    for (uint32_t i = 0; i < row->operand_count && !status; i++) {
        const struct operand_row *operand = &row->operands[i];
        const struct hw_tensor *t = operand_at(args, operand);
        if (must_replace(device, op, t) && !must_stage(device, t))
            status = view_supported(device, operand, t, operand_at(&dense, operand));
    }
    return status;
}

static bool is_transposed(const struct hw_tensor *t)
{
    return innermost_strided(t) && t->stride[t->rank - 2] == hw_dtype_bytes(t->dtype);
}

/* A flag of matmul can express a transposed view, so that it need not be copied. */
static void use_transpose_flag(struct hw_tensor *t, uint32_t *flag)
{
    const int inner = t->rank - 1;
    const int64_t extent = t->extent[inner], stride = t->stride[inner];
    t->extent[inner] = t->extent[inner - 1];
    t->stride[inner] = t->stride[inner - 1];
    t->extent[inner - 1] = extent;
    t->stride[inner - 1] = stride;
    *flag ^= 1;
}

enum hw_status device_computes(struct hw_device *device, uint32_t op, const void *args,
                               union any_op *as)
{
    const struct hw_matmul *matmul = args;
    const uint32_t turned = op == HW_OP_MATMUL
                                ? (uint32_t)is_transposed(&matmul->a) |
                                      (uint32_t)is_transposed(&matmul->b) << 1
                                : 0;
    /* Tries flags for both operands, then for either one, then for none. An operand without a flag
     * is copied. */
    for (uint32_t said = turned;; said = (said - 1) & turned) {
        memcpy(as, args, op_rows[op].size);
        if (said & 1)
            use_transpose_flag(&as->matmul.a, &as->matmul.transpose_a);
        if (said & 2)
            use_transpose_flag(&as->matmul.b, &as->matmul.transpose_b);
        const enum hw_status status = computes_as(device, op, as);
        if (status != HW_UNSUPPORTED || !said)
            return status;
    }
}

/* ---- for applications ---- */

enum hw_status hw_device_supports(struct hw_device *device, uint32_t op, const void *args,
                                  size_t size)
{
    union any_op copy, as;
    enum hw_status status;
    REQUIRE(device);
    if ((status = device_usable(device)) || (status = device_wake(device)) ||
        (status = args_resize(op, &args, size, &copy)))
        return status;
    struct check check = { .device = device, .op = op };
    if ((status = check_call(args, &check)))
        return status;
    /* Empty operands need no work, but the plugin must have the op. */
    status = check.traits & TRAIT_EMPTY ? args_known(device->plugin, op, args)
                                        : device_computes(device, op, args, &as);
    return status ? fail_in(status, "%s on %s: ", hw_op_name(op), device->name) : HW_OK;
}
