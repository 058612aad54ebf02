/* SPDX-License-Identifier: MIT */
/* explain.c - `hw explain`: how far each plugin file got, stage by stage; with --json, everything
 * that the library knows. */
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"
#include "explain_op.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw explain - how far each plugin file got, stage by stage\n\n"
        "Each file passes through the same stages: list (is it named like a plugin), filter (do\n"
        "the settings want it), trust (who can write to it), preflight (is it a plugin for this\n"
        "machine; read, not run), match (does the system list its hardware), probe (is it sound,\n"
        "does it run), bind (into the process). A file that stops has a reason and a remedy.\n\n"
        "With --op: whether the queue's device or the CPU computes a call on host memory, why,\n"
        "and the estimates that decide.",
    .arguments = "[OPTION...] [BACKEND|FILE.so]",
    .notes =
        "  hw explain                     every file\n"
        "  hw explain cuda                the files of this backend\n"
        "  hw explain ./hw_mine.so        one file, installed or not\n"
        "  hw explain --json              everything the library knows: files, settings,\n"
        "                                 devices, selection, calls (hw_explain() as it is)\n"
        "  hw explain --op matmul --shape 512x4096x4096 --dtype f16\n"
        "                                 a product: --shape is MxNxK\n"
        "  hw explain --op matmul --shape 1x4096x4096 --dtype f32,q8_0\n"
        "                                 types of a and b; c is like a\n\n"
        "The exit status is 1 if no file was found, or none passed all stages.",
};

/* The meaning of each stage, once a file has passed it. */
static const struct stage {
    const char *name, *passed;
} stages[] = {
    { "list", "named like a plugin, and the first of its name" },
    { "filter", "wanted by the settings" },
    { "trust", "writable only by its owner or root" },
    { "preflight",
      "a plugin for this machine, by the beginning of its file and its manifest" },
    { "match", "the system lists hardware for it, or the settings name it" },
    { "probe", "loads, starts and lists its devices" },
    { "bind", "in use" },
};
enum { STAGES = sizeof stages / sizeof stages[0] };

static void print_stop(const json_t *file, double us)
{
    const char *remedy = text_of(file, "remedy");
    say_folded(24, "  %s✗ %-10s%s%7.0f us  %s: %s\n", ink(RED), text_of(file, "stage"),
               ink(PLAIN), us, text_of(file, "reason"), text_of(file, "message"));
    if (*remedy)
        say_folded(24, "  %-22sRemedy: %s\n", "", remedy);
}

/* The admission test, which is part of the probe. */
static void print_admission(const json_t *file)
{
    const json_t *admission = json_object_get(file, "admission");
    const double left = number_of(admission, "untested");
    if (!json_is_object(admission))
        return;
    say("  %-11s%7.0f us of these: %.0f cases of its ops tested", "",
        number_of(admission, "microseconds"), number_of(admission, "tested"));
    if (left > 0)
        say("; %.0f are not, for lack of time (until they are first used) or memory;\n"
            "  %-22sHW_PROBE=full hw status tests them",
            left, "");
    say("\n");
}

/* Whether the plugin has devices but none was used yet. */
static bool is_unbound(const json_t *file, const char *stage)
{
    return !strcmp(stage, "bind") && !flag_of(file, "bound");
}

static void print_ladder(const json_t *file)
{
    const json_t *times = json_object_get(file, "microseconds");
    bool stopped = *text_of(file, "reason");

    for (int i = 0; i < STAGES; i++) {
        double us = number_of(times, stages[i].name);
        if (stopped && !strcmp(stages[i].name, text_of(file, "stage"))) {
            print_stop(file, us);
            return;
        }
        if (is_unbound(file, stages[i].name)) {
            say("  - %-10s%7s     when one of its devices is first used\n", stages[i].name,
                "");
            return;
        }
        say_folded(24, "  %s✓ %-10s%s%7.0f us  %s%s\n", ink(GREEN), stages[i].name,
                   ink(PLAIN), us, stages[i].passed,
                   !strcmp(stages[i].name, "probe") && flag_of(file, "recalled")
                       ? ": known from an earlier start"
                       : "");
        if (!strcmp(stages[i].name, "probe"))
            print_admission(file);
    }
}

static void print_file(const json_t *file, const json_t *demotions)
{
    const json_t *manifest = json_object_get(file, "manifest");
    const char *version = text_of(file, "version"), *vendor = text_of(manifest, "vendor");

    say("%s%s%s", ink(BOLD), text_of(file, "file"), ink(PLAIN));
    if (strcmp(text_of(file, "real"), text_of(file, "file")) && *text_of(file, "real"))
        say(" -> %s", text_of(file, "real"));
    say("\n  %s%s%s%s%s", *text_of(file, "name") ? text_of(file, "name") : "(no name)",
        *version ? " " : "", version, *vendor ? ", " : "", vendor);
    if (json_is_object(manifest))
        say(", ABI %.0f to %.0f, rank %.0f%s", number_of(manifest, "abi_min"),
            number_of(manifest, "abi_max"), number_of(manifest, "rank"),
            flag_of(manifest, "built_with_library") ? ", built with the library" : "");
    say(": %s\n", text_of(file, "state"));
    print_ladder(file);
    if (!*text_of(file, "reason"))
        print_demotions(demotions, text_of(file, "name"), INT_MAX);
}

/* Whether the file has this path, file name or backend. */
static bool is_named(const json_t *file, const char *name)
{
    const char *path = text_of(file, "file"), *last = strrchr(path, '/');
    return !strcmp(name, path) || !strcmp(name, text_of(file, "real")) ||
           !strcmp(name, text_of(file, "name")) || (last && !strcmp(name, last + 1));
}

/* Keeps only files with that name in the report; false if there are none. */
static bool keep_named(json_t *explain, const char *name)
{
    json_t *kept = json_array(), *file;
    size_t index;

    json_array_foreach (json_object_get(explain, "candidates"), index, file)
        if (is_named(file, name))
            json_array_append(kept, file);
    bool found = json_array_size(kept) > 0;
    if (found)
        json_object_set(explain, "candidates", kept);
    json_decref(kept);
    return found;
}

static bool any_used(const json_t *explain)
{
    json_t *file;
    size_t index;
    json_array_foreach (json_object_get(explain, "candidates"), index, file)
        if (!*text_of(file, "reason"))
            return true;
    return false;
}

static void print_files(const json_t *explain)
{
    json_t *file;
    size_t index;
    json_array_foreach (json_object_get(explain, "candidates"), index, file) {
        say("%s", index ? "\n" : "");
        print_file(file, json_object_get(explain, "demotions"));
    }
    if (!json_array_size(json_object_get(explain, "candidates")))
        say("No plugin file was found; 'hw status' lists the directories.\n");
}

static int explain_files(json_t *explain)
{
    int status = any_used(explain) ? 0 : EXIT_FAILED;
    if (out_json)
        out_tree(json_incref(explain));
    else {
        clean_tree(explain);
        print_files(explain);
        if (*text_of(explain, "open_error"))
            say_folded(4, "\n%sError:%s %s\n", ink(RED), ink(PLAIN),
                       text_of(explain, "open_error"));
    }
    return *text_of(explain, "open_error") ? EXIT_FAILED : status;
}

/* A file outside the searched directories is tried alone. */
static int explain_named(struct report *report, const char *name)
{
    if (!name || keep_named(report->explain, name))
        return explain_files(report->explain);
    if (!is_plugin_file(name)) {
        complain("%s: no backend or plugin file of that name was found; 'hw explain' lists "
                 "all",
                 name);
        return EXIT_FAILED;
    }
    struct report alone;
    if (!report_open_for(&alone, name, NULL))
        return EXIT_FAILED;
    int status = explain_files(alone.explain);
    report_close(&alone);
    return status;
}

int cmd_explain(int argc, const char **argv)
{
    char *op = NULL, *shape = NULL, *types = NULL, *device = NULL;
    const struct poptOption table[] = {
        { "op", '\0', POPT_ARG_STRING, &op, 0, "where a call of this op is computed",
          "OP" },
        { "shape", '\0', POPT_ARG_STRING, &shape, 0,
          "--op: its shape; matmul: MxNxK; most ops: the extents of the output", "SHAPE" },
        { "dtype", '\0', POPT_ARG_STRING, &types, 0,
          "--op: its types, as in f16, or f32,q8_0 (f32)", "TYPE[,...]" },
        { "device", 'd', POPT_ARG_STRING, &device, 0,
          "--op: the device of the queue (the recommended device)", "DEVICE" },
        OPTIONS_COMMON,
        POPT_TABLEEND
    };
    struct arguments arguments;
    struct report report;
    int status;

    if (!options_read(&arguments, &manual, table, argc, argv, 1, &status)) {
        /* --help, or an error */
    } else if (op && arguments.count) {
        complain("%s: unexpected argument beside --op", arguments.words[0]);
        status = EXIT_USAGE;
    } else if (op) {
        status = explain_op(&(struct explain_op){ op, shape, types, device });
    } else if (shape || types || device) {
        complain("--shape, --dtype and --device need --op");
        status = EXIT_USAGE;
    } else {
        status = EXIT_FAILED;
        if (report_open(&report, NULL)) {
            status = explain_named(&report, arguments.words[0]);
            report_close(&report);
        }
    }
    free(op);
    free(shape);
    free(types);
    free(device);
    options_close(&arguments);
    return status;
}
