/* SPDX-License-Identifier: MIT */
/* cost.c - estimates how long a call on operands in host memory takes, from the bytes that it moves
 * and the multiplications that it needs. The rates are the same on every machine, so that the same
 * program routes the same calls everywhere. docs/routing.md has the formula. */
#include "route/cost.h"

#include "call/layout.h"

/* They favour the device over the CPU: only a call that takes a few microseconds leaves it. */
static const double device_launch = 20e-6; /* two transfers, a kernel and the wait */
static const double link_bytes = 25e9;     /* per second: PCIe 4.0 x16 */
static const double cpu_launch = 5e-6;  /* waiting for the device's queue, waking threads */
static const double cpu_bytes = 4e9;    /* per second, by one core */
static const double cpu_products = 1e9; /* multiplications per second, by one core */

static double elements(const struct hw_tensor *t)
{
    double count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= (double)t->extent[i];
    return count;
}

/* The bytes of the elements, without gaps and repeats. */
static double dense_bytes(const struct hw_tensor *t)
{
    struct hw_tensor dense = *t;
    uint64_t bytes;
    return t->dtype != HW_NONE && make_dense(&dense, t, &bytes) ? (double)bytes : 0;
}

/* ---- multiplications ---- */

/* a [..,M,K] times b [..,K,N]: M N K for each matrix of c. */
static double products_of_matmul(const struct hw_matmul *op)
{
    const struct hw_tensor *a = &op->a;
    return elements(&op->c) * (double)a->extent[a->rank - (op->transpose_a ? 2 : 1)];
}

static double products_of_matmul_id(const struct hw_matmul_id *op)
{
    return elements(&op->ids) * (double)op->b.extent[1] * (double)op->b.extent[2];
}

/* The products of each query and each key in use, and of each weight and a value. k is
 * [..,Tmax,Hkv,D]. */
static double products_of_attention(const struct hw_attention *op)
{
    const struct hw_tensor *q = &op->q, *k = &op->k, *v = &op->v;
    const double d = (double)q->extent[q->rank - 1], dv = (double)v->extent[v->rank - 1];
    const double all = (double)k->extent[k->rank - 3], length = (double)op->length;
    const double keys = length > 0 && length < all ? length : all;
    return elements(q) / (d > 0 ? d : 1) * keys * (d + dv);
}

static double products_of_conv2d(const struct hw_conv2d *op)
{
    const double outputs = (double)op->weight.extent[0];
    return outputs > 0 ? elements(&op->y) * (elements(&op->weight) / outputs) : 0;
}

/* ---- seconds ---- */

/* `bytes`: of all operands. There is no default, so that the compiler finds a forgotten op. */
static double cpu_seconds(uint32_t op, const void *args, double bytes)
{
    switch ((enum hw_op)op) {
    case HW_OP_MATMUL:
        return products_of_matmul(args) / cpu_products;
    case HW_OP_MATMUL_ID:
        return products_of_matmul_id(args) / cpu_products;
    case HW_OP_ATTENTION:
        return products_of_attention(args) / cpu_products;
    case HW_OP_CONV2D:
        return products_of_conv2d(args) / cpu_products;
    case HW_OP_GET_ROWS: /* touches only some rows of the table */
        return 2 * dense_bytes(&((const struct hw_get_rows *)args)->y) / cpu_bytes;
    case HW_OP_SET_ROWS:
        return 2 * dense_bytes(&((const struct hw_set_rows *)args)->x) / cpu_bytes;
    case HW_OP_RMSNORM:
    case HW_OP_SOFTMAX:
    case HW_OP_SILU:
    case HW_OP_ROPE:
    case HW_OP_ADD:
    case HW_OP_MUL:
    case HW_OP_SWIGLU:
    case HW_OP_ADD_RMSNORM:
    case HW_OP_COPY:
    case HW_OP_ARGMAX:
    case HW_OP_LAYERNORM:
    case HW_OP_SUB:
    case HW_OP_DIV:
    case HW_OP_SCALE:
    case HW_OP_TOP_K:
    case HW_OP_DOT:
    case HW_OP_ACTIVATION:
    case HW_OP_GLU:
    case HW_OP_COUNT:
        break;
    }
    return bytes / cpu_bytes;
}

struct cost cost_of(uint32_t op, const void *args)
{
    const struct op_row *row = &op_rows[op];
    double moved = 0, touched = 0;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct operand_row *operand = &row->operands[i];
        const double bytes = dense_bytes(operand_at(args, operand));
        touched += bytes;
        moved += bytes * (role_reads(operand->role) + role_writes(operand->role));
    }
    return (struct cost){ .moved = moved,
                          .own = device_launch + moved / link_bytes,
                          .cpu = cpu_launch + cpu_seconds(op, args, touched) };
}
