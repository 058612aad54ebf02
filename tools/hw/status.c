/* SPDX-License-Identifier: MIT */
/* status.c - `hw status`: what can be used, and for everything else why not and what to do.
 *
 * A backend is available if a plugin of its name serves a device that the settings allow. Files
 * are shown below their backend; nothing that was looked at is left out. */
#include "command.h"
#include "options.h"
#include "output.h"
#include "report.h"

#include <hw/hw.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw status - what hardware can be used; for what cannot, why and what to do\n\n"
        "Looks at every plugin file there is, as a program would at its start, and asks those\n"
        "that pass for their devices.",
    .arguments = "[OPTION...]",
    .notes =
        "  hw status\n"
        "  HW_BACKENDS=cpu hw status              as a program with this setting would see it\n"
        "  HW_PLUGIN_PATH=$PWD/build hw status    with plugins of your own\n"
        "  hw status --json | jq .recommended\n\n"
        "'hw devices' has every fact of a device, 'hw explain' every step of a file, 'hw env' the\n"
        "settings. Exit status 1: no device can be used, or a setting is in error.",
};

/* ---- What there is to say, as a tree: {"name", "title", "available", "devices", "files"} each */

static json_t *matching(const struct report *report, const char *list_key, const char *key,
                        const char *value)
{
    json_t *list = json_array(), *each;
    size_t index;
    json_array_foreach (json_object_get(report->explain, list_key), index, each)
        if (!strcmp(text_of(each, key), value))
            json_array_append(list, each);
    return list;
}

static bool is_available(const struct report *report, const char *backend)
{
    for (uint32_t i = 0; i < hw_device_count(report->context); i++)
        if (!strcmp(hw_device_backend(hw_device_at(report->context, i)), backend))
            return true;
    return false;
}

static bool is_listed(const json_t *backends, const char *name)
{
    json_t *backend;
    size_t index;
    json_array_foreach ((json_t *)backends, index, backend)
        if (*name && !strcmp(text_of(backend, "name"), name))
            return true;
    return false;
}

/* Of several files the one that works is asked, or else the first. */
static const char *title_of(const json_t *files)
{
    json_t *file;
    size_t index;
    json_array_foreach ((json_t *)files, index, file)
        if (!*text_of(file, "reason"))
            return text_of(file, "title");
    return text_of(json_array_get(files, 0), "title");
}

/* A file whose name is none is shown by itself. */
static void list_backend(const struct report *report, json_t *backends, const char *name,
                         json_t *file)
{
    if (is_listed(backends, name))
        return;
    json_t *files = *name ? matching(report, "candidates", "name", name)
                          : json_pack("[O]", file);
    json_array_append_new(backends, json_pack("{s:s, s:s, s:b, s:o, s:o}", "name", name,
                                              "title", title_of(files), "available",
                                              (int)is_available(report, name), "devices",
                                              matching(report, "devices", "backend", name),
                                              "files", files));
}

/* Available ones in order of preference, then the others in the order they were looked at. */
static json_t *backends_json(const struct report *report)
{
    json_t *backends = json_array(), *file;
    size_t index;

    for (uint32_t i = 0; i < hw_device_count(report->context); i++)
        list_backend(report, backends, hw_device_backend(hw_device_at(report->context, i)),
                     NULL);
    json_array_foreach (json_object_get(report->explain, "candidates"), index, file)
        list_backend(report, backends, text_of(file, "name"), file);
    return backends;
}

static json_t *status_json(const struct report *report)
{
    return json_pack("{s:i, s:O, s:O, s:o, s:O, s:O}", "schema", 1, "recommended",
                     json_object_get(report->explain, "recommended"), "error",
                     json_object_get(report->explain, "open_error"), "backends",
                     backends_json(report), "warnings",
                     json_object_get(report->explain, "warnings"), "directories",
                     json_object_get(report->explain, "directories"));
}

/* ---- The same for people ------------------------------------------------------------------- */

static bool is_one_of(const char *reason, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(reason, *list))
            return true;
    return false;
}

/* Nothing is wrong with these files: the settings, or an earlier file, took their place. */
static const char *const choices[] = { "disabled", "not-selected", "shadowed", "duplicate",
                                       NULL };
/* These may be so for good: the way to silence them is worth a word, the file's path is not. */
static const char *const absences[] = { "needs-library", "no-driver", "no-device", NULL };

static bool ends_sentence(const char *text)
{
    return *text && strchr(".!?", text[strlen(text) - 1]);
}

/* Remedies begin as phrases do; the name of a program stays as it is. */
static int first_letter(const char *remedy)
{
    bool program = !strncmp(remedy, "chmod ", 6) || !strncmp(remedy, "chown ", 6);
    return program ? remedy[0] : toupper((unsigned char)remedy[0]);
}

/* "    Error: message. Remedy, or HW_DISABLE=name to stop looking." */
static void print_reason(const json_t *file)
{
    const char *reason = text_of(file, "reason"), *message = text_of(file, "message");
    const char *remedy = text_of(file, "remedy"), *path = text_of(file, "file");
    bool choice = is_one_of(reason, choices), absence = is_one_of(reason, absences);

    say("    %s%s%s ", ink(choice ? YELLOW : RED),
        choice ? "Not used:" : "Error:", ink(PLAIN));
    if (!absence && !strstr(message, path))
        say("%s: ", path);
    say("%s%s", message, ends_sentence(message) ? "" : ".");
    if (*remedy) {
        say(" %c%s", first_letter(remedy), remedy + 1);
        if (absence && !ends_sentence(remedy) && !strstr(remedy, "HW_DISABLE"))
            say(", or HW_DISABLE=%s to stop looking", text_of(file, "name"));
        say("%s", ends_sentence(remedy) ? "" : ".");
    }
    say("\n");
}

static void print_device(const json_t *facts)
{
    const char *name = text_of(facts, "device");
    double total = number_of(facts, "memory_total"), left = number_of(facts, "memory_free");

    say("    [%.0f] %s", number_of(facts, "index"), *name ? name : text_of(facts, "name"));
    if (total > 0)
        say(": %s", size_text((uint64_t)total).text);
    if (left > 0)
        say(" (%s free)", size_text((uint64_t)left).text);
    if (!flag_of(facts, "selected"))
        say(" %s(not used: %s)%s", ink(YELLOW), text_of(facts, "why"), ink(PLAIN));
    say("\n");
}

static void print_title(const json_t *backend, const char *file)
{
    const char *name = text_of(backend, "name");
    bool available = flag_of(backend, "available");

    say("%s%s%s ", ink(available ? GREEN : RED), available ? "✓" : "✗", ink(PLAIN));
    if (*name)
        say("%s (%s)\n", text_of(backend, "title"), name);
    else
        say("%s\n", file);
}

static void print_backend(const json_t *backend)
{
    json_t *devices = json_object_get(backend, "devices"), *files, *each;
    const char *path;
    size_t index;

    files = json_object_get(backend, "files");
    path = text_of(json_array_get(files, 0), "file");
    print_title(backend, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    json_array_foreach (devices, index, each)
        print_device(each);
    json_array_foreach (files, index, each)
        if (*text_of(each, "reason"))
            print_reason(each);
}

static void print_directories(const json_t *directories)
{
    json_t *directory;
    size_t index;

    say("\nLooked in:\n");
    json_array_foreach ((json_t *)directories, index, directory)
        say("    %s (%s): %s\n", text_of(directory, "path"), text_of(directory, "source"),
            text_of(directory, "state"));
    say("A plugin is one file, hw_<name>.so: put into one of these, it adds its backend.\n");
}

static void print_status(const json_t *status)
{
    const char *recommended = text_of(status, "recommended"),
               *error = text_of(status, "error");
    json_t *each;
    size_t index;

    say("%s=== Available Backends ===%s\n", ink(BOLD), ink(PLAIN));
    json_array_foreach (json_object_get(status, "backends"), index, each)
        print_backend(each);
    say("\n%sRecommended backend:%s %s\n", ink(BOLD), ink(PLAIN),
        *recommended ? recommended : "none");
    if (*error)
        say("%sError:%s %s\n", ink(RED), ink(PLAIN), error);
    print_warnings(json_object_get(status, "warnings"), error);
    print_directories(json_object_get(status, "directories"));
}

int cmd_status(int argc, const char **argv)
{
    const struct poptOption table[] = { OPTIONS_COMMON, POPT_TABLEEND };
    struct arguments arguments;
    struct report report;
    int status;

    if (options_read(&arguments, &manual, table, argc, argv, 0, &status)) {
        status = EXIT_FAILED;
        if (report_open(&report, NULL)) {
            json_t *tree = status_json(&report);
            if (hw_device_default(report.context) && !report_error(&report))
                status = 0;
            if (out_json)
                out_tree(json_incref(tree));
            else {
                clean_tree(tree);
                print_status(tree);
            }
            json_decref(tree);
            report_close(&report);
        }
    }
    options_close(&arguments);
    return status;
}
