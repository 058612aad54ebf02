/* SPDX-License-Identifier: MIT */
/* cost.c - predicts the time of a call on operands in host memory: by interpolating the
 * measurements of `hw tune` or, without any, by an estimate from the kind of device.
 * docs/routing.md has the formula. */
#include "run/cost.h"

#include "run/device.h"
#include "run/layout.h"

/* ---- the amounts of a call ---- */

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
    return make_dense(&dense, t, &bytes) ? (double)bytes : 0;
}

/* The operand whose type decides how long the op takes. */
static uint32_t deciding_operand(uint32_t op)
{
    switch (op) {
    case HW_OP_MATMUL:
        return OPERAND_matmul_b;
    case HW_OP_MATMUL_ID:
        return OPERAND_matmul_id_b;
    case HW_OP_ATTENTION:
        return OPERAND_attention_k;
    case HW_OP_CONV2D:
        return OPERAND_conv2d_weight;
    case HW_OP_SET_ROWS:
        return OPERAND_set_rows_table;
    default:
        return 0;
    }
}

static enum cost_class class_of(int32_t dtype)
{
    return dtype == HW_F16             ? CLASS_F16
           : dtype == HW_BF16          ? CLASS_BF16
           : hw_dtype_block(dtype) > 1 ? CLASS_BLOCKS
                                       : CLASS_F32;
}

/* a [..,M,K] times b [..,K,N]: M N K for each matrix of c. */
static void measure_matmul(const struct hw_matmul *op, struct workload *work)
{
    const struct hw_tensor *a = &op->a;
    const double k = (double)a->extent[op->transpose_a ? a->rank - 2 : a->rank - 1];
    work->many = elements(&op->c) * k;
    work->one = elements(&op->b);
}

static void measure_matmul_id(const struct hw_matmul_id *op, struct workload *work)
{
    const double k = (double)op->b.extent[2], n = (double)op->b.extent[1];
    const double rows = elements(&op->ids), experts = (double)op->b.extent[0];
    work->many = rows * n * k;
    work->one = (rows < experts ? rows : experts) * n * k;
}

/* The products of each query and each key in use, and of each weight and a value. k is
 * [..,Tmax,Hkv,D]. */
static void measure_attention(const struct hw_attention *op, struct workload *work)
{
    const struct hw_tensor *q = &op->q, *k = &op->k, *v = &op->v;
    const double d = (double)q->extent[q->rank - 1], dv = (double)v->extent[v->rank - 1];
    const double all = (double)k->extent[k->rank - 3];
    const double keys = op->length > 0 && (double)op->length < all ? (double)op->length
                                                                   : all;
    work->many = elements(q) / (d > 0 ? d : 1) * keys * (d + dv);
    work->one = (elements(k) + elements(v)) * (all > 0 ? keys / all : 0);
}

static void measure_conv2d(const struct hw_conv2d *op, struct workload *work)
{
    const double outputs = (double)op->weight.extent[0];
    work->many = elements(&op->y) * (outputs > 0 ? elements(&op->weight) / outputs : 0);
}

void workload_of(uint32_t op, const void *args, struct workload *work)
{
    const struct op_row *row = &op_rows[op];
    *work = (struct workload){ .op = op };
    work->class = class_of(operand_at(args, &row->operands[deciding_operand(op)])->dtype);
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct operand_row *operand = &row->operands[i];
        const struct hw_tensor *t = operand_at(args, operand);
        const double bytes = t->dtype == HW_NONE ? 0 : dense_bytes(t);
        if (bytes > 0 && role_reads(operand->role))
            work->up[work->ups++] = bytes;
        if (bytes > 0 && role_writes(operand->role))
            work->down[work->downs++] = bytes;
        work->many += bytes;
    }
    switch (op) {
    case HW_OP_MATMUL:
        measure_matmul(args, work);
        break;
    case HW_OP_MATMUL_ID:
        measure_matmul_id(args, work);
        break;
    case HW_OP_ATTENTION:
        measure_attention(args, work);
        break;
    case HW_OP_CONV2D:
        measure_conv2d(args, work);
        break;
    case HW_OP_GET_ROWS: /* touches only some rows of the table */
        work->many = 2 * dense_bytes(&((const struct hw_get_rows *)args)->y);
        break;
    case HW_OP_SET_ROWS:
        work->many = 2 * dense_bytes(&((const struct hw_set_rows *)args)->x);
        break;
    default:
        break;
    }
}

/* ---- measurements ---- */

/* Interpolates linearly between two points. Below the first and above the last point, the time is
 * proportional to the amount. */
static double row_ns(const struct cost_row *row, double amount)
{
    if (row->count == 0 || amount <= 0)
        return 0;
    uint32_t i = 0;
    while (i < row->count && (double)row->at[i].amount < amount)
        i++;
    const uint32_t near = i < row->count ? i : row->count - 1;
    const double x = (double)row->at[near].amount, y = (double)row->at[near].ns;
    if (i == 0 || i == row->count)
        return y * amount / x;
    const double x0 = (double)row->at[i - 1].amount, y0 = (double)row->at[i - 1].ns;
    return y0 + (y - y0) * (amount - x0) / (x - x0);
}

static double sum_ns(const struct cost_row *row, const double *bytes, int count)
{
    double ns = 0;
    for (int i = 0; i < count; i++)
        ns += row_ns(row, bytes[i]);
    return ns;
}

static bool was_measured(const struct cost_row *row)
{
    return row->count > 0;
}

static bool measured_cost(const struct profile *profile, const struct workload *work,
                          bool moves, struct hw_cost *cost)
{
    const struct cost_row *rows = profile->op[work->op][work->class];
    const struct cost_row *many = &rows[FORM_MANY], *one = &rows[FORM_ONE];
    if (!was_measured(many) ||
        (moves && (!was_measured(&profile->up) || !was_measured(&profile->down))))
        return false;
    double compute = row_ns(many, work->many);
    if (was_measured(one) && work->one > 0 && row_ns(one, work->one) > compute)
        compute = row_ns(one, work->one);
    cost->source = HW_COST_MEASURED;
    cost->measured = profile->written;
    cost->launch = (double)many->base * 1e-9;
    cost->compute = compute * 1e-9;
    cost->upload = moves ? sum_ns(&profile->up, work->up, work->ups) * 1e-9 : 0;
    cost->download = moves ? sum_ns(&profile->down, work->down, work->downs) * 1e-9 : 0;
    return true;
}

/* ---- estimates ---- */

/* The estimates favour devices that need copies of the operands over devices that read host memory,
 * such as the CPU. So without measurements of this machine, a call leaves its queue's device only
 * in clear cases. */
static const double wait_seconds = 2e-6;
static const double away_launch = 20e-6; /* two transfers, a kernel and the wait */
static const double away_bytes = 25e9;   /* per second: PCIe 4.0 x16 */
static const double here_launch = 3e-6;  /* waking threads */
static const double here_bytes = 4e9;    /* per second, by one core */
static const double here_products = 1e9; /* multiplications per second, by one core */

static bool is_product(uint32_t op)
{
    return op == HW_OP_MATMUL || op == HW_OP_MATMUL_ID || op == HW_OP_ATTENTION ||
           op == HW_OP_CONV2D;
}

static double sum_bytes(const double *bytes, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += bytes[i];
    return sum;
}

static void estimate(const struct workload *work, bool moves, struct hw_cost *cost)
{
    cost->source = HW_COST_ESTIMATED;
    cost->launch = moves ? away_launch : here_launch;
    if (moves) {
        cost->upload = sum_bytes(work->up, work->ups) / away_bytes;
        cost->download = sum_bytes(work->down, work->downs) / away_bytes;
    } else {
        cost->compute = work->many / (is_product(work->op) ? here_products : here_bytes);
    }
}

/* ---- both ---- */

struct hw_cost cost_of(struct hw_device *device, const struct workload *work, bool moves)
{
    struct hw_cost cost = { .device = device };
    const struct profile *profile = device_profile(device);
    if (!profile || !measured_cost(profile, work, moves, &cost))
        estimate(work, moves, &cost);
    return cost;
}

double cost_of_wait(struct hw_device *device)
{
    const struct profile *profile = device_profile(device);
    return profile && profile->wait.base ? (double)profile->wait.base * 1e-9 : wait_seconds;
}

double cost_sum(const struct hw_cost *cost)
{
    return cost->upload + cost->launch + cost->compute + cost->download;
}
