/* SPDX-License-Identifier: MIT */
/* sum.h - an add whose result is known, for tests that spoil the op. */
#ifndef HW_SUM_H
#define HW_SUM_H

#include "world.h"

struct sum {
    struct hw_queue *queue;
    struct hw_add op;
};

/* What `a` holds, four numbers. */
extern const float sum_input[4];

/* On operands of the queue's device; y holds zeros. */
struct sum sum_on(struct hw_queue *queue);
/* Whether y holds the sum; waits. */
bool sum_is_right(const struct sum *sum);
/* Submits the op, which must give the sum. */
void add_right(const struct sum *sum);

#endif
