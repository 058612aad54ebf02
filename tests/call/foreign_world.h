/* SPDX-License-Identifier: MIT */
/* foreign_world.h - a context with the two devices of tests/fixtures/foreign.c and the CPU, for
 * tests that share queues and memory with its vendor or run user kernels. */
#ifndef HW_FOREIGN_WORLD_H
#define HW_FOREIGN_WORLD_H

#include "foreign.h"
#include "world.h"

extern struct hw_context *context;
extern struct hw_device *one, *two, *cpu;
extern struct hw_queue *queue, *on_two, *on_cpu; /* queue: on the first device */

int open_all(void **state);
int close_all(void **state);

/* How often the log has these words. */
int times(const char *words);

/* Creates a vector of four numbers on a device. holds() waits and compares its contents. */
struct hw_tensor vector(struct hw_queue *on, const float values[4]);
void holds(struct hw_queue *on, const struct hw_tensor *t, float a, float b, float c,
           float d);

/* hw_buffer_import() of a handle of this kind. */
enum hw_status import(struct hw_device *device, const char *kind, void *handle,
                      uint64_t bytes, struct hw_buffer **buffer);

/* A test with a world of its own. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

#endif
