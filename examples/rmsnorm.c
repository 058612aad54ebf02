/* SPDX-License-Identifier: MIT */
/* rmsnorm.c - the program of README.md: one op on host memory, on the best device. */
#include <hw/hw.h>
#include <stdio.h>

int main(void)
{
    const float x[2][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } }, weight[4] = { 1, 1, 1, 1 };
    float y[2][4];
    struct hw_context *context = NULL;
    struct hw_queue *queue = NULL;

    if (hw_open(NULL, &context) ||
        hw_queue_open(hw_device_default(context), NULL, &queue) ||
        hw_rmsnorm(queue, &(struct hw_rmsnorm){ .x = hw_host_2d(x, HW_F32, 2, 4),
                                                .weight = hw_host_1d(weight, HW_F32, 4),
                                                .y = hw_host_2d(y, HW_F32, 2, 4),
                                                .eps = 1e-5f }) ||
        hw_queue_wait(queue))
        return fprintf(stderr, "%s\n", hw_message()), 1;
    printf("%s: %.3f %.3f %.3f %.3f\n", hw_device_name(hw_queue_device(queue)), y[0][0],
           y[0][1], y[0][2], y[0][3]);
    hw_close(context);
    return 0;
}
