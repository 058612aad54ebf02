/* SPDX-License-Identifier: MIT */
/* transfer.h - moves bytes between two tensors, by the host or by the plugin. */
#ifndef HW_MEMORY_TRANSFER_H
#define HW_MEMORY_TRANSFER_H

#include "core.h"

/* The bytes of the elements, with repeated axes (stride 0) once; UINT64_MAX if there are too
 * many. */
uint64_t dense_bytes(const struct hw_tensor *tensor);
/* Describes these bytes as contiguous, at the start of `buffer`; if that is NULL, of `memory`. */
struct hw_tensor dense_at(const struct hw_tensor *tensor, struct hw_buffer *buffer,
                          void *memory);
/* Moving a tensor in more pieces than this takes longer than gathering it in pinned memory. */
#define DIRECT_RUNS 16
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
