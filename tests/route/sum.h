/* SPDX-License-Identifier: MIT */
/* sum.h - an add with a known result, for tests that corrupt the op. */
#ifndef HW_SUM_H
#define HW_SUM_H

#include "world.h"

struct sum {
    struct hw_queue *queue;
    struct hw_add op;
};

/* The four numbers in `a`. */
extern const float sum_input[4];

/* Creates operands on the queue's device; y is filled with zeros. */
struct sum sum_on(struct hw_queue *queue);
/* Whether y holds the sum; waits. */
bool sum_is_right(const struct sum *sum);
/* Submits the op and checks that it gives the sum. */
void add_right(const struct sum *sum);

#endif
