/* SPDX-License-Identifier: MIT */
/* explain.c - `hw explain`: how far up the ladder each plugin file got, step by step; or all
 * that the library knows, as JSON. */
#include "command.h"
#include "options.h"
#include "output.h"
#include "report.h"

#include <hw/hw.h>

#include <stdio.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw explain - how far each plugin file got, step by step\n\n"
        "Each file climbs the same ladder: list (is it named like a plugin), filter (do the\n"
        "settings want it), trust (who could have written it), preflight (what is in it, without\n"
        "running it), probe (does it run), bind (into the process). Where it stops, there is a\n"
        "reason.",
    .arguments = "[OPTION...] [NAME]",
    .notes =
        "  hw explain                     every file\n"
        "  hw explain cuda                files of this backend\n"
        "  hw explain /opt/hw/hw_foo.so   one file\n"
        "  hw explain --json              all that the library knows: files, settings, devices,\n"
        "                                 selection, calls (hw_explain() as it is)\n\n"
        "Exit status 1: NAME is none that was looked at, or no file got to the end.",
};

/* What each stage asks, in the words for its having passed. */
static const struct stage {
    const char *name, *passed;
} stages[] = {
    { "list", "named like a plugin, and the first of its name" },
    { "filter", "wanted by the settings" },
    { "trust", "only its owner, or root, could have written it" },
    { "preflight", "a plugin for this machine that needs nothing that is missing" },
    { "probe", "loads, answers, has devices" },
    { "bind", "in use" },
};
enum { STAGES = sizeof stages / sizeof stages[0] };

static void print_stop(const json_t *file, double us)
{
    const char *remedy = text_of(file, "remedy");
    say("  %s✗ %-10s%s%7.0f us  %s: %s\n", ink(RED), text_of(file, "stage"), ink(PLAIN), us,
        text_of(file, "reason"), text_of(file, "message"));
    if (*remedy)
        say("  %-22s%s\n", "", remedy);
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
        say("  %s✓ %-10s%s%7.0f us  %s\n", ink(GREEN), stages[i].name, ink(PLAIN), us,
            stages[i].passed);
    }
}

static void print_file(const json_t *file)
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
}

/* Whether NAME is the file's, by path, by the path's last part, or by backend. */
static bool is_named(const json_t *file, const char *name)
{
    const char *path = text_of(file, "file"), *last = strrchr(path, '/');
    return !strcmp(name, path) || !strcmp(name, text_of(file, "real")) ||
           !strcmp(name, text_of(file, "name")) || (last && !strcmp(name, last + 1));
}

/* Leaves only the files of that name in the report; false, and said, if there is none. */
static bool keep_named(json_t *explain, const char *name)
{
    json_t *kept = json_array(), *file;
    size_t index;

    json_array_foreach (json_object_get(explain, "candidates"), index, file)
        if (is_named(file, name))
            json_array_append(kept, file);
    bool found = json_array_size(kept) > 0;
    json_object_set_new(explain, "candidates", kept);
    if (!found)
        complain("%s: no such backend or plugin file was found; 'hw explain' lists all",
                 name);
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
        print_file(file);
    }
    if (!json_array_size(json_object_get(explain, "candidates")))
        say("No plugin file was found; 'hw status' says where it was looked.\n");
}

static int explain_files(json_t *explain, const char *name)
{
    if (name && !keep_named(explain, name))
        return EXIT_FAILED;
    int status = any_used(explain) ? 0 : EXIT_FAILED;
    if (out_json)
        out_tree(json_incref(explain));
    else {
        clean_tree(explain);
        print_files(explain);
        if (*text_of(explain, "open_error"))
            say("\n%sError:%s %s\n", ink(RED), ink(PLAIN), text_of(explain, "open_error"));
    }
    return *text_of(explain, "open_error") ? EXIT_FAILED : status;
}

int cmd_explain(int argc, const char **argv)
{
    const struct poptOption table[] = { OPTIONS_COMMON, POPT_TABLEEND };
    struct arguments arguments;
    struct report report;
    int status;

    if (options_read(&arguments, &manual, table, argc, argv, 1, &status)) {
        status = EXIT_FAILED;
        if (report_open(&report, NULL)) {
            status = explain_files(report.explain, arguments.words[0]);
            report_close(&report);
        }
    }
    options_close(&arguments);
    return status;
}
