/* SPDX-License-Identifier: MIT */
/* verify.c - `hw verify`: holds every kernel of a device, or of a plugin file that is installed
 * nowhere yet, against the double-precision reference of verify/. */
#define _XOPEN_SOURCE 700 /* realpath() */

#include "command.h"
#include "measure.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "watch.h"

#include <hw/hw.h>
#include <verify.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN_FAILURES = 10 }; /* of one op; JSON has them all */

static const struct manual manual = {
    .about =
        "hw verify - hold a plugin's results against a reference\n\n"
        "Runs every op with every kernel that is eligible on ordinary and on ugly shapes and\n"
        "values, and compares with a reference in double precision. A path is a plugin file that\n"
        "need not be installed; a name is a backend or a device; without either: every device\n"
        "that can be used.",
    .arguments = "[OPTION...] [FILE.so|BACKEND[:N]]",
    .notes =
        "  hw verify                               every device\n"
        "  hw verify cpu -o matmul                 one op of one backend\n"
        "  hw verify ./hw_mine.so --quick          a plugin of your own, the small choice\n"
        "  hw verify cpu -c 'type=f16'             cases with this in their text\n"
        "  hw verify cpu -c 'silu(type=f32,shape=31)'   one case, as a failure prints it\n"
        "  hw verify cpu --support                 which ops in which types\n\n"
        "The file passes the same checks as an installed one (HW_TRUST, ABI, libraries). Exit\n"
        "status 1: a case failed, or the device has computed none.",
};

/* ---- A run over one device ----------------------------------------------------------------- */

struct run {
    const char *device;
    const char *subject; /* the file as the user called it, or the device */
    bool file;
    struct verify_filter filter;
    json_t *ops, *failures; /* of this device, for JSON */
    struct verify_counts op_counts, counts;
    char op[32];  /* the one that op_counts is about */
    double drawn; /* when progress was shown last */
    bool progress;
};

static uint64_t *count_of(struct verify_counts *counts, enum verify_verdict verdict)
{
    switch (verdict) {
    case VERIFY_PASSED:
        return &counts->passed;
    case VERIFY_FAILED:
        return &counts->failed;
    case VERIFY_SKIPPED:
        return &counts->skipped;
    default:
        return &counts->unsupported;
    }
}

static json_t *counts_json(const struct verify_counts *counts)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "passed", (json_int_t)counts->passed,
                     "empty", (json_int_t)counts->empty, "failed",
                     (json_int_t)counts->failed, "skipped", (json_int_t)counts->skipped,
                     "unsupported", (json_int_t)counts->unsupported);
}

static void print_counts(const char *what, const struct verify_counts *counts)
{
    bool failed = counts->failed > 0;
    say("  %-12s %6" PRIu64 " passed  %s%6" PRIu64 " failed%s", what, counts->passed,
        ink(failed ? RED : PLAIN), counts->failed, ink(PLAIN));
    if (counts->skipped)
        say("  %" PRIu64 " skipped", counts->skipped);
    if (counts->unsupported)
        say("  %" PRIu64 " not supported", counts->unsupported);
    if (counts->empty && !verify_reached(counts))
        say("  (all that passed were empty)");
    say("\n");
}

static void wipe_progress(struct run *run)
{
    if (run->progress && run->drawn > 0)
        fprintf(stderr, "\r\033[K");
    run->drawn = 0;
}

/* A line on the terminal that the next one takes the place of, ten times a second. */
static void draw_progress(struct run *run, const struct verify_result *result)
{
    double now = now_ns();
    if (!run->progress || now - run->drawn < 1e8)
        return;
    fprintf(stderr, "\r\033[K  %s: %" PRIu64 " passed, %" PRIu64 " failed: %.60s",
            result->op, run->op_counts.passed, run->op_counts.failed, result->test);
    run->drawn = now;
}

/* Says how the op before went, and begins another. */
static void next_op(struct run *run, const char *op)
{
    wipe_progress(run);
    if (*run->op) {
        json_t *counts = counts_json(&run->op_counts);
        json_object_set_new(counts, "op", json_string(run->op));
        json_array_append_new(run->ops, counts);
        if (!out_json)
            print_counts(run->op, &run->op_counts);
        out_flush();
    }
    memset(&run->op_counts, 0, sizeof run->op_counts);
    snprintf(run->op, sizeof run->op, "%s", op);
}

static void print_failure(const struct run *run, const struct verify_result *result)
{
    say("%sFAILED%s %s, kernel %s: %s\n", ink(RED), ink(PLAIN), result->device,
        *result->kernel ? result->kernel : "(its own choice)", result->text);
    if (result->error_bound > 0)
        say("       error %.3g, allowed %.3g; worst element %.3g, allowed %.3g\n",
            result->error, result->error_bound, result->worst, result->worst_bound);
    say("       again: hw verify %s%s%s -c '%s'\n", run->subject,
        *result->kernel ? " -k " : "", result->kernel, result->test);
}

static void keep_failure(struct run *run, const struct verify_result *result)
{
    json_array_append_new(
        run->failures,
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s}", "op", result->op, "kernel",
                  result->kernel, "case", result->test, "error", result->error,
                  "error_bound", result->error_bound, "worst", result->worst, "worst_bound",
                  result->worst_bound, "text", result->text));
    if (out_json || run->op_counts.failed > SHOWN_FAILURES + 1)
        return;
    wipe_progress(run);
    if (run->op_counts.failed > SHOWN_FAILURES)
        say("... more failures of %s: --json has them all\n", result->op);
    else
        print_failure(run, result);
}

/* So that a crash names the case. */
static void begin_case(void *user, const char *test)
{
    const struct run *run = user;
    char work[512];
    snprintf(work, sizeof work, "computing %s on %s", test, run->device);
    watch_work(work);
}

static bool take_result(void *user, const struct verify_result *result)
{
    struct run *run = user;
    if (strcmp(run->op, result->op))
        next_op(run, result->op);
    ++*count_of(&run->op_counts, result->verdict);
    run->op_counts.empty += result->empty && result->verdict == VERIFY_PASSED;
    if (result->verdict == VERIFY_FAILED)
        keep_failure(run, result);
    draw_progress(run, result);
    return !out_is_closed();
}

/* NULL, and said, if the device could not be asked. */
static json_t *verify_device(struct run *run, struct hw_device *device)
{
    char error[VERIFY_ERROR_TEXT] = "";

    run->ops = json_array();
    run->failures = json_array();
    run->op[0] = '\0';
    memset(&run->counts, 0, sizeof run->counts);
    if (!out_json)
        say("%s%s%s\n", ink(BOLD), hw_device_name(device), ink(PLAIN));
    run->device = hw_device_name(device);
    const struct verify_calls calls = { begin_case, take_result, run };
    enum hw_status status = verify_test(device, &run->filter, &calls, &run->counts, error);
    watch_work(NULL);
    next_op(run, "");
    if (status) {
        complain("%s: %s", hw_device_name(device), *error ? error : hw_message());
        json_decref(run->ops);
        json_decref(run->failures);
        return NULL;
    }
    if (!out_json)
        print_counts("all", &run->counts);
    return json_pack("{s:s, s:o, s:o, s:o}", "device", hw_device_name(device), "counts",
                     counts_json(&run->counts), "ops", run->ops, "failures", run->failures);
}

/* Whether some op of the device has a kernel of that name; if not, says so. */
static bool has_kernel(struct hw_device *device, const char *name)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        struct hw_kernel_info row = { .size = sizeof row };
        enum hw_status status;
        for (uint32_t i = 0; !(status = hw_device_kernel(device, op, i, &row)); i++)
            if (!strcmp(row.name, name))
                return true;
        if (status != HW_END && status != HW_UNSUPPORTED) {
            complain("%s: %s", name, hw_message());
            return false;
        }
    }
    complain("%s: no kernel of %s is called so; 'hw devices --kernels' lists them", name,
             hw_device_name(device));
    return false;
}

static int verify_devices(struct run *run, struct hw_device **devices, uint32_t count,
                          json_t *result)
{
    json_t *list = json_array();
    int status = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!run->file)
            run->subject = hw_device_name(devices[i]);
        if (run->filter.kernel && !has_kernel(devices[i], run->filter.kernel)) {
            status = EXIT_FAILED;
            continue;
        }
        json_t *one = verify_device(run, devices[i]);
        if (!one || run->counts.failed || !verify_reached(&run->counts))
            status = EXIT_FAILED;
        if (one && !verify_reached(&run->counts))
            complain("%s: it has computed no case", hw_device_name(devices[i]));
        if (one)
            json_array_append_new(list, one);
    }
    json_object_set_new(result, "devices", list);
    json_object_set_new(result, "good", json_boolean(status == 0));
    return status;
}

/* ---- What there is ------------------------------------------------------------------------- */

static json_t *support_json(struct hw_device *device, const struct verify_matrix *matrix)
{
    json_t *ops = json_object();
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        json_t *types = json_object();
        for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++) {
            const struct verify_cell *cell = &matrix->cell[op][dtype];
            if (cell->asked)
                json_object_set_new(types, hw_dtype_name(dtype),
                                    json_pack("{s:i, s:i}", "cases", (int)cell->asked,
                                              "supported", (int)cell->supported));
        }
        json_object_set_new(ops, hw_op_name(op), types);
    }
    return json_pack("{s:s, s:o}", "device", hw_device_name(device), "support", ops);
}

static void print_support(struct hw_device *device, const struct verify_matrix *matrix)
{
    say("%s%-12s%s", ink(BOLD), hw_device_name(device), ink(PLAIN));
    for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++)
        say(" %5s", hw_dtype_name(dtype));
    say("\n");
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        say("%-12s", hw_op_name(op));
        for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++) {
            const struct verify_cell *cell = &matrix->cell[op][dtype];
            say(" %5s", !cell->asked                     ? ""
                        : cell->supported == cell->asked ? "yes"
                        : cell->supported                ? "some"
                                                         : "-");
        }
        say("\n");
    }
}

static int show_support(struct hw_device **devices, uint32_t count, json_t *result)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        struct verify_matrix matrix;
        memset(&matrix, 0, sizeof matrix);
        if (verify_support(devices[i], &matrix)) {
            complain("%s: %s", hw_device_name(devices[i]), hw_message());
            json_decref(list);
            return EXIT_FAILED;
        }
        json_array_append_new(list, support_json(devices[i], &matrix));
        if (!out_json)
            print_support(devices[i], &matrix);
    }
    json_object_set_new(result, "devices", list);
    return 0;
}

static bool print_case(void *user, const char *test, bool perf)
{
    json_t *list = user;
    json_array_append_new(list,
                          json_pack("{s:s, s:b}", "case", test, "measured", (int)perf));
    if (!out_json)
        say("%s%s\n", test, perf ? "  (hw bench ops)" : "");
    return !out_is_closed();
}

static int list_cases(const struct verify_filter *filter, json_t *result)
{
    char error[VERIFY_ERROR_TEXT] = "";
    json_t *list = json_array();
    if (verify_list(filter, print_case, list, error)) {
        complain("%s", error);
        json_decref(list);
        return EXIT_USAGE;
    }
    json_object_set_new(result, "cases", list);
    return 0;
}

/* ---- What is meant ------------------------------------------------------------------------- */

enum { MOST_DEVICES = 256 };

static bool is_path(const char *word)
{
    size_t length = strlen(word);
    return strchr(word, '/') || (length > 3 && !strcmp(word + length - 3, ".so"));
}

/* Why the file that was asked for serves nothing. */
static void complain_of_file(const struct report *report, const char *path)
{
    const json_t *file = json_array_get(json_object_get(report->explain, "candidates"), 0);
    if (*text_of(file, "message"))
        complain("%s: stopped at %s (%s): %s. %s", path, text_of(file, "stage"),
                 text_of(file, "reason"), text_of(file, "message"),
                 text_of(file, "remedy"));
    else
        complain("%s: %s", path,
                 report_error(report) ? report_error(report) : "it serves no device");
}

/* The devices that `word` means: 0, and said, if there are none. */
static uint32_t choose_devices(const struct report *report, const char *word,
                               struct hw_device **devices)
{
    uint32_t count = 0, all = hw_device_count(report->context);
    bool path = word && is_path(word);

    for (uint32_t i = 0; i < all && count < MOST_DEVICES; i++) {
        struct hw_device *device = hw_device_at(report->context, i);
        if (!word || path || !strcmp(word, hw_device_backend(device)) ||
            !strcmp(word, hw_device_name(device)))
            devices[count++] = device;
    }
    if (count && report_error(report)) {
        complain("%s", report_error(report));
        return 0;
    }
    if (!count && path)
        complain_of_file(report, word);
    else if (!count)
        count = (devices[0] = report_device(report, word)) != NULL;
    return count;
}

struct wishes {
    int quick, support, list;
    char *op, *kernel, *pattern;
};

static const char *effective(const struct report *report, const char *variable)
{
    json_t *setting;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "settings"), index, setting)
        if (!strcmp(text_of(setting, "variable"), variable))
            return text_of(setting, "value");
    return "";
}

static int verify_word(const struct wishes *wishes, const char *word, json_t *result)
{
    struct hw_options options = { .size = sizeof options, .fallback = "error" };
    struct hw_device *devices[MOST_DEVICES];
    struct report report;
    char *file = NULL;
    int status = EXIT_FAILED;
    struct run run = {
        .filter = { .op = wishes->op,
                    .kernel = wishes->kernel,
                    .pattern = wishes->pattern,
                    .quick = wishes->quick },
        .progress = !out_json && isatty(STDERR_FILENO),
    };

    if (wishes->list)
        return list_cases(&run.filter, result);
    if (word && is_path(word)) {
        if (!(file = realpath(word, NULL))) {
            complain("%s: no such file can be read", word);
            return EXIT_FAILED;
        }
        struct stat about;
        if (stat(file, &about) == 0 && S_ISDIR(about.st_mode)) {
            complain("%s: is a directory, no plugin file; name the file in it", word);
            free(file);
            return EXIT_FAILED;
        }
        options.plugin_path_only = file;
        options.backends = "*";
    }
    if (report_open(&report, &options)) {
        uint32_t count = choose_devices(&report, word, devices);
        run.subject = word;
        run.file = file != NULL;
        run.filter.precision = effective(&report, "HW_PRECISION");
        if (count && wishes->support)
            status = show_support(devices, count, result);
        else if (count)
            status = verify_devices(&run, devices, count, result);
        report_close(&report);
    }
    free(file);
    return status;
}

int cmd_verify(int argc, const char **argv)
{
    struct wishes wishes = { 0 };
    const char *ops[HW_OP_COUNT + 1] = { NULL };
    const struct poptOption table[] = {
        { "op", 'o', POPT_ARG_STRING, &wishes.op, 0, "this op only", "OP" },
        { "kernel", 'k', POPT_ARG_STRING, &wishes.kernel, 0, "this kernel only", "NAME" },
        { "case", 'c', POPT_ARG_STRING, &wishes.pattern, 0,
          "cases with this text, or (with * and ?) that match it; or one whole case",
          "CASE" },
        { "quick", 'q', POPT_ARG_NONE, &wishes.quick, 0, "the small choice of cases",
          NULL },
        { "support", 's', POPT_ARG_NONE, &wishes.support, 0,
          "say which ops there are in which types: each small case is run once", NULL },
        { "list", 'l', POPT_ARG_NONE, &wishes.list, 0, "list the cases, and run nothing",
          NULL },
        OPTIONS_COMMON,
        POPT_TABLEEND
    };
    struct arguments arguments;
    int status;

    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        ops[op] = hw_op_name(op);
    bool ready = options_read(&arguments, &manual, table, argc, argv, 1, &status);
    if (ready && wishes.op && !is_known("op", wishes.op, ops)) {
        status = EXIT_USAGE;
        ready = false;
    }
    if (ready) {
        json_t *result = measure_header(argc, argv);
        status = verify_word(&wishes, arguments.words[0], result);
        if (out_json && json_object_size(result) > 5)
            out_tree(json_incref(result));
        json_decref(result);
    }
    free(wishes.op);
    free(wishes.kernel);
    free(wishes.pattern);
    options_close(&arguments);
    return status;
}
