/* SPDX-License-Identifier: MIT */
/* bench_peaks.c - the peaks of the host's processor, which the figures of its ops are compared
 * with. */
#include "bench.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/output.h"

#include <host.h>

static void report_peak(const struct bench *bench, const struct host_peak *peak,
                        uint32_t threads)
{
    json_array_append_new(bench->results,
                          json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:f, s:f}", "bench",
                                    "peaks", "what", peak->what, "by", peak->unit, "unit",
                                    peak->reads ? "GB/s" : "GOP/s", "threads", (int)threads,
                                    "bytes", (json_int_t)peak->bytes, "one",
                                    peak->one / 1e9, "all", peak->all / 1e9));
    if (out_is_text())
        say("  %-12s %s%9.1f%s %9.1f %-6s %10s  %s\n", peak->what, ink(BOLD),
            peak->one / 1e9, ink(PLAIN), peak->all / 1e9, peak->reads ? "GB/s" : "GOP/s",
            peak->bytes ? size_text(peak->bytes).text : "", peak->unit);
}

int measure_peaks(const struct bench *bench)
{
    struct host_peak peaks[HOST_PEAKS];
    const uint32_t threads = host_threads();
    const int count = host_peaks(threads, bench->seconds > 0 ? bench->seconds : 0.1, peaks);

    if (!count) {
        complain("peaks: this kind of processor cannot be measured");
        return EXIT_FAILED;
    }
    if (out_is_text())
        say("\npeaks of the host, one thread and %u: operations (a multiplication and an "
            "addition are two)\nand bytes read, the best of several rounds\n",
            (unsigned)threads);
    for (int i = 0; i < count; i++)
        report_peak(bench, &peaks[i], threads);
    return 0;
}
