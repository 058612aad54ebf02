/* SPDX-License-Identifier: MIT */
/* fallback.h - another device computes an op that the queue's device cannot compute. */
#ifndef HW_ROUTE_FALLBACK_H
#define HW_ROUTE_FALLBACK_H

#include "base/json.h"
#include "core.h"

/* The plugin returned `answer` for a submitted op: falls back if that is possible. */
enum hw_status submit_failed(struct hw_queue *queue, uint32_t op, const void *args,
                             int32_t answer);
enum hw_status fall_back(struct hw_queue *queue, uint32_t op, const void *args,
                         enum hw_status status);
/* HW_OK if fall_back() would try another device; otherwise the error that it would return. */
enum hw_status may_fall_back(const struct hw_queue *queue, uint32_t op, const void *args,
                             enum hw_status status);
/* The device that would compute an op instead of the queue's device; or NULL. */
struct hw_device *fallback_device(struct hw_queue *queue, uint32_t op, const void *args);
/* Whether an op that failed may be computed again: none of its outputs is also an input. */
bool may_retry(uint32_t op, const void *args);
void fallback_notes_free(struct hw_context *context);
/* Reports fallbacks and demotions. The caller holds the context's lock. */
void explain_fallbacks(struct json *json, struct hw_context *context);

#endif
