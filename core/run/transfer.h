/* SPDX-License-Identifier: MIT */
/* transfer.h - bytes from one place to another: rows moved by the host, or by the plugin. */
#ifndef HW_RUN_TRANSFER_H
#define HW_RUN_TRANSFER_H

#include "core.h"

/* How many transfers of the plugin it takes to move one tensor to another of the same extents
 * and dtype. */
uint64_t move_count(const struct hw_tensor *a, const struct hw_tensor *b);
/* Between host addresses, at once: dst = src, bit for bit. */
void host_move(const struct hw_tensor *dst, const struct hw_tensor *src);
/* In the queue's order, by the plugin's transfers: places are the host or this plugin's
 * buffers. */
enum hw_status queue_move(struct hw_queue *queue, const struct hw_tensor *dst,
                          const struct hw_tensor *src);
/* The tensor seen through its buffer's host address. */
bool host_view(const struct hw_tensor *tensor, struct hw_tensor *view);

#endif
