/* SPDX-License-Identifier: MIT */
/* cost.h - estimates how long a call on operands in host memory takes. */
#ifndef HW_ROUTE_COST_H
#define HW_ROUTE_COST_H

#include "call/ops.h"

struct cost {
    double moved; /* bytes of the operands, to a device and back */
    double own,
        cpu; /* seconds on a device that needs copies of the operands, and on the CPU */
};

/* `args`: a valid call. Nothing that operands point to is read. */
struct cost cost_of(uint32_t op, const void *args);

/* The one threshold: whether the CPU is expected to take at most half of the time. */
static inline bool cost_favours_cpu(struct cost cost)
{
    return 2 * cost.cpu <= cost.own;
}

#endif
