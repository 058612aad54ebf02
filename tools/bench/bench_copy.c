/* SPDX-License-Identifier: MIT */
/* bench_copy.c - the speed of copies to a device, on it and back, and to and from every other
 * device. */
#include "bench.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/hw.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPETITIONS = 20 };
static const int64_t sizes[] = { 64 << 10, 4 << 20, 64 << 20 };
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Tensors of the same length: in ordinary and pinned memory of the host, and in two buffers of the
 * device. */
struct places {
    struct hw_tensor host, pinned, a, b;
};

static const struct direction {
    const char *name;
    size_t to, from; /* of struct places */
} directions[] = {
    { "host to device", offsetof(struct places, a), offsetof(struct places, host) },
    { "device to device", offsetof(struct places, b), offsetof(struct places, a) },
    { "device to host", offsetof(struct places, host), offsetof(struct places, b) },
    { "pinned to device", offsetof(struct places, a), offsetof(struct places, pinned) },
    { "device to pinned", offsetof(struct places, pinned), offsetof(struct places, b) },
};
enum { DIRECTIONS = sizeof directions / sizeof directions[0] };

static const struct hw_tensor *place(const struct places *places, size_t offset)
{
    return (const struct hw_tensor *)(const void *)((const char *)places + offset);
}

static void report_copy(const struct bench *bench, const char *direction, int64_t bytes,
                        struct spread us)
{
    const double gbps = (double)bytes / us.median / 1000;
    json_array_append_new(bench->results,
                          json_pack("{s:s, s:s, s:I, s:f, s:o}", "bench", "copy",
                                    "direction", direction, "bytes", (json_int_t)bytes,
                                    "gb_per_s", gbps, "us", spread_json(us)));
    if (out_is_text())
        say("  %-18s %10s %s%8.2f%s GB/s %10.1f us %10.1f %10.1f\n", direction,
            size_text((uint64_t)bytes).text, ink(BOLD), gbps, ink(PLAIN), us.median, us.min,
            us.p90);
}

/* Times one direction. The first copy does not count, because it may touch new pages. */
static enum hw_status measure_copy(struct hw_queue *queue, const struct hw_tensor *to,
                                   const struct hw_tensor *from, double *us, int count)
{
    enum hw_status status = HW_OK;
    for (int i = -1; i < count && !status; i++) {
        double start = now_ns();
        status = hw_copy(queue, &(struct hw_copy){ .src = *from, .dst = *to });
        if (!status)
            status = hw_queue_wait(queue);
        if (i >= 0)
            us[i] = (now_ns() - start) / 1000;
    }
    return status;
}

/* Makes a tensor of pinned host memory; leaves it empty if the device has no such memory. */
static enum hw_status pin(struct hw_device *device, int64_t elements,
                          struct hw_buffer **buffer, struct hw_tensor *tensor)
{
    const uint64_t bytes = (uint64_t)elements * sizeof(float);
    const enum hw_status status =
        hw_buffer_alloc(device, bytes, HW_BUFFER_PINNED | HW_BUFFER_ZEROED, buffer);
    return status ? (status == HW_UNSUPPORTED ? HW_OK : status)
                  : hw_tensor_host(tensor, hw_buffer_host(*buffer), HW_F32, 1, &elements);
}

static enum hw_status measure_size(const struct bench *bench, struct hw_queue *queue,
                                   int64_t bytes, double *us, int count)
{
    const int64_t elements = bytes / 4;
    struct hw_device *device = hw_queue_device(queue);
    struct hw_buffer *pinned = NULL;
    struct places places;
    enum hw_status status;
    float *memory = calloc((size_t)elements, sizeof *memory);

    memset(&places, 0, sizeof places);
    if (!memory)
        return HW_NO_MEMORY;
    for (int64_t i = 0; i < elements; i++)
        memory[i] = (float)i;
    status = hw_tensor_host(&places.host, memory, HW_F32, 1, &elements);
    if (!status)
        status = hw_tensor_alloc(device, 0, HW_F32, 1, &elements, &places.a);
    if (!status)
        status = hw_tensor_alloc(device, 0, HW_F32, 1, &elements, &places.b);
    if (!status)
        status = pin(device, elements, &pinned, &places.pinned);
    for (int i = 0; i < DIRECTIONS && !status; i++) {
        if (!place(&places, directions[i].to)->dtype ||
            !place(&places, directions[i].from)->dtype)
            continue;
        status = measure_copy(queue, place(&places, directions[i].to),
                              place(&places, directions[i].from), us, count);
        if (!status)
            report_copy(bench, directions[i].name, bytes, spread_of(us, (size_t)count));
    }
    hw_buffer_free(places.a.buffer);
    hw_buffer_free(places.b.buffer);
    hw_buffer_free(pinned);
    free(memory);
    return status;
}

/* ---- between two devices ---- */

/* Copies a pattern to the other device and back, and checks that it is unchanged. */
static enum hw_status way_and_back(struct hw_queue *queue, const struct hw_tensor *here,
                                   const struct hw_tensor *there, float *memory, bool *same)
{
    const size_t bytes = (size_t)here->extent[0] * sizeof *memory;
    struct hw_copy there_and_back[] = { { .src = *here, .dst = *there },
                                        { .src = *there, .dst = *here } };
    enum hw_status status;
    for (int64_t i = 0; i < here->extent[0]; i++)
        memory[i] = (float)(i % 16777213);
    if ((status = hw_tensor_write(queue, here, memory, bytes)) ||
        (status = hw_copy(queue, &there_and_back[0])) || (status = hw_queue_wait(queue)))
        return status;
    memset(memory, 0, bytes);
    if ((status = hw_tensor_write(queue, here, memory, bytes)) ||
        (status = hw_copy(queue, &there_and_back[1])) ||
        (status = hw_tensor_read(queue, here, memory, bytes)))
        return status;
    *same = true;
    for (int64_t i = 0; i < here->extent[0]; i++)
        *same = *same && memory[i] == (float)(i % 16777213);
    return HW_OK;
}

static enum hw_status measure_between(const struct bench *bench, struct hw_queue *queue,
                                      const struct hw_tensor *here,
                                      const struct hw_tensor *there, double *us, int count)
{
    const int64_t bytes = here->extent[0] * (int64_t)sizeof(float);
    const struct {
        const char *word;
        const struct hw_tensor *to, *from;
    } ways[] = { { "to", there, here }, { "from", here, there } };
    const char *other = hw_device_name(hw_buffer_device(there->buffer));
    enum hw_status status = HW_OK;
    for (int i = 0; i < 2 && !status; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %s", ways[i].word, other);
        status = measure_copy(queue, ways[i].to, ways[i].from, us, count);
        if (!status)
            report_copy(bench, name, bytes, spread_of(us, (size_t)count));
    }
    return status;
}

/* Skips a device that has no room for the tensor; the text output says so. */
static enum hw_status measure_other(const struct bench *bench, struct hw_queue *queue,
                                    struct hw_device *other, int64_t bytes, double *us,
                                    int count, bool *same)
{
    const int64_t elements = bytes / (int64_t)sizeof(float);
    struct hw_tensor here = { 0 }, there = { 0 };
    float *memory = malloc((size_t)bytes);
    enum hw_status status = memory ? HW_OK : HW_NO_MEMORY;
    if (!status)
        status = hw_tensor_alloc(hw_queue_device(queue), 0, HW_F32, 1, &elements, &here);
    if (!status && hw_tensor_alloc(other, 0, HW_F32, 1, &elements, &there) && out_is_text())
        say("  %s\n", hw_message());
    if (!status && there.buffer)
        status = way_and_back(queue, &here, &there, memory, same);
    if (!status && there.buffer && *same)
        status = measure_between(bench, queue, &here, &there, us, count);
    hw_buffer_free(here.buffer);
    hw_buffer_free(there.buffer);
    free(memory);
    if (!*same)
        complain("copy: %lld bytes came back from %s changed", (long long)bytes,
                 hw_device_name(other));
    return status;
}

/* Sets `same` to false, after a complaint, if a copy changed its bytes. */
static enum hw_status measure_others(const struct bench *bench, struct hw_queue *queue,
                                     struct hw_context *context, int64_t bytes, double *us,
                                     int count, bool *same)
{
    enum hw_status status = HW_OK;
    for (uint32_t i = 0; i < hw_device_count(context) && !status && *same; i++) {
        struct hw_device *other = hw_device_at(context, i);
        if (other != hw_queue_device(queue))
            status = measure_other(bench, queue, other, bytes, us, count, same);
    }
    return status;
}

int measure_copies(const struct bench *bench)
{
    int count = bench->repetitions ? bench->repetitions : REPETITIONS;
    double *us = calloc((size_t)count, sizeof *us);
    struct hw_queue *queue = NULL;
    struct hw_device *device;
    struct report report;
    enum hw_status status = HW_NO_MEMORY;
    bool same = true;

    if (us && report_open_for(&report, bench->device, NULL)) {
        device = report_device(&report, bench->device);
        status = device ? hw_queue_open(device, NULL, &queue) : HW_NO_DEVICE;
        if (!status && out_is_text())
            say("\ncopies of f32 on %s, %d of each: median, minimum, 90th percentile\n",
                hw_device_name(device), count);
        for (int i = 0; i < SIZES && !status && same; i++)
            if (!(status = measure_size(bench, queue, sizes[i], us, count)))
                status = measure_others(bench, queue, report.context, sizes[i], us, count,
                                        &same);
        if (status && device)
            complain("copy: %s", hw_message());
        hw_queue_close(queue);
        report_close(&report);
    }
    free(us);
    return status || !same ? EXIT_FAILED : 0;
}
