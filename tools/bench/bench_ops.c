/* SPDX-License-Identifier: MIT */
/* bench_ops.c - the speed of each kernel of each op, compared with the peaks of the device. */
#include "bench.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/hw.h>
#include <hw/report.h>
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
    json_t *caches = json_array();
    for (int i = 0; i < VERIFY_CACHES && peaks->cache[i].rate > 0; i++)
        json_array_append_new(caches,
                              json_pack("{s:f, s:f}", "bytes", peaks->cache[i].bytes,
                                        "read", peaks->cache[i].rate / 1e9));
    json_array_append_new(bench->results,
                          json_pack("{s:s, s:s, s:f, s:O, s:O}", "bench", "peaks", "unit",
                                    "GB/s, GFLOP/s", "copy", peaks->copy / 1e9, "matmul",
                                    flops, "caches", caches));
    if (out_is_text()) {
        const char *dtype;
        json_t *rate;
        say("peaks: copy %.1f GB/s (read and written)", peaks->copy / 1e9);
        for (size_t i = 0; i < json_array_size(caches); i++)
            say("; cache of %s read %.1f GB/s",
                size_text((uint64_t)peaks->cache[i].bytes).text,
                peaks->cache[i].rate / 1e9);
        json_object_foreach (flops, dtype, rate)
            say("; %s %.1f GFLOP/s", dtype, json_real_value(rate));
        say("\n");
    }
    json_decref(caches);
    json_decref(flops);
}

static int measure_device(const struct bench *bench, struct hw_device *device,
                          struct verify_peaks *peaks)
{
    if (verify_peaks(device, peaks)) {
        complain("ops: %s", hw_message());
        return EXIT_FAILED;
    }
    report_peaks(bench, peaks);
    return 0;
}

/* "37%"; "-" where there is no peak to compare with. */
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

static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds / 1e9 : 0;
}

static json_t *timing_json(const struct verify_timing *t)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:b, s:i, s:i, s:s, s:{s:f, s:f, s:f}, s:f, s:f, s:o, s:s}",
        "bench", "ops", "op", t->op, "kernel", t->kernel, "case", t->test, "cold",
        (int)t->cold, "graph", (int)t->graph, "sets", t->sets, "samples", t->samples,
        "unit", "us", "time", "p10", t->low * 1e6, "median", t->median * 1e6, "p90",
        t->high * 1e6, "gb_per_s", rate(t->bytes, t->median), "gflop_per_s",
        rate(t->flops, t->median), "peak", t->peak > 0 ? json_real(t->peak) : json_null(),
        "text", t->text);
}

static void print_timing(const struct verify_timing *t)
{
    if (*t->text)
        say_folded(4, "  %s: %s\n", t->test, t->text);
    else
        say("  %s%10.2f%s %9.2f %9.2f %8.2f %9.2f %6s  %s%s%s, %s%s\n", ink(BOLD),
            t->median * 1e6, ink(PLAIN), t->low * 1e6, t->high * 1e6,
            rate(t->bytes, t->median), rate(t->flops, t->median), share_of(t->peak).text,
            t->test, ink(DIM),
            t->graph  ? " graph"
            : t->cold ? " cold"
                      : "",
            *t->kernel ? t->kernel : "its own choice", ink(PLAIN));
    out_flush();
}

static bool take_timing(void *user, const struct verify_timing *timing)
{
    const struct bench *bench = user;
    json_array_append_new(bench->results, timing_json(timing));
    if (out_is_text())
        print_timing(timing);
    return !out_is_closed();
}

/* Measures one op, or all for NULL. */
static int measure_op(const struct bench *bench, struct hw_device *device, const char *op,
                      const struct verify_peaks *peaks)
{
    const struct verify_filter filter = {
        .op = op, .pattern = bench->pattern, .kernel = bench->kernel, .graph = bench->graph
    };
    char error[VERIFY_ERROR_TEXT] = "";
    if (!verify_perf(device, &filter, peaks, bench->seconds, take_timing, (void *)bench,
                     error))
        return 0;
    complain("ops: %s", *error ? error : hw_message());
    return EXIT_FAILED;
}

bool ops_accepts(const char **words)
{
    const char *ops[HW_OP_COUNT + 1] = { NULL };
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        ops[op] = hw_op_name(op);
    for (; *words; words++)
        if (!is_known("op", *words, ops))
            return false;
    return true;
}

/* Whether each op has the kernel named by --kernel, if any; complains if not. */
static bool have_kernel(const struct bench *bench, struct hw_device *device)
{
    bool known = !bench->kernel || bench->words[0] ||
                 report_has_kernel(device, NULL, bench->kernel);
    for (const char **op = bench->words; bench->kernel && *op && known; op++)
        known = report_has_kernel(device, *op, bench->kernel);
    return known;
}

int measure_ops(const struct bench *bench)
{
    const struct hw_options options = { .size = sizeof options, .fallback = "error" };
    struct verify_peaks peaks;
    struct hw_device *device;
    struct report report;
    int status = EXIT_FAILED;

    if (!report_open_for(&report, bench->device, &options))
        return EXIT_FAILED;
    if ((device = report_device(&report, bench->device)) && have_kernel(bench, device)) {
        memset(&peaks, 0, sizeof peaks);
        if (out_is_text())
            say("\nops on %s\n", hw_device_name(device));
        status = bench->no_peaks ? 0 : measure_device(bench, device, &peaks);
        if (!status && out_is_text())
            say("  %10s %9s %9s %8s %9s %6s  case, kernel\n", "us", "p10", "p90", "GB/s",
                "GFLOP/s", "peak");
        if (!status && !bench->words[0])
            status = measure_op(bench, device, NULL, &peaks);
        for (const char **op = bench->words; *op && !status; op++)
            status = measure_op(bench, device, *op, &peaks);
    }
    report_close(&report);
    return status;
}
