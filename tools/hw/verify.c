/* SPDX-License-Identifier: MIT */
/* verify.c - `hw verify`: compares every kernel of a device, or of a plugin file that need not be
 * installed, with the reference in verify/. */
#include "command/command.h"
#include "command/measure.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"
#include "command/watch.h"
#include "deadline.h"
#include "plugin_file.h"
#include "verify_run.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct manual manual = {
    .about =
        "hw verify - compare a plugin's results with a reference\n\n"
        "Runs every op with each of its kernels on ordinary and on difficult shapes and values,\n"
        "and compares the results with a reference in double precision. A path names a plugin\n"
        "file, which need not be installed; a name means a backend or a device. Without either,\n"
        "every usable device is verified.",
    .arguments = "[OPTION...] [FILE.so|BACKEND[:N]]",
    .notes =
        "  hw verify                               every device\n"
        "  hw verify cpu -o matmul                 one op of one backend\n"
        "  hw verify ./hw_mine.so --quick          a plugin of your own, fewer cases\n"
        "  hw verify cpu -c 'type=f16'             cases whose text contains this\n"
        "  hw verify cpu -c 'silu(type=f32,shape=31)'   one case, as printed for a failure\n"
        "  hw verify cpu --support                 which ops the device has in which types\n\n"
        "The file must pass the same checks as an installed one (HW_TRUST, ABI, libraries).\n"
        "The exit status is 1 if a case failed or the device computed no case.",
};

enum { DEFAULT_TIMEOUT = 60 }; /* seconds for a case */

struct wishes {
    int quick, support, list, verbose, timeout;
    char *op, *kernel, *pattern;
};

/* ---- The file ------------------------------------------------------------------------------ */

/* "a and 2 others", escaped. */
static void print_warning(const char *path, const char *what, const json_t *names,
                          const char *remedy)
{
    const size_t count = json_array_size(names);
    char first[256], others[64] = "";

    if (!count || !out_is_text())
        return;
    clean_text(first, sizeof first, json_string_value(json_array_get(names, 0)));
    if (count > 1)
        snprintf(others, sizeof others, " and %zu other%s", count - 1,
                 count > 2 ? "s" : "");
    say_folded(4, "%sWarning:%s %s %s %s%s%s\n", ink(YELLOW), ink(PLAIN), path, what, first,
               others, remedy);
}

/* Adds {"file", "exports", "unknown_keys", "links", "prints"} to the result. Symbols that a plugin
 * exports besides its entry can clash with those of the program. */
static void check_file(const char *path, const json_t *prints, json_t *files)
{
    json_t *exports = extra_exports(path), *keys = unknown_keys(path);
    json_t *links = linked_library(path);
    print_warning(
        path, "exports", exports,
        " besides hw_plugin_entry; hide it, for example with -fvisibility=hidden");
    print_warning(path, "has in its manifest the unknown key", keys,
                  ", which is ignored; <hw/plugin.h> lists the keys");
    print_warning(path, "links the library,", links,
                  "; a plugin gets its services as a table: leave out -lhw, the flags of "
                  "pkg-config --cflags hw are enough");
    print_warning(path, "prints from", prints,
                  "; a plugin must not print, because its text gets into the output of "
                  "programs: pass messages to the host's log()");
    json_array_append_new(files, json_pack("{s:s, s:o, s:o, s:o, s:O}", "file", path,
                                           "exports", exports, "unknown_keys", keys,
                                           "links", links, "prints", prints));
}

/* ---- The cases ----------------------------------------------------------------------------- */

static bool verify_one(struct verify_run *run, struct hw_device *device, json_t *list)
{
    if (run->filter.kernel && !report_has_kernel(device, NULL, run->filter.kernel))
        return false;
    json_t *one = verify_device(run, device);
    if (!one)
        return false;
    json_array_append_new(list, one);
    if (!verify_reached(&run->counts))
        complain("%s: the device computed no case", hw_device_name(device));
    return !run->counts.failed && verify_reached(&run->counts);
}

/* {"device", counts...} of each op. */
static void print_csv(const json_t *devices)
{
    json_t *rows = json_array(), *device;
    size_t index;
    json_array_foreach ((json_t *)devices, index, device)
        json_array_extend(rows, json_object_get(device, "ops"));
    out_csv_rows(rows);
    json_decref(rows);
}

struct outcome {
    json_t *devices, *files, *result;
};

static void conclude(const struct outcome *outcome, bool good)
{
    if (out_csv && !out_json)
        print_csv(outcome->devices);
    json_object_set_new(outcome->result, "devices", outcome->devices);
    json_object_set_new(outcome->result, "files", outcome->files);
    json_object_set_new(outcome->result, "good", json_boolean(good));
}

/* A case of the device does not end. */
static void give_up(void *user, json_t *device)
{
    const struct outcome *outcome = user;
    json_array_append_new(outcome->devices, device);
    conclude(outcome, false);
    if (out_json)
        out_tree(json_incref(outcome->result));
    _exit(out_end(EXIT_FAILED));
}

static int verify_devices(const struct report *report, struct verify_run *run,
                          struct hw_device **devices, uint32_t count, json_t *result)
{
    struct outcome outcome = { json_array(), json_array(), result };
    const char *path = "";
    bool good = true;

    run->give_up = give_up;
    run->user = &outcome;

    for (uint32_t i = 0; i < count; i++) {
        const char *own = report_plugin_path(report, devices[i]);
        run->prints = json_array();
        if (!report->file)
            run->subject = hw_device_name(devices[i]);
        good = verify_one(run, devices[i], outcome.devices) && good;
        if (*own && strcmp(own, path)) /* devices of one file follow each other */
            check_file(own, run->prints, outcome.files);
        json_decref(run->prints);
        path = own;
    }
    conclude(&outcome, good);
    return good ? 0 : EXIT_FAILED;
}

/* ---- Types of each op ------------------------------------------------------------------- */

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

/* A dtype that no case involves has no column. */
static bool has_column(const struct verify_matrix *matrix, int32_t dtype)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (matrix->cell[op][dtype].asked)
            return true;
    return false;
}

static void print_support(struct hw_device *device, const struct verify_matrix *matrix)
{
    say("%s%-12s%s", ink(BOLD), hw_device_name(device), ink(PLAIN));
    for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++)
        if (has_column(matrix, dtype))
            say(" %5s", hw_dtype_name(dtype));
    say("\n");
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        say("%-12s", hw_op_name(op));
        for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++) {
            const struct verify_cell *cell = &matrix->cell[op][dtype];
            if (!has_column(matrix, dtype))
                continue;
            say(" %5s", !cell->asked                     ? ""
                        : cell->supported == cell->asked ? "yes"
                        : cell->supported                ? "some"
                                                         : "-");
        }
        say("\n");
    }
}

static void print_support_csv(const json_t *devices)
{
    json_t *rows = json_array(), *device, *types, *cell;
    const char *op, *dtype;
    size_t index;

    json_array_foreach ((json_t *)devices, index, device)
        json_object_foreach (json_object_get(device, "support"), op, types)
            json_object_foreach (types, dtype, cell) {
                json_t *row = json_pack("{s:O, s:s, s:s}", "device",
                                        json_object_get(device, "device"), "op", op,
                                        "dtype", dtype);
                json_object_update(row, cell);
                json_array_append_new(rows, row);
            }
    out_csv_rows(rows);
    json_decref(rows);
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
        if (out_is_text())
            print_support(devices[i], &matrix);
    }
    if (out_csv && !out_json)
        print_support_csv(list);
    json_object_set_new(result, "devices", list);
    return 0;
}

static bool print_case(void *user, const char *test, bool perf)
{
    json_t *list = user;
    json_array_append_new(list,
                          json_pack("{s:s, s:b}", "case", test, "measured", (int)perf));
    if (out_is_text())
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
    if (out_csv && !out_json)
        out_csv_rows(list);
    json_object_set_new(result, "cases", list);
    return 0;
}

/* ---- Which devices ------------------------------------------------------------------------- */

enum { MOST_DEVICES = 256 };

/* Finds the devices that `word` names. Returns their number; 0 after a complaint. */
static uint32_t choose_devices(const struct report *report, const char *word,
                               struct hw_device **devices)
{
    uint32_t count = 0, all = hw_device_count(report->context);

    for (uint32_t i = 0; i < all && count < MOST_DEVICES && !report_error(report); i++) {
        struct hw_device *device = hw_device_at(report->context, i);
        if (!word || report->file || !strcmp(word, hw_device_backend(device)))
            devices[count++] = device;
    }
    if (!count) /* one device by name, or a complaint */
        count = (devices[0] = report_device(report, word)) != NULL;
    return count;
}

/* The trial of a plugin takes time. Ctrl-C names it, and the terminal shows the seconds. */
static bool open_report(struct report *report, const char *word,
                        const struct hw_options *options)
{
    char work[600];
    snprintf(work, sizeof work, "trying %.500s",
             word && is_plugin_file(word) ? word : "the plugins");
    watch_work(work);
    watch_interrupt(true);
    deadline_begin(&(struct deadline){ .work = work });
    const bool good = report_open_for(report, word, options);
    deadline_end();
    watch_interrupt(false);
    watch_work(NULL);
    return good;
}

static int verify_word(const struct wishes *wishes, const char *word, json_t *result)
{
    const struct hw_options options = { .size = sizeof options, .fallback = "error" };
    struct hw_device *devices[MOST_DEVICES];
    struct report report;
    int status = EXIT_FAILED;
    struct verify_run run = { .subject = word,
                              .verbose = wishes->verbose,
                              .timeout = wishes->timeout,
                              .filter = { .op = wishes->op,
                                          .kernel = wishes->kernel,
                                          .pattern = wishes->pattern,
                                          .quick = wishes->quick } };

    if (wishes->list)
        return list_cases(&run.filter, result);
    if (!open_report(&report, word, &options))
        return EXIT_FAILED;
    uint32_t count = choose_devices(&report, word, devices);
    run.filter.precision = report_setting(&report, "HW_PRECISION");
    if (count && wishes->support)
        status = show_support(devices, count, result);
    else if (count)
        status = verify_devices(&report, &run, devices, count, result);
    report_close(&report);
    return status;
}

int cmd_verify(int argc, const char **argv)
{
    struct wishes wishes = { .timeout = DEFAULT_TIMEOUT };
    const char *ops[HW_OP_COUNT + 1] = { NULL };
    const struct poptOption table[] = {
        { "op", 'o', POPT_ARG_STRING, &wishes.op, 0, "only this op", "OP" },
        { "kernel", 'k', POPT_ARG_STRING, &wishes.kernel, 0, "only this kernel", "NAME" },
        { "case", 'c', POPT_ARG_STRING, &wishes.pattern, 0,
          "only cases that contain this text or match it (with * and ?), or one whole case",
          "CASE" },
        { "quick", 'q', POPT_ARG_NONE, &wishes.quick, 0, "run fewer cases", NULL },
        { "verbose", 'v', POPT_ARG_NONE, &wishes.verbose, 0, "print every case", NULL },
        { "timeout", '\0', POPT_ARG_INT, &wishes.timeout, 0,
          "seconds for a case, which then fails and is the last one; 0: no limit (60)",
          "SECONDS" },
        { "support", 's', POPT_ARG_NONE, &wishes.support, 0,
          "print which ops the device computes in which types, found by running the quick "
          "cases",
          NULL },
        { "list", 'l', POPT_ARG_NONE, &wishes.list, 0, "list the cases and run nothing",
          NULL },
        OPTION_CSV,
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
    if (ready && wishes.timeout < 0) {
        complain("--timeout: must be 0 or more");
        status = EXIT_USAGE;
        ready = false;
    }
    if (ready) {
        json_t *result = measure_header(argc, argv);
        const size_t header = json_object_size(result);
        status = verify_word(&wishes, arguments.words[0], result);
        if (out_json && json_object_size(result) > header)
            out_tree(json_incref(result));
        json_decref(result);
    }
    free(wishes.op);
    free(wishes.kernel);
    free(wishes.pattern);
    options_close(&arguments);
    return status;
}
