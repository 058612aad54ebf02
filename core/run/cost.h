/* SPDX-License-Identifier: MIT */
/* cost.h - how long a call on operands in host memory is expected to take on a device. */
#ifndef HW_RUN_COST_H
#define HW_RUN_COST_H

#include "core.h"
#include "measured.h"
#include "run/ops.h"

/* What a call moves and computes. */
struct workload {
    uint32_t op;
    enum cost_class class;
    double many; /* bytes, or multiplications if the op is a product */
    double one;  /* of a product: the weights that it reads; otherwise 0 */
    int ups, downs;
    double up[MAX_OPERANDS], down[MAX_OPERANDS]; /* bytes of each operand */
};

/* `args`: a valid call. Nothing that operands point to is read. */
void workload_of(uint32_t op, const void *args, struct workload *work);

/* What it is expected to take. With `moves`, the operands are copied to the device and back. */
struct hw_cost cost_of(struct hw_device *device, const struct workload *work, bool moves);

/* Seconds until an idle queue of the device has been waited for. */
double cost_of_wait(struct hw_device *device);

double cost_sum(const struct hw_cost *cost);

#endif
