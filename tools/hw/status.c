/* SPDX-License-Identifier: MIT */
/* status.c - `hw status`: which hardware can be used; for the rest, why not and what to do.
 *
 * A backend is available if its plugin serves a device that the settings allow. The files are
 * shown below their backend; every file that was found is listed. */
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/hw.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_DEMOTIONS = 3 }; /* of a device */

static const struct manual manual = {
    .about =
        "hw status - which hardware can be used; for the rest, why not and what to do\n\n"
        "Looks at every plugin file, as a program does when it starts, and lists the devices of\n"
        "those that pass the checks.",
    .arguments = "[OPTION...]",
    .notes =
        "  hw status\n"
        "  HW_BACKENDS=cpu hw status              as a program with this setting sees it\n"
        "  HW_PLUGIN_PATH=$PWD/build hw status    with plugins of your own\n"
        "  hw status --json | jq .recommended\n\n"
        "'hw devices' prints all facts about a device, 'hw explain' each stage of a file, and\n"
        "'hw env' the settings. The exit status is 1 if no device can be used or a setting is\n"
        "invalid.",
};

/* ---- The result as a tree: {"name", "title", "available", "ops", "devices", "files"} each ---- */

/* {"<value of key>": [the objects that have it]...} */
static json_t *grouped(const json_t *list, const char *key)
{
    json_t *groups = json_object(), *each;
    size_t index;
    json_array_foreach ((json_t *)list, index, each) {
        const char *value = text_of(each, key);
        if (!json_object_get(groups, value))
            json_object_set_new(groups, value, json_array());
        json_array_append(json_object_get(groups, value), each);
    }
    return groups;
}

/* Returns the group, or an empty one; the caller releases it. */
static json_t *group(const json_t *groups, const char *value)
{
    json_t *found = json_object_get(groups, value);
    return found ? json_incref(found) : json_array();
}

struct groups {
    json_t *files, *devices; /* by backend */
};

static bool any_selected(const json_t *devices)
{
    json_t *device;
    size_t index;
    json_array_foreach ((json_t *)devices, index, device)
        if (flag_of(device, "selected"))
            return true;
    return false;
}

/* The file of several that works, or else the first one. */
static const json_t *best_file(const json_t *files)
{
    json_t *file;
    size_t index;
    json_array_foreach ((json_t *)files, index, file)
        if (!*text_of(file, "reason"))
            return file;
    return json_array_get(files, 0);
}

static json_t *backend_json(const char *name, json_t *files, json_t *devices)
{
    const json_t *file = best_file(files);
    const json_t *ops = json_object_get(file, "ops");
    return json_pack("{s:s, s:s, s:b, s:O?, s:o, s:o}", "name", name, "title",
                     text_of(file, "title"), "available", (int)any_selected(devices), "ops",
                     ops, "devices", devices, "files", files);
}

/* Adds the backend unless it is listed. */
static void add_backend(json_t *backends, json_t *listed, const struct groups *groups,
                        const char *name)
{
    if (json_object_get(listed, name))
        return;
    json_object_set_new(listed, name, json_true());
    json_array_append_new(backends, backend_json(name, group(groups->files, name),
                                                 group(groups->devices, name)));
}

/* Available backends in order of preference, then the others in the order of the search. A file
 * without a valid name is shown by itself. */
static json_t *backends_json(const struct report *report)
{
    json_t *candidates = json_object_get(report->explain, "candidates"), *file, *device;
    json_t *backends = json_array(), *listed = json_object();
    const struct groups groups = { grouped(candidates, "name"),
                                   grouped(json_object_get(report->explain, "devices"),
                                           "backend") };
    size_t index;

    json_array_foreach (json_object_get(report->explain, "devices"), index, device)
        if (flag_of(device, "selected"))
            add_backend(backends, listed, &groups, text_of(device, "backend"));
    json_array_foreach (candidates, index, file) {
        if (*text_of(file, "name"))
            add_backend(backends, listed, &groups, text_of(file, "name"));
        else
            json_array_append_new(backends,
                                  backend_json("", json_pack("[O]", file), json_array()));
    }
    json_decref(groups.files);
    json_decref(groups.devices);
    json_decref(listed);
    return backends;
}

static json_t *status_json(const struct report *report)
{
    const char *recommended = text_of(report_recommended(report), "backend");
    return json_pack("{s:i, s:s?, s:O, s:o, s:O?, s:O, s:O}", "schema", 1, "recommended",
                     *recommended && !report_error(report) ? recommended : NULL, "error",
                     json_object_get(report->explain, "open_error"), "backends",
                     backends_json(report), "demotions",
                     json_object_get(report->explain, "demotions"), "warnings",
                     json_object_get(report->explain, "warnings"), "directories",
                     json_object_get(report->explain, "directories"));
}

/* ---- The result as text --------------------------------------------------------------------- */

static bool is_one_of(const char *reason, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(reason, *list))
            return true;
    return false;
}

/* Reasons that do not lie in the file: the settings exclude it, or an earlier file is used. */
static const char *const choices[] = { "disabled", "not-selected", "shadowed", NULL };
/* Reasons that may never go away: the line says how to silence the file, and omits its path. */
static const char *const absences[] = { "no-hardware", "needs-library", "no-driver",
                                        "no-device", NULL };

/* Whether the file serves something that this machine need not have. If the manifest names hardware
 * and the system lists it, or if the plugin leaves out a device, there is something to mend. */
static bool is_absent(const json_t *file)
{
    const char *reason = text_of(file, "reason");
    const json_t *match = json_object_get(json_object_get(file, "manifest"), "match");
    return !strcmp(reason, "no-hardware") ||
           (is_one_of(reason, absences) && !json_array_size(match) &&
            !json_array_size(json_object_get(file, "left_out")));
}

static bool ends_sentence(const char *text)
{
    return *text && strchr(".!?", text[strlen(text) - 1]);
}

/* "Error: message. Remedy, or HW_DISABLE=name to stop looking." */
static void print_reason(const json_t *file)
{
    const char *reason = text_of(file, "reason"), *message = text_of(file, "message");
    const char *remedy = text_of(file, "remedy"), *path = text_of(file, "file");
    bool choice = is_one_of(reason, choices), absence = is_one_of(reason, absences);
    const bool problem = !choice && !is_absent(file);
    bool silence = absence && !ends_sentence(remedy) && !strstr(remedy, "HW_DISABLE");
    char last[5000] = "", where[5000] = "";

    if (!absence && !strstr(message, path))
        snprintf(where, sizeof where, "%s: ", path);
    if (*remedy)
        snprintf(last, sizeof last, " %c%s%s%s%s", toupper((unsigned char)*remedy),
                 remedy + 1, silence ? ", or HW_DISABLE=" : "",
                 silence ? text_of(file, "name") : "",
                 silence                 ? " to stop looking."
                 : ends_sentence(remedy) ? ""
                                         : ".");
    say_folded(8, "    %s%s%s %s%s%s%s\n", ink(problem ? RED : YELLOW),
               choice    ? "Not used:"
               : problem ? "Error:"
                         : "Not available:",
               ink(PLAIN), where, message, ends_sentence(message) ? "" : ".", last);
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

/* Prints devices that the plugin found but hides. If the file has an error, its message already
 * names the first one. */
static void print_left_out(const json_t *file)
{
    json_t *list = json_object_get(file, "left_out"), *each;
    const bool told = *text_of(file, "reason");
    size_t index;
    json_array_foreach (list, index, each)
        if (index || !told)
            say_folded(8, "    [-] %s %s(not used: %s)%s\n", text_of(each, "device"),
                       ink(YELLOW), text_of(each, "why"), ink(PLAIN));
}

/* Whether somebody has to mend something before the backend can be used: neither do the settings
 * exclude it, nor is it absent. */
static bool is_problem(const json_t *backend)
{
    json_t *file;
    size_t index;
    json_array_foreach (json_object_get(backend, "files"), index, file)
        if (*text_of(file, "reason") && !is_one_of(text_of(file, "reason"), choices) &&
            !is_absent(file))
            return true;
    return false;
}

/* The only file of the backend, if the system lists no hardware for it; or NULL. */
static const json_t *without_hardware(const json_t *backend)
{
    const json_t *files = json_object_get(backend, "files");
    const json_t *file = json_array_get(files, 0);
    return json_array_size(files) == 1 && !strcmp(text_of(file, "reason"), "no-hardware")
               ? file
               : NULL;
}

/* A plugin may lack ops, which then run on other devices. */
static void print_ops(const json_t *backend)
{
    const json_t *ops = json_object_get(backend, "ops");
    if (json_array_size(ops) < HW_OP_COUNT && flag_of(backend, "available"))
        say(" (%zu of %d ops)", json_array_size(ops), HW_OP_COUNT);
}

static void print_title(const json_t *backend, const char *file)
{
    const char *name = text_of(backend, "name");
    if (flag_of(backend, "available"))
        say("%s✓%s ", ink(GREEN), ink(PLAIN));
    else if (is_problem(backend))
        say("%s✗%s ", ink(RED), ink(PLAIN));
    else
        say("%s-%s ", ink(YELLOW), ink(PLAIN));
    if (*name)
        say("%s (%s)", text_of(backend, "title"), name);
    else
        say("%s", file);
    print_ops(backend);
    say("\n");
}

/* The process of a plugin that HW_WORKER names. */
static void print_worker(const json_t *worker)
{
    const char *state = text_of(worker, "state");
    if (!*state)
        return;
    say("    In a process of its own (HW_WORKER): %s", state);
    if (number_of(worker, "process") > 0)
        say(", process %.0f", number_of(worker, "process"));
    say("\n");
}

/* "- CUDA (cuda): no NVIDIA hardware here" */
static void print_no_hardware(const json_t *backend, const json_t *file)
{
    const char *vendor = text_of(json_object_get(file, "manifest"), "vendor");
    say("%s-%s %s (%s): no %s%shardware here\n", ink(YELLOW), ink(PLAIN),
        text_of(backend, "title"), text_of(file, "name"), vendor, *vendor ? " " : "");
}

static void print_backend(const json_t *backend, const json_t *demotions)
{
    json_t *files = json_object_get(backend, "files"), *each;
    const char *path = text_of(json_array_get(files, 0), "file");
    size_t index;

    if (without_hardware(backend)) {
        print_no_hardware(backend, without_hardware(backend));
        return;
    }
    print_title(backend, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    json_array_foreach (json_object_get(backend, "devices"), index, each) {
        print_device(each);
        print_demotions(demotions, text_of(each, "name"), SHOWN_DEMOTIONS);
    }
    json_array_foreach (files, index, each) {
        if (*text_of(each, "reason"))
            print_reason(each);
        else
            print_worker(json_object_get(each, "worker"));
        print_left_out(each);
    }
}

static void print_directories(const json_t *directories)
{
    json_t *directory;
    size_t index;

    if (json_array_size(directories))
        say("\nLooked in:\n");
    json_array_foreach ((json_t *)directories, index, directory)
        say_folded(8, "    %s (%s): %s\n", text_of(directory, "path"),
                   text_of(directory, "source"), text_of(directory, "state"));
    if (json_array_size(directories))
        say_folded(0, "To add a backend, put its plugin into one of these directories, as "
                      "hw_<name>.so.\n");
}

/* The number of ops of a backend, or HW_OP_COUNT if that is unknown. */
static size_t ops_of(const json_t *backends, const char *name)
{
    json_t *backend;
    size_t index;
    json_array_foreach ((json_t *)backends, index, backend)
        if (!strcmp(text_of(backend, "name"), name) && json_object_get(backend, "ops"))
            return json_array_size(json_object_get(backend, "ops"));
    return HW_OP_COUNT;
}

/* `first`: the backend that programs use unless they choose. */
static void print_recommended(const json_t *status, const char *first)
{
    const char *recommended = text_of(status, "recommended");
    say("\n%sRecommended backend:%s %s\n", ink(BOLD), ink(PLAIN),
        *recommended                ? recommended
        : *text_of(status, "error") ? "none: see the error above"
                                    : "none");
    if (*recommended && strcmp(recommended, first))
        say_folded(4,
                   "    Programs use %s first, although it has only %zu of %d ops. "
                   "HW_BACKENDS=%s,%s changes the order.\n",
                   first, ops_of(json_object_get(status, "backends"), first), HW_OP_COUNT,
                   recommended, first);
}

static void print_status(const json_t *status, const char *first)
{
    const char *error = text_of(status, "error");
    json_t *each;
    size_t index;

    if (*error)
        say_folded(4, "%sError:%s %s\n\n", ink(RED), ink(PLAIN), error);
    say("%s=== Available Backends ===%s\n", ink(BOLD), ink(PLAIN));
    json_array_foreach (json_object_get(status, "backends"), index, each)
        print_backend(each, json_object_get(status, "demotions"));
    print_recommended(status, first);
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
            if (report_recommended(&report) && !report_error(&report))
                status = 0;
            if (out_json)
                out_tree(json_incref(tree));
            else {
                clean_tree(tree);
                print_status(tree, text_of(report.explain, "recommended"));
            }
            json_decref(tree);
            report_close(&report);
        }
    }
    options_close(&arguments);
    return status;
}
