/* SPDX-License-Identifier: MIT */
/* cache.c - `hw cache`: shows or removes the files in HW_CACHE_DIR. It loads no plugin. */
#include "cache_files.h"
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw cache - show or remove the verdicts and programs in HW_CACHE_DIR\n\n"
        "show lists the verdicts on plugins, which spare the next start a new trial, and the\n"
        "size of each plugin's compiled programs. clear removes both: plugins are then tried\n"
        "again, and programs compiled again.",
    .arguments = "[OPTION...] [show|clear] [BACKEND]",
    .notes = "  hw cache                       show all\n"
             "  hw cache clear                 remove all\n"
             "  hw cache clear cuda --verdicts try cuda again at the next start\n\n"
             "The exit status is 1 if a file could not be removed.",
};

struct words {
    const char *action, *plugin; /* plugin: NULL for all */
};

/* ---- show ---- */

/* "12 s", "3 min", "2 h", "5 days" */
struct span {
    char text[32];
};
static struct span span_of(double seconds)
{
    static const struct {
        double least, seconds;
        const char *name;
    } units[] = { { 172800, 86400, "days" }, { 7200, 3600, "h" }, { 120, 60, "min" } };
    struct span span;

    snprintf(span.text, sizeof span.text, "%.0f s", seconds);
    for (size_t i = sizeof units / sizeof units[0]; i-- > 0;)
        if (seconds >= units[i].least)
            snprintf(span.text, sizeof span.text, "%.0f %s", seconds / units[i].seconds,
                     units[i].name);
    return span;
}

/* When the plugin will be tried again. */
static struct span retry_of(const json_t *verdict)
{
    struct span span = { "if it changes" };
    if (*text_of(verdict, "problem"))
        strcpy(span.text, "at once");
    else if (!json_is_null(json_object_get(verdict, "expires"))) {
        const double left = number_of(verdict, "retry");
        struct span in = span_of(left);
        snprintf(span.text, sizeof span.text, "%s%.20s", left > 0 ? "in " : "at once",
                 left > 0 ? in.text : "");
    }
    return span;
}

static void print_verdict(const json_t *row)
{
    const char *problem = text_of(row, "problem"), *outcome = text_of(row, "outcome");
    const bool partly = *problem || !strcmp(outcome, "withdrawn");
    const enum ink colour = partly ? YELLOW : strcmp(outcome, "ok") ? RED : GREEN;

    say("%-12s %s%-16s%s ", text_of(row, "plugin"), ink(colour), *problem ? "-" : outcome,
        ink(PLAIN));
    say("%-10s %-14s ", *problem ? "-" : span_of(number_of(row, "age")).text,
        retry_of(row).text);
    say("%-10s %s", size_text((uint64_t)number_of(row, "bytes")).text,
        text_of(row, *problem ? "entry" : "file"));
    say("%s%s\n", *problem ? ": not used, " : "", problem);
}

static void print_verdicts(const json_t *verdicts)
{
    json_t *row;
    size_t index;

    if (json_array_size(verdicts))
        say("%s%-12s %-16s %-10s %-14s %-10s %s%s\n", ink(BOLD), "PLUGIN", "VERDICT", "AGE",
            "TRIED AGAIN", "SIZE", "FILE", ink(PLAIN));
    json_array_foreach (verdicts, index, row)
        print_verdict(row);
}

static void print_programs(const json_t *programs)
{
    json_t *row;
    size_t index;

    json_array_foreach (programs, index, row) {
        const double files = number_of(row, "files");
        say("%s: %.0f compiled program%s, %s\n", text_of(row, "plugin"), files,
            files == 1 ? "" : "s", size_text((uint64_t)number_of(row, "bytes")).text);
    }
}

static void print_cache(json_t *cache, const char *plugin)
{
    json_t *verdicts = json_object_get(cache, "verdicts");
    json_t *programs = json_object_get(cache, "programs");

    clean_tree(cache);
    say("%s (%s)\n", text_of(cache, "directory"), text_of(cache, "source"));
    print_verdicts(verdicts);
    print_programs(programs);
    if (!json_array_size(verdicts) && !json_array_size(programs))
        say("Nothing is kept there%s%s.\n", plugin ? " about " : "", plugin ? plugin : "");
}

static int show(const char *directory, const char *source, const char *plugin)
{
    json_t *verdicts = cache_verdicts(directory, plugin);
    if (out_csv && !out_json) {
        out_csv_rows(verdicts);
        json_decref(verdicts);
        return 0;
    }
    json_t *cache = json_pack("{s:i, s:o, s:s, s:o, s:o}", "schema", 1, "directory",
                              json_text(directory, strlen(directory)), "source", source,
                              "verdicts", verdicts, "programs",
                              cache_programs(directory, plugin));
    if (out_json) {
        out_tree(cache);
        return 0;
    }
    print_cache(cache, plugin);
    json_decref(cache);
    return 0;
}

/* ---- clear ---- */

static int clear(const char *directory, const char *plugin, bool verdicts_only)
{
    struct cleared cleared = { 0 };
    cache_clear_verdicts(directory, plugin, &cleared);
    if (!verdicts_only)
        cache_clear_programs(directory, plugin, &cleared);
    if (out_json)
        out_tree(json_pack("{s:i, s:o, s:i, s:I}", "schema", 1, "directory",
                           json_text(directory, strlen(directory)), "removed",
                           (int)cleared.files, "bytes", (json_int_t)cleared.bytes));
    else
        say("Removed %u file%s, %s.\n", cleared.files, cleared.files == 1 ? "" : "s",
            size_text(cleared.bytes).text);
    if (!cleared.failures)
        return 0;
    complain("%u file%s could not be removed from %s, the first of them %s",
             cleared.failures, cleared.failures == 1 ? "" : "s", directory, cleared.why);
    return EXIT_FAILED;
}

/* ---- the command ---- */

/* The setting, or NULL. */
static const json_t *find_setting(const json_t *explain, const char *variable)
{
    json_t *setting;
    size_t index;
    json_array_foreach (json_object_get(explain, "settings"), index, setting)
        if (!strcmp(text_of(setting, "variable"), variable))
            return setting;
    return NULL;
}

static bool is_invalid(const json_t *warnings)
{
    json_t *warning;
    size_t index;
    json_array_foreach ((json_t *)warnings, index, warning)
        if (strstr(json_string_value(warning), "is not a value of HW_CACHE_DIR"))
            return true;
    return false;
}

static int no_cache(const json_t *explain, const char *source)
{
    const json_t *warnings = json_object_get(explain, "warnings");
    if (out_json) {
        out_tree(json_pack("{s:i, s:n, s:s, s:[], s:[]}", "schema", 1, "directory",
                           "source", source, "verdicts", "programs"));
    } else if (!out_csv) {
        if (is_invalid(warnings)) /* a warning has the reason */
            say("Nothing is kept: the value of HW_CACHE_DIR is invalid.\n");
        else
            say("Nothing is kept: there is no cache directory (%s).\n", source);
        print_warnings(warnings, NULL);
    }
    return 0;
}

/* Asks the library for the directory. All plugins are disabled, so none is even read. */
static int run(struct words words, bool verdicts_only)
{
    const struct hw_options nothing = { .size = sizeof nothing, .disable = "*" };
    struct report report;
    if (!report_open(&report, &nothing))
        return EXIT_FAILED;
    const json_t *setting = find_setting(report.explain, "HW_CACHE_DIR");
    const char *directory = text_of(setting, "value"), *source = text_of(setting, "source");
    int status;
    if (*directory != '/')
        status = no_cache(report.explain, source);
    else if (!strcmp(words.action, "clear"))
        status = clear(directory, words.plugin, verdicts_only);
    else
        status = show(directory, source, words.plugin);
    report_close(&report);
    return status;
}

int cmd_cache(int argc, const char **argv)
{
    static const char *const actions[] = { "show", "clear", NULL };
    int verdicts_only = 0, status;
    const struct poptOption table[] = { { "verdicts", '\0', POPT_ARG_NONE, &verdicts_only,
                                          0, "clear: leave compiled programs", NULL },
                                        OPTION_CSV,
                                        OPTIONS_COMMON,
                                        POPT_TABLEEND };
    struct arguments arguments;

    if (options_read(&arguments, &manual, table, argc, argv, 2, &status)) {
        const char *action = arguments.count ? arguments.words[0] : "show";
        status = EXIT_USAGE;
        if (is_known("action", action, actions))
            status = run(
                (struct words){ action, arguments.count > 1 ? arguments.words[1] : NULL },
                verdicts_only);
    }
    options_close(&arguments);
    return status;
}
