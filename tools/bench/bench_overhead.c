/* SPDX-License-Identifier: MIT */
/* bench_overhead.c - where the time of an op on host tensors goes: the whole call, and the same
 * work step by step with buffers of the device. */
#include "bench.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/hw.h>

#include <stdio.h>
#include <stdlib.h>

enum { REPETITIONS = 50 };
static const int64_t sizes[] = { 4 << 10, 1 << 20, 64 << 20 };
enum { SIZES = sizeof sizes / sizeof *sizes };

/* WHOLE is one call on host tensors; the others are its steps. DISPATCH ends when the call returns,
 * COMPUTE when the device is done; every other step waits for its work. */
enum step { WHOLE, BUFFER, UPLOAD, DISPATCH, COMPUTE, READBACK, STEPS };
static const char *const step_names[STEPS] = {
    "whole", "buffer", "upload", "dispatch", "compute", "readback",
};

struct subject {
    struct hw_queue *queue;
    struct hw_silu on_host, on_device;
    uint64_t bytes; /* of each tensor */
};

static enum hw_status run_whole(struct subject *s)
{
    const enum hw_status status = hw_silu(s->queue, &s->on_host);
    return status ? status : hw_queue_wait(s->queue);
}

static enum hw_status take_buffers(struct subject *s)
{
    struct hw_device *device = hw_queue_device(s->queue);
    const int64_t *extent = s->on_host.x.extent;
    const enum hw_status status = hw_tensor_alloc(device, 0, HW_F32, 1, extent,
                                                  &s->on_device.x);
    return status ? status : hw_tensor_alloc(device, 0, HW_F32, 1, extent, &s->on_device.y);
}

static enum hw_status upload(struct subject *s)
{
    const enum hw_status status = hw_tensor_write(s->queue, &s->on_device.x,
                                                  s->on_host.x.data, s->bytes);
    return status ? status : hw_queue_wait(s->queue);
}

static enum hw_status dispatch(struct subject *s)
{
    return hw_silu(s->queue, &s->on_device);
}

static enum hw_status compute(struct subject *s)
{
    return hw_queue_wait(s->queue);
}

static enum hw_status read_back(struct subject *s)
{
    const enum hw_status status = hw_tensor_read(s->queue, &s->on_device.y,
                                                 s->on_host.y.data, s->bytes);
    return status ? status : hw_queue_wait(s->queue);
}

static enum hw_status (*const steps[STEPS])(struct subject *s) = {
    run_whole, take_buffers, upload, dispatch, compute, read_back,
};

/* Returns the time to free the buffers, which counts as part of BUFFER. */
static double give_buffers(struct subject *s)
{
    const double start = now_ns();
    hw_buffer_free(s->on_device.x.buffer);
    hw_buffer_free(s->on_device.y.buffer);
    s->on_device = (struct hw_silu){ 0 };
    return now_ns() - start;
}

/* Runs all steps once; their times go to us[step * count + i]. */
static enum hw_status run_round(struct subject *s, double *us, size_t count, size_t i)
{
    enum hw_status status = HW_OK;
    for (size_t step = 0; step < STEPS && !status; step++) {
        const double start = now_ns();
        status = steps[step](s);
        us[step * count + i] = (now_ns() - start) / 1000;
    }
    us[BUFFER * count + i] += give_buffers(s) / 1000;
    return status;
}

static void report_steps(const struct bench *bench, uint64_t bytes, double *us,
                         size_t count)
{
    json_t *row = json_pack("{s:s, s:s, s:I, s:s}", "bench", "overhead", "op", "silu",
                            "bytes", (json_int_t)bytes, "unit", "us");
    if (out_is_text())
        say("  %10s", size_text(bytes).text);
    for (size_t step = 0; step < STEPS; step++) {
        const struct spread spread = spread_of(us + step * count, count);
        json_object_set_new(row, step_names[step], spread_json(spread));
        if (out_is_text())
            say(" %s%10.1f%s", ink(step == WHOLE ? BOLD : PLAIN), spread.median,
                ink(PLAIN));
    }
    if (out_is_text())
        say("\n");
    json_array_append_new(bench->results, row);
}

/* The first round does not count: it compiles the kernel and fills the pool. */
static enum hw_status measure_size(const struct bench *bench, struct hw_queue *queue,
                                   int64_t bytes, size_t count)
{
    const int64_t elements = bytes / (int64_t)sizeof(float);
    float *x = calloc((size_t)elements, sizeof *x),
          *y = calloc((size_t)elements, sizeof *y);
    double *us = calloc(STEPS * count, sizeof *us);
    enum hw_status status = x && y && us ? HW_OK : HW_NO_MEMORY;
    struct subject subject = { .queue = queue,
                               .on_host = { .x = hw_host_1d(x, HW_F32, elements),
                                            .y = hw_host_1d(y, HW_F32, elements) },
                               .bytes = (uint64_t)bytes };
    for (int64_t i = 0; !status && i < elements; i++)
        x[i] = (float)(i % 17) - 8;
    for (size_t i = 0; !status && i <= count; i++)
        status = run_round(&subject, us, count, i ? i - 1 : 0);
    if (!status)
        report_steps(bench, (uint64_t)bytes, us, count);
    free(x);
    free(y);
    free(us);
    return status;
}

int measure_overhead(const struct bench *bench)
{
    const size_t count = (size_t)(bench->repetitions ? bench->repetitions : REPETITIONS);
    struct hw_queue *queue = NULL;
    struct report report;
    enum hw_status status = HW_NO_DEVICE;

    if (!report_open_for(&report, bench->device, NULL))
        return EXIT_FAILED;
    struct hw_device *device = report_device(&report, bench->device);
    if (device) /* by name, so that it computes even where the CPU would be faster */
        status = hw_device_find(report.context, hw_device_name(device), &device);
    if (!status)
        status = hw_queue_open(device, NULL, &queue);
    if (!status && out_is_text()) {
        say("\nsilu of f32 in host memory on %s, %zu times: medians in microseconds\n  %10s",
            hw_device_name(device), count, "bytes");
        for (size_t step = 0; step < STEPS; step++)
            say(" %10s", step_names[step]);
        say("\n");
    }
    for (int i = 0; i < SIZES && !status; i++)
        status = measure_size(bench, queue, sizes[i], count);
    if (status && device)
        complain("overhead: %s", status == HW_NO_MEMORY ? "out of memory" : hw_message());
    hw_queue_close(queue);
    report_close(&report);
    return status ? EXIT_FAILED : 0;
}
