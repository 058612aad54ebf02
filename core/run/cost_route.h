/* SPDX-License-Identifier: MIT */
/* cost_route.h - calls on host memory that the CPU computes faster than the queue's device. */
#ifndef HW_RUN_COST_ROUTE_H
#define HW_RUN_COST_ROUTE_H

#include "run/queue.h"

/* Decides whether calls on this queue may be routed; `imported`: it is one of the
 * application's. */
void cost_route_begin(struct hw_queue *queue, bool imported);

/* The queue, whose calls may be routed, has nothing to do. */
void cost_route_settled(struct hw_queue *queue);
/* It has work that is not among its calls: none is routed until the next wait. */
static inline void cost_route_other_work(struct hw_queue *queue)
{
    queue->settled = UINT64_MAX;
}

/* Computes a call elsewhere if that is expected to be faster. True: then *status is its result.
 * False: the queue's device is to compute it, and nothing has happened, except that work whose
 * results the call reads may have been waited for. */
bool cost_route(struct hw_queue *queue, uint32_t op, const void *args,
                enum hw_status *status);

#endif
