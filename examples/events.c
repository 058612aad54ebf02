/* SPDX-License-Identifier: MIT */
/* events.c - two queues and an event between them: the second queue reads what the first one
 * writes, without the host waiting in between. Timing events measure the first queue's work. */
#include <hw/hw.h>
#include <stdio.h>

enum { N = 1 << 16 };

static float x[N], y[N];

struct work {
    struct hw_queue *first, *second;
    struct hw_event *start, *done;
    struct hw_tensor a, b; /* on the device */
};

static enum hw_status open_all(struct hw_device *device, struct work *w)
{
    const struct hw_queue_options timed = { .size = sizeof timed,
                                            .flags = HW_QUEUE_TIMING };
    const int64_t n = N;
    enum hw_status status;
    if ((status = hw_queue_open(device, &timed, &w->first)) ||
        (status = hw_queue_open(device, NULL, &w->second)) ||
        (status = hw_event_create(device, HW_EVENT_TIMING, &w->start)) ||
        (status = hw_event_create(device, HW_EVENT_TIMING, &w->done)) ||
        (status = hw_tensor_alloc(device, 0, HW_F32, 1, &n, &w->a)) ||
        (status = hw_tensor_alloc(device, 0, HW_F32, 1, &n, &w->b)))
        return status;
    return HW_OK;
}

static enum hw_status compute(struct work *w)
{
    enum hw_status status;
    if ((status = hw_event_record(w->start, w->first)) ||
        (status = hw_tensor_write(w->first, &w->a, x, sizeof x)) ||
        (status = hw_silu(w->first, &(struct hw_silu){ .x = w->a, .y = w->b })) ||
        (status = hw_event_record(w->done, w->first)) ||
        /* Later work on `second` starts after `done`. */
        (status = hw_event_wait(w->done, w->second)) ||
        (status = hw_add(w->second, &(struct hw_add){ .a = w->a, .b = w->b, .y = w->b })) ||
        (status = hw_tensor_read(w->second, &w->b, y, sizeof y)))
        return status;
    return hw_queue_wait(w->second);
}

int main(void)
{
    struct hw_context *context;
    struct work w;
    double ms;

    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 9) - 4;
    if (hw_open(NULL, &context) || open_all(hw_device_default(context), &w) ||
        compute(&w) || hw_event_elapsed(w.start, w.done, &ms)) {
        fprintf(stderr, "%s\n", hw_message());
        hw_close(context);
        return 1;
    }
    printf("y[5] = %.4f\n", y[5]);
    fprintf(stderr, "first queue: %.3f ms\n", ms);
    hw_close(context); /* closes the queues, and frees the events and buffers */
    return 0;
}
