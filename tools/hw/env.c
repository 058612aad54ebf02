/* SPDX-License-Identifier: MIT */
/* env.c - `hw env`: every setting with its effective value, its source and its meaning; and
 * variables that look like settings but are not. */
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/hw.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The meanings of the settings; the library knows their values and sources. */
static const struct meaning {
    const char *variable, *unset, *text;
} meanings[] = {
    { "HW_BACKENDS", "",
      "order and choice: 'cuda,*' prefers cuda, '!opencl' excludes it, 'cuda?' may be absent" },
    { "HW_DISABLE", "none", "backends that are never loaded, as patterns: 'opencl,ro*'" },
    { "HW_REQUIRE", "none", "fail rather than run without this backend" },
    { "HW_FALLBACK", "",
      "whether another device may compute an op that a device lacks: allow, warn, error" },
    { "HW_PLUGIN_PATH", "none",
      "directories or plugin files, searched before the built-in directory; '!' among them: "
      "instead of it" },
    { "HW_TRUST", "", "on: refuse files that other users can write to; off: load them" },
    { "HW_PROBE", "",
      "how a plugin is tried first: child, in a process of its own; full, likewise with all "
      "cases of its ops, and more time for each; inproc, not at all" },
    { "HW_PROBE_TIMEOUT", "",
      "seconds that such a trial may take; `hw` also reports starts that take longer" },
    { "HW_THREADS", "the usable cores", "CPU threads; OMP_NUM_THREADS is used if not set" },
    { "HW_PRECISION", "",
      "fp32: products of f32 stay f32; fp16: may use 16-bit units; int8: activations too" },
    { "HW_MEMORY_LIMIT", "none",
      "the most memory to use on each device: 512M, 8G (K, M, G are 1024, 1024^2, 1024^3)" },
    { "HW_CONFIG", "none", "a file with settings, one on each line: memory_limit = 8G" },
    { "HW_CACHE_DIR", "none",
      "for compiled programs and verdicts on plugins; off: nowhere" },
    { "HW_KERNEL", "the best", "kernels to force: portable, or op=kernel,op=kernel" },
    { "HW_LOG", "", "what is logged to standard error: off, error, warn, info, debug" },
    { "HW_SHADOW", "",
      "1/N: compare one of N calls of each op with the CPU plugin, withdraw ops that are wrong" },
    { "HW_WORKER", "none",
      "patterns: backends that run in processes of their own, so the program survives a crash; "
      "'opencl=60' stops the process if a call takes more than 60 seconds (300), '=0' never" },
};
enum { MEANINGS = sizeof meanings / sizeof meanings[0] };

static const struct manual manual = {
    .about =
        "hw env - the settings: effective value, source, meaning\n\n"
        "An option of the program takes precedence over the environment, the environment over\n"
        "the configuration file, and the file over the default. Settings are read once, when a\n"
        "context is opened.",
    .arguments = "[OPTION...] [NAME...]",
    .notes =
        "  hw env                       all of them\n"
        "  hw env fallback              one, by its name in the file or by its variable\n"
        "  HW_MEMORY_LIMIT=8G hw env    is this value accepted?\n\n"
        "The exit status is 1 if no context can be opened with these settings; the reason is\n"
        "shown.",
};

/* HW_FALLBACK, for "fallback" too. */
struct variable {
    char name[64];
};
static struct variable variable_of(const char *name)
{
    struct variable variable = { "HW_" };
    size_t length = strlen(name);

    if (!strncmp(name, "HW_", 3) || length + 4 > sizeof variable.name) {
        snprintf(variable.name, sizeof variable.name, "%s", name);
        return variable;
    }
    for (size_t i = 0; i <= length; i++)
        variable.name[3 + i] = (char)toupper((unsigned char)name[i]);
    return variable;
}

static const struct meaning *find_meaning(const char *variable)
{
    for (int i = 0; i < MEANINGS; i++)
        if (!strcmp(meanings[i].variable, variable))
            return &meanings[i];
    return NULL;
}

/* The named settings, or all, each with its meaning. */
static json_t *settings_json(const struct report *report, const char *const *names)
{
    json_t *settings = json_array(), *setting;
    size_t index;

    json_array_foreach (json_object_get(report->explain, "settings"), index, setting) {
        const char *name = text_of(setting, "variable");
        const struct meaning *meaning = find_meaning(name);
        bool wanted = !names[0];
        for (const char *const *word = names; *word; word++)
            wanted |= !strcmp(variable_of(*word).name, name);
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
    say("%s (%s)\n", ink(PLAIN), strcmp(source, name) ? source : "environment");
    say_folded(4, "    %s\n", text_of(setting, "meaning"));
}

static int show_settings(const struct report *report, const char *const *names)
{
    json_t *settings = settings_json(report, names), *setting;
    size_t index;

    if (out_json) {
        out_tree(json_pack("{s:i, s:o, s:O, s:O}", "schema", 1, "settings", settings,
                           "warnings", json_object_get(report->explain, "warnings"),
                           "error", json_object_get(report->explain, "open_error")));
    } else if (out_csv) {
        out_csv_rows(settings);
        json_decref(settings);
    } else {
        clean_tree(settings);
        clean_tree(report->explain);
        json_array_foreach (settings, index, setting)
            print_setting(setting);
        if (report_error(report))
            say_folded(4, "%sError:%s %s\n", ink(RED), ink(PLAIN), report_error(report));
        print_warnings(json_object_get(report->explain, "warnings"), report_error(report));
        json_decref(settings);
    }
    return report_error(report) ? EXIT_FAILED : 0;
}

int cmd_env(int argc, const char **argv)
{
    const struct poptOption table[] = { OPTION_CSV, OPTIONS_COMMON, POPT_TABLEEND };
    const char *names[MEANINGS + 1] = { NULL };
    struct arguments arguments;
    struct report report;
    int status;

    for (int i = 0; i < MEANINGS; i++)
        names[i] = meanings[i].variable;
    bool ready = options_read(&arguments, &manual, table, argc, argv, MEANINGS, &status);
    for (int i = 0; ready && i < arguments.count; i++)
        if (!is_known("setting", variable_of(arguments.words[i]).name, names)) {
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
