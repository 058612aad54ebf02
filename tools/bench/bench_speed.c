/* SPDX-License-Identifier: MIT */
/* bench_speed.c - how fast is this machine: a line for each device. */
#include "bench.h"
#include "command/bar.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/hw.h>
#include <hw/report.h>
#include <verify.h>

#include <stdio.h>

/* No device is begun later, so that the whole takes at most about 20 seconds. */
enum { LAST_BEGIN = 12 };

static const int32_t columns[] = { HW_F32, HW_F16, HW_BF16 };
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void print_rate(double rate)
{
    if (rate > 0)
        say(" %s%9.1f%s", ink(BOLD), rate / 1e9, ink(PLAIN));
    else
        say(" %9s", "-");
}

static void report_speed(const struct bench *bench, struct hw_device *device,
                         const struct verify_peaks *peaks)
{
    json_t *flops = json_object();
    for (int i = 0; i < COLUMNS; i++)
        if (peaks->flops[columns[i]] > 0)
            json_object_set_new(flops, hw_dtype_name(columns[i]),
                                json_real(peaks->flops[columns[i]] / 1e9));
    json_array_append_new(bench->results,
                          json_pack("{s:s, s:s, s:s, s:f, s:o}", "bench", "speed", "device",
                                    hw_device_name(device), "unit", "GB/s, GFLOP/s",
                                    "memory", peaks->copy / 1e9, "matmul", flops));
    if (!out_is_text())
        return;
    say("  %-12s", hw_device_name(device));
    print_rate(peaks->copy);
    for (int i = 0; i < COLUMNS; i++)
        print_rate(peaks->flops[columns[i]]);
    say("\n");
    out_flush();
}

static int measure_one(const struct bench *bench, struct hw_device *device)
{
    struct verify_peaks peaks;
    char what[160];
    snprintf(what, sizeof what, "measuring %.100s", hw_device_name(device));
    if (out_is_text())
        bar_draw(what, 0, 1);
    const enum hw_status status = verify_peaks(device, &peaks);
    if (out_is_text())
        bar_draw(what, 1, 1);
    if (status) {
        complain("speed: %s: %s", hw_device_name(device), hw_message());
        return EXIT_FAILED;
    }
    report_speed(bench, device, &peaks);
    return 0;
}

static int measure_all(const struct bench *bench, const struct report *report)
{
    const uint32_t count = hw_device_count(report->context);
    const double begin = now();
    int status = 0;
    for (uint32_t i = 0; i < count && !status; i++) {
        struct hw_device *device = hw_device_at(report->context, i);
        if (now() - begin < LAST_BEGIN)
            status = measure_one(bench, device);
        else if (out_is_text())
            say("  %-12s not measured, for lack of time: hw bench speed -d %s\n",
                hw_device_name(device), hw_device_name(device));
    }
    return status;
}

int measure_speed(const struct bench *bench)
{
    const struct hw_options options = { .size = sizeof options, .fallback = "error" };
    struct report report;
    int status = EXIT_FAILED;

    if (!report_open_for(&report, bench->device, &options))
        return EXIT_FAILED;
    struct hw_device *device = report_device(&report, bench->device);
    if (device && out_is_text())
        say("\nspeed: memory read and written by a large copy; a large product by type, or the\n"
            "multiply-adds of a processor, which computes f16 as f32\n"
            "  %-12s %9s %9s %9s %9s\n"
            "  %-12s %9s %9s %9s %9s\n",
            "", "memory", "f32", "f16", "bf16", "", "GB/s", "GFLOP/s", "GFLOP/s",
            "GFLOP/s");
    if (device)
        status = bench->device ? measure_one(bench, device) : measure_all(bench, &report);
    report_close(&report);
    return status;
}
