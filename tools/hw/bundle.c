/* SPDX-License-Identifier: MIT */
/* bundle.c - `hw report`: one file with everything that a bug report needs, as JSON, or as a page
 * of HTML that contains the same JSON. */
#define _GNU_SOURCE
#include "checks.h"
#include "command/command.h"
#include "command/new_file.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/report.h>

#include <build_stamp.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const struct manual manual = {
    .about =
        "hw report - one file with everything that a bug report needs\n\n"
        "The file (default: hw-report.json) has the results of 'hw doctor', the report of\n"
        "hw_explain(), versions of the system, and the environment variables of the library and\n"
        "of the vendors' runtimes. It does not name the machine, and writes the home directory\n"
        "as ~. If its name ends in .html, it is a page to read in a browser. With either form,\n"
        "'hw --replay FILE status' (devices, explain, env, doctor) prints what it would print on\n"
        "that machine.",
    .arguments = "[OPTION...] [FILE]",
    .notes = "  hw report\n"
             "  hw report report.html\n"
             "  hw --replay report.html status\n\n"
             "The exit status is 1 if the file cannot be written.",
};

/* ---- facts that the library does not know ---- */

/* The value of "KEY=value", "KEY: value" in a file, without quotes; or "". */
static json_t *line_of(const char *path, const char *key)
{
    char line[512], value[512] = "";
    FILE *file = fopen(path, "re");
    while (file && !*value && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key)))
            sscanf(line + strlen(key), "%*[ \t:=\"]%511[^\"\n]", value);
    if (file)
        fclose(file);
    return json_text(value, strlen(value));
}

static json_t *system_json(void)
{
    struct utsname system = { .sysname = "" };
    char libc[64] = "";
    uname(&system);
    confstr(_CS_GNU_LIBC_VERSION, libc, sizeof libc);
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:I, s:b}", "kernel", system.sysname,
                     "release", system.release, "machine", system.machine, "system",
                     line_of("/etc/os-release", "PRETTY_NAME"), "c_library", libc,
                     "processor", line_of("/proc/cpuinfo", "model name"), "processors",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "container",
                     access("/.dockerenv", F_OK) == 0 ||
                         access("/run/.containerenv", F_OK) == 0);
}

/* Variables of the library and of the vendors' runtimes. */
static bool is_ours(const char *variable)
{
    static const char *const starts[] = { "HW_",   "CUDA_", "NVIDIA_",        "HIP_",
                                          "ROCR_", "OCL_",  "POCL_",          "HSA_",
                                          "MESA_", "OMP_",  "LD_LIBRARY_PATH" };
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (!strncmp(variable, starts[i], strlen(starts[i])))
            return true;
    return false;
}

static json_t *environment_json(void)
{
    json_t *variables = json_object();
    for (char **each = environ; *each; each++) {
        const char *equals = strchr(*each, '=');
        char name[128];
        if (!equals || equals - *each >= (int)sizeof name || !is_ours(*each))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - *each), *each);
        json_object_set_new(variables, name, json_text(equals + 1, strlen(equals + 1)));
    }
    return variables;
}

/* ---- privacy ---- */

/* A copy of the text with ~ for the home directory. */
static json_t *without_home(const char *text, const char *home)
{
    const size_t length = strlen(home);
    char *copy = strdup(text), *to = copy;
    if (!copy)
        return NULL;
    while (*text) {
        const unsigned char next = strncmp(text, home, length)
                                       ? 'x'
                                       : (unsigned char)text[length];
        const bool is = !isalnum(next) && !(next && strchr("_-.", next));
        *to++ = is ? '~' : *text;
        text += is ? length : 1;
    }
    json_t *string = json_text(copy, (size_t)(to - copy));
    free(copy);
    return string;
}

static json_t *cleaned(json_t *tree, const char *home)
{
    const char *key;
    json_t *each;
    size_t index;
    if (json_is_string(tree))
        return without_home(json_string_value(tree), home);
    json_t *copy = json_is_object(tree)  ? json_object()
                   : json_is_array(tree) ? json_array()
                                         : json_incref(tree);
    if (json_is_array(tree))
        json_array_foreach (tree, index, each)
            json_array_append_new(copy, cleaned(each, home));
    else if (json_is_object(tree))
        json_object_foreach (tree, key, each)
            json_object_set_new(copy, key, cleaned(each, home));
    return copy;
}

/* Replaces the directory, without slashes at its end, in all strings of the tree. */
static json_t *hide(json_t *tree, const char *home)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", home ? home : "");
    for (size_t n = strlen(path); n > 0 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    if (*path != '/')
        return tree;
    json_t *clean = cleaned(tree, path);
    json_decref(tree);
    return clean;
}

static json_t *bundle_json(const struct report *report)
{
    const char *home = getenv("HOME");
    const time_t now = time(NULL);
    char written[32] = "";
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(written, sizeof written, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *tree = json_pack("{s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:O}", "kind",
                             REPORT_KIND, "schema", 1, "written", written, "command",
                             HW_BUILD_STAMP, "system", system_json(), "environment",
                             environment_json(), "checks", checks_of(report), "explain",
                             report->explain);
    char *real = home ? realpath(home, NULL) : NULL;
    tree = hide(hide(tree, home), real);
    free(real);
    return tree;
}

/* ---- as a page ---- */

static void put_escaped(FILE *file, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default:
            fputc(*text, file);
        }
}

/* <tag class="name">text</tag> */
static void put_element(FILE *file, const char *tag, const char *name, const char *text)
{
    fprintf(file, "<%s class=\"%s\">", tag, name);
    put_escaped(file, text);
    fprintf(file, "</%s>", tag);
}

enum mark { GOOD, NOTE, PROBLEM };

static void put_mark(FILE *file, const char *tag, enum mark mark, const char *text)
{
    static const char *const names[] = { "good", "note", "problem" };
    static const char *const signs[] = { "✓ ", "– ", "✗ " };
    fprintf(file, "<%s><span class=\"%s\">%s", tag, names[mark], signs[mark]);
    put_escaped(file, text);
    fprintf(file, "</span></%s>", tag);
}

static enum mark mark_of(const json_t *check)
{
    const char *state = text_of(check, "state");
    return !strcmp(state, "problem") ? PROBLEM : !strcmp(state, "note") ? NOTE : GOOD;
}

/* The text of a check or a file, with the remedy below it. */
static void put_words(FILE *file, const char *text, const char *remedy)
{
    fputs("<td>", file);
    put_element(file, "div", "text", text);
    if (*remedy)
        put_element(file, "div", "remedy", remedy);
    fputs("</td>", file);
}

/* The checks whose mark is at least this. */
static void put_checks(FILE *file, const char *title, const json_t *rows, enum mark least)
{
    json_t *row;
    size_t index;
    fprintf(file, "<h2>%s</h2>\n<table>\n", title);
    json_array_foreach ((json_t *)rows, index, row) {
        if (mark_of(row) < least)
            continue;
        fputs("<tr>", file);
        put_mark(file, "td", mark_of(row), text_of(row, "subject"));
        put_words(file, text_of(row, "text"), text_of(row, "remedy"));
        fputs("</tr>\n", file);
    }
    fputs("</table>\n", file);
}

static void put_devices(FILE *file, const json_t *devices)
{
    json_t *device;
    size_t index;
    fputs("<h2>Devices</h2>\n<table>\n", file);
    json_array_foreach ((json_t *)devices, index, device) {
        const double memory = number_of(device, "memory_total");
        fputs("<tr>", file);
        put_mark(file, "td", flag_of(device, "selected") ? GOOD : NOTE,
                 text_of(device, "name"));
        put_words(file, text_of(device, "device"), text_of(device, "why"));
        put_element(file, "td", "text", memory > 0 ? size_text((uint64_t)memory).text : "");
        put_element(file, "td", "text", text_of(device, "driver"));
        put_element(file, "td", "text", text_of(device, "arch"));
        fputs("</tr>\n", file);
    }
    fputs("</table>\n", file);
}

/* The stages of a file up to the one where it stopped. */
static void put_stages(FILE *file, const json_t *stages, const json_t *candidate)
{
    const char *last = text_of(candidate, "stage"), *reason = text_of(candidate, "reason");
    json_t *stage;
    size_t index;
    fputs("<td>", file);
    json_array_foreach ((json_t *)stages, index, stage) {
        const char *name = text_of(stage, "name");
        const bool stopped = !strcmp(name, last) && *reason;
        put_mark(file, "div",
                 !stopped               ? GOOD
                 : may_be_meant(reason) ? NOTE
                                        : PROBLEM,
                 name);
        if (!strcmp(name, last))
            break;
    }
    fputs("</td>", file);
}

static void put_files(FILE *file, const json_t *stages, const json_t *candidates)
{
    json_t *candidate;
    size_t index;
    fputs("<h2>Plugin files</h2>\n<table>\n", file);
    json_array_foreach ((json_t *)candidates, index, candidate) {
        fputs("<tr>", file);
        put_words(file, text_of(candidate, "file"), "");
        put_stages(file, stages, candidate);
        put_words(file, text_of(candidate, "message"), text_of(candidate, "remedy"));
        fputs("</tr>\n", file);
    }
    fputs("</table>\n", file);
}

/* "✗ 2 problems", "Recommended backend: cpu (AMD EPYC)" */
static void put_verdict(FILE *file, const json_t *tree)
{
    const struct report report = { .explain = json_object_get(tree, "explain") };
    const json_t *device = report_recommended(&report);
    const double problems = checks_problems(json_object_get(tree, "checks"));
    char text[64] = "No problem";
    if (problems > 0)
        snprintf(text, sizeof text, "%.0f problem%s", problems, problems > 1 ? "s" : "");
    put_mark(file, "p", problems > 0 ? PROBLEM : GOOD, text);
    fputs("\n<p>Recommended backend: ", file);
    put_element(file, "b", "text", device ? text_of(device, "backend") : "none");
    fputs(" ", file);
    put_escaped(file, device ? text_of(device, "device") : "");
    fputs("</p>\n", file);
}

/* JSON inside a page: "</script>" must not end it. */
static void put_json(FILE *file, const json_t *tree)
{
    char *text = json_dumps(tree, JSON_INDENT(1));
    fputs("<script type=\"application/json\">", file);
    for (const char *each = text; each && *each; each++)
        if (*each == '<')
            fputs("\\u003c", file);
        else
            fputc(*each, file);
    fputs("</script>\n", file);
    free(text);
}

static const char page_head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    "<title>hw report</title>\n<style>\n"
    "body { font-family: sans-serif; margin: 1em auto; max-width: 70em; padding: 0 1em; }\n"
    "table { border-collapse: collapse; width: 100%; }\n"
    "td { padding: .3em .8em .3em 0; border-bottom: 1px solid #ddd; vertical-align: top; "
    "overflow-wrap: anywhere; }\n"
    ".good { color: #060; } .note { color: #850; } .problem { color: #b00; }\n"
    ".remedy { color: #555; }\n"
    "@media (max-width: 40em) { td { display: block; border: 0; padding: .1em 0; } "
    "tr { display: block; border-bottom: 1px solid #ddd; padding: .4em 0; } }\n"
    "</style></head><body>\n<h1>hw report</h1>\n";

static void put_page(FILE *file, const json_t *tree)
{
    const json_t *explain = json_object_get(tree, "explain");
    const json_t *system = json_object_get(tree, "system");
    const json_t *checks = json_object_get(tree, "checks");
    fputs(page_head, file);
    put_verdict(file, tree);
    fputs("<p>", file);
    put_escaped(file, text_of(tree, "written"));
    fputs(", hw ", file);
    put_escaped(file, text_of(tree, "command"));
    fputs(", ", file);
    put_escaped(file, text_of(system, "system"));
    fputs(", ", file);
    put_escaped(file, text_of(system, "processor"));
    fputs("</p>\n", file);
    if (checks_problems(checks) > 0)
        put_checks(file, "Problems", checks, PROBLEM);
    put_devices(file, json_object_get(explain, "devices"));
    put_files(file, json_object_get(explain, "stages"),
              json_object_get(explain, "candidates"));
    put_checks(file, "Checks", checks, GOOD);
    put_json(file, tree);
    fputs("</body></html>\n", file);
}

/* ---- the command ---- */

static bool write_bundle(const json_t *tree, const char *path, bool replace)
{
    const size_t length = strlen(path);
    const bool page = length > 5 && !strcmp(path + length - 5, ".html");
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    bool good = file != NULL;
    if (file) {
        if (page)
            put_page(file, tree);
        else {
            json_dumpf(tree, file, JSON_INDENT(2));
            fputc('\n', file);
        }
        good = !ferror(file);
        good = fclose(file) == 0 && good;
    }
    if (!good)
        complain("out of memory");
    good = good && new_file_write(path, 0600, replace, text, size);
    if (good && out_json)
        out_tree(json_pack("{s:i, s:o, s:I}", "schema", 1, "file", json_text(path, length),
                           "bytes", (json_int_t)size));
    else if (good)
        say("%s: %s. Read it before you publish it: it names files and settings.\n", path,
            size_text(size).text);
    free(text);
    return good;
}

int cmd_report(int argc, const char **argv)
{
    int force = 0, status;
    const struct poptOption table[] = { { "force", 'f', POPT_ARG_NONE, &force, 0,
                                          "replace FILE if it exists", NULL },
                                        OPTIONS_COMMON,
                                        POPT_TABLEEND };
    struct arguments arguments;
    struct report report;

    if (options_read(&arguments, &manual, table, argc, argv, 1, &status)) {
        status = EXIT_FAILED;
        if (report_open(&report, NULL)) {
            json_t *tree = bundle_json(&report);
            if (write_bundle(tree, arguments.count ? arguments.words[0] : "hw-report.json",
                             force))
                status = 0;
            json_decref(tree);
            report_close(&report);
        }
    }
    options_close(&arguments);
    return status;
}
