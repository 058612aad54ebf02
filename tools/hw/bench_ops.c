/* SPDX-License-Identifier: MIT */
/* bench_ops.c - how fast the ops are, kernel by kernel, beside what the device can do at best. */
#include "bench.h"
#include "command.h"
#include "measure.h"
#include "options.h"
#include "output.h"
#include "report.h"

#include <hw/hw.h>
#include <verify.h>

#include <stdio.h>
#include <string.h>

static void report_peaks(const struct bench *bench, const struct verify_peaks *peaks)
{
    json_t *flops = json_object();
    for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++)
        if (peaks->flops[dtype] > 0)
            json_object_set_new(flops, hw_dtype_name(dtype),
                                json_real(peaks->flops[dtype] / 1e9));
    json_array_append_new(bench->results,
                          json_pack("{s:s, s:s, s:f, s:O}", "bench", "peaks", "unit",
                                    "GB/s, GFLOP/s", "copy", peaks->copy / 1e9, "matmul",
                                    flops));
    if (!out_json) {
        const char *dtype;
        json_t *rate;
        say("at best: copy %.1f GB/s (read and written)", peaks->copy / 1e9);
        json_object_foreach (flops, dtype, rate)
            say("; %s matmul %.1f GFLOP/s", dtype, json_real_value(rate));
        say("\n");
    }
    json_decref(flops);
}

static int measure_peaks(const struct bench *bench, struct hw_device *device,
                         struct verify_peaks *peaks)
{
    if (verify_peaks(device, peaks)) {
        complain("ops: %s", hw_message());
        return EXIT_FAILED;
    }
    report_peaks(bench, peaks);
    return 0;
}

/* "37%"; "-" where what is possible is not known. */
struct share {
    char text[16];
};
static struct share share_of(double peak)
{
    struct share share = { "-" };
    if (peak > 0)
        snprintf(share.text, sizeof share.text, "%.0f%%", 100 * peak);
    return share;
}

static bool take_timing(void *user, const struct verify_timing *timing)
{
    const struct bench *bench = user;
    const double seconds = timing->median;
    const double gbps = seconds > 0 ? timing->bytes / seconds / 1e9 : 0;
    const double gflops = seconds > 0 ? timing->flops / seconds / 1e9 : 0;

    json_array_append_new(
        bench->results,
        json_pack(
            "{s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:s, s:{s:f, s:f, s:f}, s:f, s:f, s:o, s:s}",
            "bench", "ops", "op", timing->op, "kernel", timing->kernel, "case",
            timing->test, "cold", (int)timing->cold, "sets", timing->sets, "samples",
            timing->samples, "unit", "us", "time", "p10", timing->low * 1e6, "median",
            seconds * 1e6, "p90", timing->high * 1e6, "GB/s", gbps, "GFLOP/s", gflops,
            "peak", timing->peak > 0 ? json_real(timing->peak) : json_null(), "text",
            timing->text));
    if (out_json)
        return !out_is_closed();
    if (*timing->text)
        say("  %s: %s\n", timing->test, timing->text);
    else
        say("  %s%10.2f%s %8.2f %9.2f %6s  %s%s%s, %s\n", ink(BOLD), seconds * 1e6,
            ink(PLAIN), gbps, gflops, share_of(timing->peak).text, timing->test, ink(DIM),
            timing->cold ? " cold" : "",
            *timing->kernel ? timing->kernel : "its own choice");
    say("%s", ink(PLAIN));
    out_flush();
    return !out_is_closed();
}

/* One op, or all of them for NULL. */
static int measure_op(const struct bench *bench, struct hw_device *device, const char *op,
                      const struct verify_peaks *peaks)
{
    const struct verify_filter filter = { .op = op,
                                          .pattern = bench->pattern,
                                          .kernel = bench->kernel };
    char error[VERIFY_ERROR_TEXT] = "";
    if (!verify_perf(device, &filter, peaks, bench->seconds, take_timing, (void *)bench,
                     error))
        return 0;
    complain("ops: %s", *error ? error : hw_message());
    return EXIT_FAILED;
}

static bool known_ops(const char **words)
{
    const char *ops[HW_OP_COUNT + 1] = { NULL };
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        ops[op] = hw_op_name(op);
    for (; *words; words++)
        if (!is_known("op", *words, ops))
            return false;
    return true;
}

int measure_ops(const struct bench *bench)
{
    const struct hw_options options = { .size = sizeof options, .fallback = "error" };
    struct verify_peaks peaks;
    struct hw_device *device;
    struct report report;
    int status = EXIT_FAILED;

    if (!known_ops(bench->words))
        return EXIT_USAGE;
    if (!report_open(&report, &options))
        return EXIT_FAILED;
    if ((device = report_device(&report, bench->device))) {
        memset(&peaks, 0, sizeof peaks);
        if (!out_json)
            say("\nops on %s\n", hw_device_name(device));
        status = bench->no_peaks ? 0 : measure_peaks(bench, device, &peaks);
        if (!status && !out_json)
            say("  %10s %8s %9s %6s  case, kernel\n", "us", "GB/s", "GFLOP/s", "peak");
        if (!status && !bench->words[0])
            status = measure_op(bench, device, NULL, &peaks);
        for (const char **op = bench->words; *op && !status; op++)
            status = measure_op(bench, device, *op, &peaks);
    }
    report_close(&report);
    return status;
}
