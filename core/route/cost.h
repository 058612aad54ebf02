/* SPDX-License-Identifier: MIT */
/* cost.h - calls on host memory that the CPU computes faster than the queue's device. */
#ifndef HW_ROUTE_COST_H
#define HW_ROUTE_COST_H

#include "call/queue.h"

/* The estimates for a valid call. Nothing that operands point to is read. */
struct hw_route_info cost_of(uint32_t op, const void *args);

/* The one threshold: whether the CPU is expected to take at most half of the time. */
static inline bool cost_favours_cpu(const struct hw_route_info *cost)
{
    return 2 * cost->cpu <= cost->own;
}

/* Decides whether calls on this queue may be routed. `imported`: the application made the queue. */
void cost_route_begin(struct hw_queue *queue, bool imported);

/* Call this when the queue is idle and its calls may be routed. */
void cost_route_settled(struct hw_queue *queue);
/* Call this when the queue gets work that is not counted as a call. Until the next wait, no call is
 * routed. */
static inline void cost_route_other_work(struct hw_queue *queue)
{
    queue->idle_at = UINT64_MAX;
}

/* Computes a call on the CPU if that is expected to be faster. Returns true and the result in
 * *status; or false if the queue's device has to compute the call. In that case nothing has been
 * done, except that the queue may have been waited for. */
bool cost_route(struct hw_queue *queue, uint32_t op, const void *args,
                enum hw_status *status);

#endif
