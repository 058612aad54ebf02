/* SPDX-License-Identifier: MIT */
/* bench.c - `hw bench`: chooses the measurements, runs them and prints the results. */
#include "bench.h"

#include "command/command.h"
#include "command/measure.h"
#include "command/options.h"
#include "command/output.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool takes_no_words(const char **words)
{
    if (words[0])
        complain("%s: unexpected argument; see hw bench --help", words[0]);
    return !words[0];
}

/* The first one is measured if no name is given. */
static const struct measurement {
    const char *name;
    int (*run)(const struct bench *bench);
    bool (*accepts)(const char **words);
} measurements[] = {
    { "speed", measure_speed, takes_no_words },
    { "open", measure_open, takes_no_words },
    { "dispatch", measure_dispatch, dispatch_accepts },
    { "copy", measure_copies, takes_no_words },
    { "overhead", measure_overhead, takes_no_words },
    { "peaks", measure_peaks, takes_no_words },
    { "threads", measure_threads, takes_no_words },
    { "ops", measure_ops, ops_accepts },
    { "products", measure_products, products_accepts },
};
enum { MEASUREMENTS = sizeof measurements / sizeof measurements[0] };
enum { MOST_REPETITIONS = 1000000, MOST_SECONDS = 3600, UNNAMED = INT_MIN };

static const struct manual manual = {
    .about =
        "hw bench - measure on this machine\n\n"
        "  speed             how fast is each device: its memory, and its products by type\n"
        "  dispatch [OP...]  overhead of an op call over a direct call of the plugin's function,\n"
        "                    or of its plan: the same call repeated, several shapes in turn, a\n"
        "                    struct that is filled anew, and operands that move\n"
        "  open              opening and closing a context: in a new process, and again\n"
        "  copy              copies from host to device, on the device, and back; to and from\n"
        "                    each other device\n"
        "  overhead          an op on host memory, split into buffer, upload, dispatch, compute\n"
        "                    and readback\n"
        "  peaks             limits of the host's processor, on one thread and on all:\n"
        "                    arithmetic, and reads from its caches and memory\n"
        "  threads           overhead of sharing an op between two threads of the CPU plugin\n"
        "  ops [OP...]       speed of each kernel of each op\n"
        "  products [TYPE:MxNxK...]\n"
        "                    products on the host's processor with weights read from memory, as\n"
        "                    stored and packed, and their share of the processor's peaks\n\n"
        "Without a name: speed, which takes at most about 20 seconds. Figures are medians, with\n"
        "the minimum or the 10th percentile and the 90th percentile; measurements that are\n"
        "compared take turns.",
    .arguments = "[OPTION...] "
                 "[speed|dispatch|open|copy|overhead|peaks|threads|ops|products [WORD...]]",
    .notes =
        "  hw bench                                how fast is this machine\n"
        "  taskset -c 1 hw bench dispatch          on one core: steadier figures\n"
        "  hw bench dispatch silu matmul --json    figures with units, machine, version, date\n"
        "  HW_BACKENDS=cpu hw bench open           only this backend\n"
        "  hw bench ops matmul --device cpu:0      one op on one device\n"
        "  hw bench ops -d ./hw_mine.so            a plugin that is not installed\n"
        "  HW_PRECISION=int8 hw bench products -d cpu:0 q4_0:1x4096x4096\n"
        "                                          one product, in int8\n\n"
        "GB/s and GFLOP/s count 10^9; sizes in KiB and MiB are powers of two.",
};

/* The index of a measurement, or -1 with a complaint. */
static int find_measurement(const char *name)
{
    const char *names[MEASUREMENTS + 1] = { NULL };
    if (!strcmp(name, "rival")) {
        complain(
            "rival: is a program of the source tree, build/tools/bench/hw-rival, and is "
            "not installed");
        return -1;
    }
    for (int i = 0; i < MEASUREMENTS; i++)
        names[i] = measurements[i].name;
    if (!is_known("measurement", name, names))
        return -1;
    for (int i = 0;; i++)
        if (!strcmp(name, names[i]))
            return i;
}

static int measure_words(struct bench *bench, int which, int argc, const char **argv)
{
    if (!measurements[which].accepts(bench->words))
        return EXIT_USAGE;
    json_t *result = measure_header(argc, argv);

    bench->results = json_array();
    if (out_is_text())
        measure_print_header();
    return measure_end(result, bench->results, measurements[which].run(bench));
}

int cmd_bench(int argc, const char **argv)
{
    struct bench bench = { .repetitions = UNNAMED, .seconds = UNNAMED };
    char *device = NULL, *pattern = NULL, *kernel = NULL;
    int which = 0, status;
    const struct poptOption table[] = {
        { "device", 'd', POPT_ARG_STRING, &device, 0,
          "the device to measure, or a plugin file (the recommended device)", "DEVICE" },
        { "repetitions", 'r', POPT_ARG_INT, &bench.repetitions, 0,
          "repetitions of dispatch, open, copy, overhead, threads (2000, 25, 20, 50, 200)",
          "N" },
        { "seconds", 't', POPT_ARG_DOUBLE, &bench.seconds, 0,
          "time to spend on each of the peaks, ops, products (0.1, 0.2, 0.5)", "S" },
        { "case", 'c', POPT_ARG_STRING, &pattern, 0,
          "ops: only cases that contain this text, or one whole case", "CASE" },
        { "kernel", 'k', POPT_ARG_STRING, &kernel, 0, "ops: only this kernel", "NAME" },
        { "graph", 'g', POPT_ARG_NONE, &bench.graph, 0,
          "ops: many calls as one graph, instead of single ones", NULL },
        { "no-peaks", '\0', POPT_ARG_NONE, &bench.no_peaks, 0,
          "ops: do not measure the peaks of the device, which takes a while", NULL },
        OPTION_CSV,
        OPTIONS_COMMON,
        POPT_TABLEEND
    };
    struct arguments arguments;

    if (!options_read(&arguments, &manual, table, argc, argv, 64, &status))
        goto done;
    status = EXIT_USAGE;
    if (bench.repetitions == UNNAMED)
        bench.repetitions = 0;
    else if (bench.repetitions < 1 || bench.repetitions > MOST_REPETITIONS) {
        complain("--repetitions=%d: must be 1 to %d", bench.repetitions, MOST_REPETITIONS);
        goto done;
    }
    if (bench.seconds == UNNAMED)
        bench.seconds = 0;
    else if (!(bench.seconds > 0 && bench.seconds <= MOST_SECONDS)) {
        complain("--seconds=%g: must be more than 0 and at most %d", bench.seconds,
                 MOST_SECONDS);
        goto done;
    }
    if (arguments.count && (which = find_measurement(arguments.words[0])) < 0)
        goto done;
    bench.device = device;
    bench.pattern = pattern;
    bench.kernel = kernel;
    bench.words = arguments.words + (arguments.count > 0);
    status = measure_words(&bench, which, argc, argv);
done:
    free(device);
    free(pattern);
    free(kernel);
    options_close(&arguments);
    return status;
}
