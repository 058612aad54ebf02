/* SPDX-License-Identifier: MIT */
/* checkops.c - verify/ as a program: tests, measures or lists the ops of every device. It needs
 * only libc, libm and libhw, so that it runs under emulators and on foreign systems. */
#define _GNU_SOURCE /* getopt_long() */

#include "verify.h"

#include <hw/report.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: checkops [--test | --perf | --support | --list] [option]...\n"
    "  --test              hold every kernel row against the oracle (default)\n"
    "  --perf              measure: median, spread, GB/s, GFLOP/s, share of the peaks\n"
    "  --support           which ops there are for which dtypes\n"
    "  --list              the cases, one a line; needs no device\n"
    "  -o, --op OP         this op alone\n"
    "  -d, --device NAME   this device alone: cpu, cuda:1\n"
    "  -k, --kernel ROW    this kernel row alone\n"
    "  -p, --pattern TEXT  cases with TEXT in them; with * or ?, all of a case's text; several\n"
    "                      texts with | between them; or one case as it is printed:\n"
    "                      -p 'silu(type=f16,shape=3x5)'\n"
    "  -q, --quick         the small choice (also: HW_TEST_QUICK=1)\n"
    "  -v, --verbose       every result, not only those that are wrong\n"
    "      --plugin FILE   this plugin instead of those that are installed\n"
    "      --precision P   fp32, fp16, int8: opens with it and judges by it (else "
    "HW_PRECISION)\n"
    "      --graph         --perf: many calls as one graph, instead of single ones\n"
    "      --seconds S     per measurement (0.2)\n"
    "      --json          one JSON object a line\n"
    "Exit status: 0 all is well; 1 something failed, or nothing could be asked; 2 usage.\n";

enum question { TEST, PERF, SUPPORT, LIST };

struct options {
    enum question question;
    struct verify_filter filter;
    const char *device, *plugin;
    double seconds;
    bool verbose, json;
};

/* ---- output -------------------------------------------------------------------------------- */

/* "key":"value", with the escapes that JSON requires. */
static void json_text(const char *key, const char *value, const char *before)
{
    printf("%s\"%s\":\"", before, key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            printf("\\%c", *value);
        else if ((unsigned char)*value < ' ')
            printf("\\u%04x", (unsigned)(unsigned char)*value);
        else
            putchar(*value);
    }
    putchar('"');
}

/* JSON cannot represent infinity and NaN. */
static void json_number(const char *key, double value)
{
    if (value - value == 0)
        printf(",\"%s\":%.6g", key, value);
    else
        printf(",\"%s\":null", key);
}

/* ---- --test -------------------------------------------------------------------------------- */

struct tally {
    struct verify_counts counts;
    double nearest; /* the largest share of a tolerance that a passed case took */
    const char *why_unsupported;
    uint64_t shown;
};

struct test_run {
    const struct options *options;
    struct tally op[HW_OP_COUNT + 1]; /* the last is about memory */
    char why[HW_OP_COUNT + 1][200];
};

static uint32_t op_number(const char *name)
{
    uint32_t op = 0;
    while (op < HW_OP_COUNT && strcmp(hw_op_name(op), name))
        op++;
    return op;
}

static double share(double value, double bound)
{
    return bound > 0 ? value / bound : 0;
}

static const char *const verdicts[] = { "passed", "FAILED", "skipped", "unsupported" };

static void print_result(const struct verify_result *r)
{
    printf("%s %s %s%s%s\n", verdicts[r->verdict], r->device, r->test,
           *r->kernel ? " by " : "", r->kernel);
    if (*r->text)
        printf("    %s\n", r->text);
    if (r->error_bound > 0)
        printf("    error %.3g (at most %.3g), worst element %.3g units (at most %.3g)\n",
               r->error, r->error_bound, r->worst, r->worst_bound);
}

static void print_result_json(const struct verify_result *r)
{
    json_text("device", r->device, "{");
    json_text("op", r->op, ",");
    json_text("kernel", r->kernel, ",");
    json_text("case", r->test, ",");
    json_text("verdict", r->verdict == VERIFY_FAILED ? "failed" : verdicts[r->verdict],
              ",");
    json_number("error", r->error);
    json_number("error_bound", r->error_bound);
    json_number("worst", r->worst);
    json_number("worst_bound", r->worst_bound);
    json_text("text", r->text, ",");
    printf("}\n");
}

enum { MOST_SHOWN = 8 }; /* failures of one op, unless --verbose */

static bool on_result(void *user, const struct verify_result *r)
{
    struct test_run *run = user;
    const uint32_t op = op_number(r->op);
    struct tally *tally = &run->op[op];
    uint64_t *const count[] = { &tally->counts.passed, &tally->counts.failed,
                                &tally->counts.skipped, &tally->counts.unsupported };

    ++*count[r->verdict];
    tally->counts.empty += r->empty && r->verdict == VERIFY_PASSED;
    if (r->verdict == VERIFY_PASSED) {
        const double error = share(r->error, r->error_bound);
        const double worst = share(r->worst, r->worst_bound);
        const double larger = error > worst ? error : worst;
        tally->nearest = larger > tally->nearest ? larger : tally->nearest;
    }
    if (r->verdict == VERIFY_UNSUPPORTED && !run->why[op][0])
        snprintf(run->why[op], sizeof run->why[op], "%s: %s", r->test, r->text);
    if (run->options->json)
        print_result_json(r);
    else if (run->options->verbose ||
             (r->verdict == VERIFY_FAILED && tally->shown++ < MOST_SHOWN))
        print_result(r);
    return true;
}

static void print_tallies(const struct test_run *run, struct hw_device *device)
{
    for (uint32_t op = 0; op <= HW_OP_COUNT; op++) {
        const struct tally *t = &run->op[op];
        const struct verify_counts *c = &t->counts;
        if (c->passed + c->failed + c->skipped + c->unsupported == 0)
            continue;
        printf("%-10s %-12s %5llu passed", hw_device_name(device),
               op < HW_OP_COUNT ? hw_op_name(op) : "memory", (unsigned long long)c->passed);
        if (c->failed)
            printf(", %llu FAILED", (unsigned long long)c->failed);
        if (c->skipped)
            printf(", %llu skipped", (unsigned long long)c->skipped);
        if (c->unsupported)
            printf(", %llu unsupported", (unsigned long long)c->unsupported);
        if (c->empty && !verify_reached(c))
            printf(", all that passed were empty");
        if (t->nearest > 0)
            printf("; at most %.0f%% of the tolerance", 100 * t->nearest);
        printf("\n");
        if (run->why[op][0])
            printf("%23s unsupported, for one: %s\n", "", run->why[op]);
    }
}

/* ---- --perf -------------------------------------------------------------------------------- */

static bool on_timing(void *user, const struct verify_timing *t)
{
    const struct options *options = user;

    if (options->json) {
        json_text("device", t->device, "{");
        json_text("op", t->op, ",");
        json_text("kernel", t->kernel, ",");
        json_text("case", t->test, ",");
        printf(",\"cold\":%s,\"graph\":%s,\"sets\":%d,\"samples\":%d",
               t->cold ? "true" : "false", t->graph ? "true" : "false", t->sets,
               t->samples);
        json_number("median", t->median);
        json_number("low", t->low);
        json_number("high", t->high);
        json_number("flops", t->flops);
        json_number("bytes", t->bytes);
        json_number("peak", t->peak);
        json_text("text", t->text, ",");
        printf("}\n");
    } else if (*t->text) {
        printf("%-24s %s: %s\n", t->kernel, t->test, t->text);
    } else {
        printf("%-16s %5s %9.2f us  %5.1f%% ..%5.1f%% %8.1f GB/s %8.1f GFLOP/s", t->kernel,
               t->graph  ? "graph"
               : t->cold ? "cold"
                         : "warm",
               t->median * 1e6, 100 * (t->low / t->median - 1),
               100 * (t->high / t->median - 1), t->bytes / t->median / 1e9,
               t->flops / t->median / 1e9);
        if (t->peak > 0)
            printf(" %5.0f%% of peak", 100 * t->peak);
        printf("  %s\n", t->test);
    }
    fflush(stdout);
    return true;
}

static enum hw_status perf(const struct options *options, struct hw_device *device,
                           char error[VERIFY_ERROR_TEXT])
{
    struct verify_peaks peaks;
    enum hw_status status = verify_peaks(device, &peaks);

    if (status)
        return status;
    if (options->json) {
        json_text("device", hw_device_name(device), "{");
        json_number("copy", peaks.copy);
        json_number("f32", peaks.flops[HW_F32]);
        json_number("f16", peaks.flops[HW_F16]);
        json_number("bf16", peaks.flops[HW_BF16]);
        printf("}\n");
    } else {
        printf("%s: copy %.1f GB/s; matmul f32 %.1f, f16 %.1f, bf16 %.1f GFLOP/s\n"
               "row, time of a call (tenths of the samples around it), rates, share of "
               "what the "
               "peaks allow\n",
               hw_device_name(device), peaks.copy / 1e9, peaks.flops[HW_F32] / 1e9,
               peaks.flops[HW_F16] / 1e9, peaks.flops[HW_BF16] / 1e9);
    }
    return verify_perf(device, &options->filter, &peaks, options->seconds, on_timing,
                       (void *)options, error);
}

/* ---- --support ----------------------------------------------------------------------------- */

static void print_cell(const struct verify_cell *cell)
{
    char text[32];

    if (!cell->asked)
        snprintf(text, sizeof text, "-");
    else if (!cell->supported)
        snprintf(text, sizeof text, "no");
    else if (cell->supported == cell->asked)
        snprintf(text, sizeof text, "yes");
    else
        snprintf(text, sizeof text, "%u/%u", (unsigned)cell->supported,
                 (unsigned)cell->asked);
    printf("%-12s", text);
}

/* Dtypes that no op is tested with have no column. */
static bool has_column(const struct verify_matrix *matrix, int32_t dtype)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (matrix->cell[op][dtype].asked)
            return true;
    return false;
}

static void print_matrix(const struct verify_matrix *matrix, struct hw_device *device)
{
    printf("%-16s", hw_device_name(device));
    for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++)
        if (has_column(matrix, dtype))
            printf("%-12s", hw_dtype_name(dtype));
    printf("\n");
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        printf("  %-14s", hw_op_name(op));
        for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++)
            if (has_column(matrix, dtype))
                print_cell(&matrix->cell[op][dtype]);
        printf("\n");
    }
}

/* First the facts about the device and the library, then every cell. */
static void print_matrix_json(const struct verify_matrix *matrix, struct hw_device *device)
{
    struct hw_device_info info = { .size = sizeof info };

    hw_device_info(device, &info);
    json_text("device", hw_device_name(device), "{");
    json_text("backend", hw_device_backend(device), ",");
    json_text("name", info.name, ",");
    json_text("arch", info.arch, ",");
    json_text("driver", info.driver, ",");
    json_text("library", hw_version_string(), ",");
    printf("}\n");
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++) {
            const struct verify_cell *cell = &matrix->cell[op][dtype];
            if (!has_column(matrix, dtype))
                continue;
            json_text("device", hw_device_name(device), "{");
            json_text("op", hw_op_name(op), ",");
            json_text("dtype", hw_dtype_name(dtype), ",");
            printf(",\"asked\":%u,\"supported\":%u}\n", (unsigned)cell->asked,
                   (unsigned)cell->supported);
        }
}

static enum hw_status support(const struct options *options, struct hw_device *device)
{
    struct verify_matrix matrix;
    const enum hw_status status = verify_support(device, &matrix);

    if (status)
        return status;
    if (options->json)
        print_matrix_json(&matrix, device);
    else
        print_matrix(&matrix, device);
    return HW_OK;
}

/* ---- --list -------------------------------------------------------------------------------- */

static bool on_case(void *user, const char *test, bool is_perf)
{
    const struct options *options = user;

    if (!options->json) {
        printf("%s%s\n", is_perf ? "perf " : "", test);
        return true;
    }
    json_text("case", test, "{");
    printf(",\"perf\":%s}\n", is_perf ? "true" : "false");
    return true;
}

/* ---- devices ------------------------------------------------------------------------------- */

static int complain(const char *what)
{
    fprintf(stderr, "checkops: %s\n", what);
    return 1;
}

/* Returns an exit status; adds to `counts`. */
static int ask_device(const struct options *options, struct hw_device *device,
                      struct verify_counts *counts)
{
    char error[VERIFY_ERROR_TEXT] = "";
    enum hw_status status =
        hw_device_reset(device); /* what the admission test has withdrawn */

    if (status)
        return complain(hw_message());
    if (options->question == TEST) {
        struct test_run *run = calloc(1, sizeof *run);
        if (!run)
            return complain("out of memory");
        run->options = options;
        const struct verify_calls calls = { .result = on_result, .user = run };
        status = verify_test(device, &options->filter, &calls, counts, error);
        if (!options->json)
            print_tallies(run, device);
        free(run);
    } else if (options->question == PERF) {
        status = perf(options, device, error);
    } else {
        status = support(options, device);
    }
    if (!status)
        return 0;
    complain(error[0] ? error : hw_message());
    return error[0] ? 2 : 1;
}

static int ask_devices(const struct options *options, struct hw_context *context)
{
    struct verify_counts counts = { 0 };
    int result = 0;

    if (hw_device_count(context) == 0)
        return complain("no device");
    for (uint32_t i = 0; result == 0 && i < hw_device_count(context); i++) {
        struct hw_device *device = hw_device_at(context, i);
        if (options->device && hw_device_find(context, options->device, &device))
            return complain(hw_message());
        result = ask_device(options, device, &counts);
        if (options->device)
            break;
    }
    if (result || options->question != TEST)
        return result;
    if (!verify_reached(&counts))
        result = complain("nothing was tested");
    if (options->json) {
        printf("{\"passed\":%llu,\"failed\":%llu,\"skipped\":%llu,\"unsupported\":%llu}\n",
               (unsigned long long)counts.passed, (unsigned long long)counts.failed,
               (unsigned long long)counts.skipped, (unsigned long long)counts.unsupported);
    } else {
        if (counts.unsupported)
            printf("%llu unsupported: neither passed nor failed\n",
                   (unsigned long long)counts.unsupported);
        printf("%llu passed, %llu failed, %llu skipped\n",
               (unsigned long long)counts.passed, (unsigned long long)counts.failed,
               (unsigned long long)counts.skipped);
    }
    return counts.failed ? 1 : result;
}

static int run(const struct options *options)
{
    char alone[4096] = "";
    if (options->plugin)
        snprintf(alone, sizeof alone, "%s:!", options->plugin);
    const struct hw_options open = { .size = sizeof open,
                                     .fallback = "error",
                                     .plugin_path = alone,
                                     .precision = options->filter.precision };
    struct hw_context *context = NULL;

    if (options->question == LIST) {
        char error[VERIFY_ERROR_TEXT] = "";
        if (!verify_list(&options->filter, on_case, (void *)options, error))
            return 0;
        complain(error);
        return 2;
    }
    if (hw_open(&open, &context))
        return complain(hw_message());
    const int result = ask_devices(options, context);
    hw_close(context);
    return result;
}

/* ---- the command line ---------------------------------------------------------------------- */

static bool read_option(struct options *o, int option)
{
    char *end = NULL;

    switch (option) {
    case 't':
        o->question = TEST;
        return true;
    case 'f':
        o->question = PERF;
        return true;
    case 's':
        o->question = SUPPORT;
        return true;
    case 'l':
        o->question = LIST;
        return true;
    case 'o':
        o->filter.op = optarg;
        return true;
    case 'd':
        o->device = optarg;
        return true;
    case 'k':
        o->filter.kernel = optarg;
        return true;
    case 'p':
        o->filter.pattern = optarg;
        return true;
    case 'q':
        o->filter.quick = true;
        return true;
    case 'v':
        o->verbose = true;
        return true;
    case 'P':
        o->plugin = optarg;
        return true;
    case 'R':
        o->filter.precision = optarg;
        return true;
    case 'S':
        o->seconds = strtod(optarg, &end);
        return end != optarg && !*end && o->seconds > 0;
    case 'g':
        o->filter.graph = true;
        return true;
    case 'j':
        o->json = true;
        return true;
    default:
        return false;
    }
}

static const struct option names[] = {
    { "test", no_argument, NULL, 't' },
    { "perf", no_argument, NULL, 'f' },
    { "support", no_argument, NULL, 's' },
    { "list", no_argument, NULL, 'l' },
    { "op", required_argument, NULL, 'o' },
    { "device", required_argument, NULL, 'd' },
    { "kernel", required_argument, NULL, 'k' },
    { "pattern", required_argument, NULL, 'p' },
    { "quick", no_argument, NULL, 'q' },
    { "verbose", no_argument, NULL, 'v' },
    { "plugin", required_argument, NULL, 'P' },
    { "precision", required_argument, NULL, 'R' },
    { "graph", no_argument, NULL, 'g' },
    { "seconds", required_argument, NULL, 'S' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
    const char *quick = getenv("HW_TEST_QUICK"), *precision = getenv("HW_PRECISION");
    struct options options = {
        .filter = { .precision = precision && *precision ? precision : "fp32" }
    };

    options.filter.quick = quick && *quick && strcmp(quick, "0") != 0;
    for (int option;
         (option = getopt_long(argc, argv, "o:d:k:p:qvh", names, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (!read_option(&options, option)) {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind != argc) {
        fprintf(stderr, "checkops: '%s' is not an option\n%s", argv[optind], usage);
        return 2;
    }
    return run(&options);
}
