/* SPDX-License-Identifier: MIT */
/* shadow.h - HW_SHADOW: compares some calls of a queue with the CPU plugin. */
#ifndef HW_ROUTE_SHADOW_H
#define HW_ROUTE_SHADOW_H

#include "core.h"

/* Sets up comparisons for a queue that is being opened, if the settings ask for them and the queue
 * is not on the CPU device that computes the comparisons. */
enum hw_status shadow_begin(struct hw_queue *queue);
void shadow_end(struct hw_queue *queue);

/* hw_submit() on a queue whose calls are compared. */
enum hw_status shadow_submit(struct hw_queue *queue, uint32_t op, const void *args,
                             size_t size);

#endif
