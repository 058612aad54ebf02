/* SPDX-License-Identifier: MIT */
/* sum.c - see sum.h. */
#include "sum.h"

const float sum_input[4] = { 1, 2, 3, 4 };

struct sum sum_on(struct hw_queue *queue)
{
    const float more[4] = { 10, 20, 30, 40 }, zeros[4] = { 0 };
    return (struct sum){ queue,
                         { .a = put(queue, sum_input, 1, 4),
                           .b = put(queue, more, 1, 4),
                           .y = put(queue, zeros, 1, 4) } };
}

bool sum_is_right(const struct sum *sum)
{
    float got[4];
    bool right = true;
    get(sum->queue, &sum->op.y, got);
    for (int i = 0; i < 4; i++)
        right = right && got[i] == 11 * sum_input[i];
    return right;
}

void add_right(const struct sum *sum)
{
    ok(hw_add(sum->queue, &sum->op));
    assert_true(sum_is_right(sum));
}
