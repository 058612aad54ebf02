/* SPDX-License-Identifier: MIT */
/* env.c - `hw env`: every setting with its effective value, where that came from, and what it
 * means; and variables that look like settings and are none. */
#include "command.h"
#include "options.h"
#include "output.h"
#include "report.h"

#include <hw/hw.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What each means, for people; the library knows the values and their sources. */
static const struct meaning {
    const char *variable, *unset, *text;
} meanings[] = {
    { "HW_BACKENDS", "",
      "order and choice: 'cuda,*': that first, then the rest; '!opencl': not that" },
    { "HW_DISABLE", "none", "backends never to touch, as patterns: 'opencl,ro*'" },
    { "HW_REQUIRE", "none", "fail rather than run without this backend" },
    { "HW_FALLBACK", "", "what an op that its device lacks may do: allow, warn, error" },
    { "HW_PLUGIN_PATH", "none",
      "directories, or plugin files, looked at before the built-in directory" },
    { "HW_PLUGIN_PATH_ONLY", "none", "the same, instead of the built-in directory" },
    { "HW_TRUST", "", "on: files that others may write to are refused; off" },
    { "HW_PROBE", "",
      "where a plugin is tried out first: inproc, in the process of the application" },
    { "HW_PROBE_TIMEOUT", "", "seconds that a plugin may take to start; `hw` then stops" },
    { "HW_THREADS", "the usable cores",
      "CPU threads; OMP_NUM_THREADS counts where this is not set" },
    { "HW_PRECISION", "",
      "fp32: f32 inputs stay f32; fp16: 16-bit units may serve; int8: activations too" },
    { "HW_MEMORY_LIMIT", "none", "the most memory to take, per device: 512M, 8G" },
    { "HW_CONFIG", "none", "a file with any of these, one a line: memory_limit = 8G" },
    { "HW_CACHE_DIR", "none", "where plugins keep compiled programs; off" },
    { "HW_KERNEL", "the best", "kernel rows to force: portable, or op=row,op=row" },
    { "HW_LOG", "", "what is logged to standard error: off, error, warn, info, debug" },
};
enum { MEANINGS = sizeof meanings / sizeof meanings[0] };

static const struct manual manual = {
    .about =
        "hw env - the settings: effective value, where it came from, meaning\n\n"
        "An option of the program wins over the environment, the environment over the\n"
        "configuration file, that over the default. They are read once, when a context is opened.",
    .arguments = "[OPTION...] [NAME...]",
    .notes =
        "  hw env                       all of them\n"
        "  hw env HW_BACKENDS           one\n"
        "  HW_MEMORY_LIMIT=8G hw env    is it understood?\n\n"
        "Exit status 1: with these settings no context can be opened; the reason is shown.",
};

static const struct meaning *find_meaning(const char *variable)
{
    for (int i = 0; i < MEANINGS; i++)
        if (!strcmp(meanings[i].variable, variable))
            return &meanings[i];
    return NULL;
}

/* The library's list of settings, with the meaning added to each, and only those named. */
static json_t *settings_json(const struct report *report, const char *const *names)
{
    json_t *settings = json_array(), *setting;
    size_t index;

    json_array_foreach (json_object_get(report->explain, "settings"), index, setting) {
        const char *name = text_of(setting, "variable");
        const struct meaning *meaning = find_meaning(name);
        bool wanted = !names[0];
        for (const char *const *word = names; *word; word++)
            wanted |= !strcmp(*word, name);
        if (!wanted)
            continue;
        json_object_set_new(setting, "meaning", json_string(meaning ? meaning->text : ""));
        json_array_append(settings, setting);
    }
    return settings;
}

static void print_setting(const json_t *setting)
{
    const char *name = text_of(setting, "variable"), *value = text_of(setting, "value");
    const char *source = text_of(setting, "source");
    const struct meaning *meaning = find_meaning(name);
    bool unset = !strcmp(source, "default");

    say("%s%-19s%s %s%-19s", ink(BOLD), name, ink(PLAIN), ink(unset ? PLAIN : GREEN),
        *value || !meaning ? value : meaning->unset);
    say("%s (%s)\n    %s\n", ink(PLAIN), strcmp(source, name) ? source : "environment",
        text_of(setting, "meaning"));
    if (*text_of(setting, "note"))
        say("    %s%s%s\n", ink(YELLOW), text_of(setting, "note"), ink(PLAIN));
}

static int show_settings(const struct report *report, const char *const *names)
{
    json_t *settings = settings_json(report, names), *setting;
    size_t index;

    if (out_json) {
        out_tree(json_pack("{s:i, s:o, s:O, s:O}", "schema", 1, "settings", settings,
                           "warnings", json_object_get(report->explain, "warnings"),
                           "error", json_object_get(report->explain, "open_error")));
    } else {
        clean_tree(settings);
        clean_tree(report->explain);
        json_array_foreach (settings, index, setting)
            print_setting(setting);
        if (report_error(report))
            say("%sError:%s %s\n", ink(RED), ink(PLAIN), report_error(report));
        print_warnings(json_object_get(report->explain, "warnings"), report_error(report));
        json_decref(settings);
    }
    return report_error(report) ? EXIT_FAILED : 0;
}

int cmd_env(int argc, const char **argv)
{
    const struct poptOption table[] = { OPTIONS_COMMON, POPT_TABLEEND };
    const char *names[MEANINGS + 1] = { NULL };
    struct arguments arguments;
    struct report report;
    int status;

    for (int i = 0; i < MEANINGS; i++)
        names[i] = meanings[i].variable;
    bool ready = options_read(&arguments, &manual, table, argc, argv, MEANINGS, &status);
    for (int i = 0; ready && i < arguments.count; i++)
        if (!is_known("setting", arguments.words[i], names)) {
            status = EXIT_USAGE;
            ready = false;
        }
    if (ready) {
        status = EXIT_FAILED;
        if (report_open(&report, NULL)) {
            status = show_settings(&report, arguments.words);
            report_close(&report);
        }
    }
    options_close(&arguments);
    return status;
}
