/* SPDX-License-Identifier: MIT */
/* hours.h - the contents of hours.c: correct steps (steps.c) and occasional faults (mishaps.c). The
 * steps and faults of worker mode and hw_rescan() are in apart.c. */
#ifndef HOURS_H
#define HOURS_H

#include "soak.h"

#include <stddef.h>

/* A context that stays open for many steps: the two devices of examples/plugin, which have their
 * own memory, the CPU, and a device in a worker process. */
struct stay {
    struct hw_context *context;
    struct hw_queue *queues[3]; /* of discrete:0, discrete:1 and cpu:0 */
    struct hw_queue *apart;     /* of rogue:0, which only computes silu of one row */
};
#define QUEUES 3

void stay_open(struct stay *stay);
void stay_close(struct stay *stay);

/* "<root>/plugins": discrete and cpu. Dies if the status is an error. */
void must(enum hw_status status, const char *what);
/* Dies unless the status is `wanted`, with a message. */
void must_fail(enum hw_status status, enum hw_status wanted, const char *what);
/* Opens a context; `options` may only set path, probe and backends, which this function does not
 * set. */
enum hw_status open_as(struct hw_options options, struct hw_context **context);
/* Computes silu of some numbers in host memory on this queue; dies if the result is wrong. */
enum hw_status silu_right(struct hw_queue *queue);
/* Like silu_right(), on a new queue of the named device. */
enum hw_status silu_on(struct hw_context *context, const char *name);
/* Copies to a buffer of the queue's device and back; dies if the result is wrong. */
enum hw_status copy_right(struct hw_queue *queue);
/* Runs a graph that computes silu from buffer to buffer; dies if the result is wrong. */
enum hw_status graph_right(struct hw_queue *queue);

/* ---- apart.c ---- */

void apart_compute(struct stay *stay);
void apart_all(struct stay *stay);
void apart_crash(struct stay *stay);
void apart_kill(struct stay *stay);
void apart_hang(struct stay *stay);
void rescan_same(struct stay *stay);
void rescan_changes(struct stay *stay);

/* ---- all of them ---- */

struct scene {
    const char *name;
    void (*run)(struct stay *stay);
};
extern const struct scene steps[], mishaps[];
extern const size_t step_count, mishap_count;

#endif
