/* SPDX-License-Identifier: MIT */
/* calls.h - a valid call of each op, and a world whose CPU counts calls instead of computing. */
#ifndef HW_CALLS_H
#define HW_CALLS_H

#include "call/ops.h"
#include "world.h"

/* Creates a tensor of these extents in one block of host memory. `first` puts it at the start of
 * the block; otherwise it follows the earlier tensors. */
struct hw_tensor first_tensor(int32_t dtype, int32_t rank, int64_t a, int64_t b, int64_t c,
                              int64_t d);
struct hw_tensor tensor(int32_t dtype, int32_t rank, int64_t a, int64_t b, int64_t c,
                        int64_t d);
struct hw_tensor f32(int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d);

/* A valid call; its first operand starts the block again. */
union any_op valid_call(uint32_t op);

/* Whether `up` may be absent because gate may be packed, which then changes gate's shape. */
bool is_gated(uint32_t op);

/* Setup and teardown of a group of tests: the ops of the world's CPU compute nothing and count
 * their calls. */
int calls_begin(void **state);
int calls_end(void **state);
extern struct world world;
extern uint32_t plugin_calls;

/* Submits a call on the CPU. */
enum hw_status submit(uint32_t op, const union any_op *args);

#endif
