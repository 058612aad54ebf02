/* SPDX-License-Identifier: MIT */
/* world.h - shared by the tests of calls: a context with the CPU and the test devices
 * with separate memory, and short functions for tensors and expectations. */
#ifndef HW_WORLD_H
#define HW_WORLD_H

/* Before cmocka, which has a macro of the name of one of its functions. */
#include "base/message.h"
#include "core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct world {
    struct hw_context *context;
    struct hw_device *cpu, *near, *far; /* near, far: the two test devices */
    struct hw_queue *on_cpu, *on_near, *on_far;
    uint32_t log_lines; /* of level warning and above */
    char log[2048];     /* the last of them */
};

/* Opens a context with these options, the built plugins and one thread; without a log, unless they
 * name one. */
enum hw_status open_options(struct hw_options options, struct hw_context **context);
/* Opens everything; NULL settings: the default. The order is near, far, cpu. */
void world_open(struct world *world, const char *fallback, const char *memory_limit);
void world_close(struct world *world);

/* Between the two, no "discrete.sleep" ends: what a queue has to do after it stays undone. */
void hold_sleepers(void);
void release_sleepers(void);

/* HW_OK, or the test fails with the message. */
#define ok(call) ok_at(call, #call, __FILE__, __LINE__)
void ok_at(enum hw_status status, const char *call, const char *file, int line);
/* This status, and a message with these words in it. */
#define fails(status, words, call) fails_at(status, words, call, #call, __FILE__, __LINE__)
void fails_at(enum hw_status wanted, const char *words, enum hw_status status,
              const char *call, const char *file, int line);

/* Tensors of f32, extents ended by a negative one. */
struct hw_tensor host_f32(const float *data, ...);
struct hw_tensor device_f32(struct hw_device *device, ...);
/* A buffer of the queue's device with these values. */
struct hw_tensor put(struct hw_queue *queue, const float *data, int64_t rows, int64_t cols);
/* Its values, whatever the strides; waits. */
void get(struct hw_queue *queue, const struct hw_tensor *tensor, float *data);

/* hw_copy() from src to dst, wherever they lie. */
enum hw_status copy_between(struct hw_queue *queue, const struct hw_tensor *dst,
                            const struct hw_tensor *src);

/* An op that the CPU plugin does not compute: rope with a theta below 1. `x` has one row. */
enum hw_status rope_slowly(struct hw_queue *queue, const struct hw_tensor *x);

/* Values to compute with: small ones of both signs, exact in f32. */
void fill(float *x, int n);
float silu(float x);
/* Within what rounding may cost, or the test fails with both. */
#define close_to(got, wanted) close_to_at(got, wanted, __FILE__, __LINE__)
void close_to_at(float got, float wanted, const char *file, int line);

struct hw_call_stats calls(struct hw_queue *queue, uint32_t op);
/* Whether these words are in what hw_explain() writes. */
bool report_has(struct hw_context *context, const char *words);
#define END ((int64_t)-1)

/* From now on, the plugin of this device makes no plans, so that its ops' functions are called. */
void without_plans(struct hw_device *device);

#endif
