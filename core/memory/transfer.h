/* SPDX-License-Identifier: MIT */
/* transfer.h - moves bytes between two tensors, by the host or by the plugin. */
#ifndef HW_MEMORY_TRANSFER_H
#define HW_MEMORY_TRANSFER_H

#include "core.h"

/* The number of the plugin's transfers that moving one tensor to another takes. Both have the same
 * extents and dtype. */
uint64_t move_count(const struct hw_tensor *a, const struct hw_tensor *b);
/* Copies between host addresses, immediately and bit for bit. */
void host_move(const struct hw_tensor *dst, const struct hw_tensor *src);
/* Copies in the queue's order, by the plugin's transfers, between host memory and buffers
 * of this plugin. */
enum hw_status queue_move(struct hw_queue *queue, const struct hw_tensor *dst,
                          const struct hw_tensor *src);
/* Describes the tensor by its host address; false if the host cannot access it. */
bool host_view(const struct hw_tensor *tensor, struct hw_tensor *view);

#endif
