/* SPDX-License-Identifier: MIT */
/* cost.h - predicts the time of a call on operands in host memory. */
#ifndef HW_RUN_COST_H
#define HW_RUN_COST_H

#include "core.h"
#include "measured.h"
#include "run/ops.h"

/* The amounts that a call moves and computes. */
struct workload {
    uint32_t op;
    enum cost_class class;
    double many; /* bytes, or multiplications if the op is a product */
    double one;  /* the weights that a product reads; 0 for other ops */
    int ups, downs;
    double up[MAX_OPERANDS], down[MAX_OPERANDS]; /* bytes of each operand */
};

/* `args`: a valid call. Nothing that operands point to is read. */
void workload_of(uint32_t op, const void *args, struct workload *work);

/* The predicted time. With `moves`, the operands are copied to the device and back. */
struct hw_cost cost_of(struct hw_device *device, const struct workload *work, bool moves);

/* Seconds that a wait for an idle queue of the device takes. */
double cost_of_wait(struct hw_device *device);

double cost_sum(const struct hw_cost *cost);

#endif
