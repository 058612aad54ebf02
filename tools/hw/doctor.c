/* SPDX-License-Identifier: MIT */
/* doctor.c - `hw doctor`: what is wrong on this machine, and what to do about it. */
#include "checks.h"
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"

#include <ctype.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw doctor - what is wrong on this machine, and what to do about it\n\n"
        "Checks versions, settings, directories, plugins, hardware on PCI and its kernel drivers,\n"
        "the files of devices and the cache. Computes a small op on each device that can be\n"
        "used, and lists ops that the admission test withdrew.",
    .arguments = "[OPTION...]",
    .notes =
        "  hw doctor\n"
        "  hw doctor --json | jq '.checks[] | select(.state == \"problem\")'\n\n"
        "'hw report' writes all of this to a file. The exit status is 1 if there is a\n"
        "problem. Conditions that may be intended, such as a missing driver, do not count.",
};

static void print_check(const json_t *row, const char *last)
{
    const char *subject = text_of(row, "subject"), *state = text_of(row, "state");
    const char *remedy = text_of(row, "remedy");
    const bool good = !strcmp(state, "good"), problem = !strcmp(state, "problem");

    say_folded(20, "%-14s %s%s%s %s\n", strcmp(subject, last) ? subject : "",
               ink(good      ? GREEN
                   : problem ? RED
                             : YELLOW),
               good      ? "✓"
               : problem ? "✗"
                         : "-",
               ink(PLAIN), text_of(row, "text"));
    if (*remedy)
        say_folded(20, "%-16s %c%s\n", "", toupper((unsigned char)*remedy), remedy + 1);
}

static void print_checks(json_t *tree)
{
    const double problems = number_of(tree, "problems");
    const char *last = "";
    json_t *row;
    size_t index;

    clean_tree(tree);
    json_array_foreach (json_object_get(tree, "checks"), index, row) {
        print_check(row, last);
        last = text_of(row, "subject");
    }
    if (problems > 0)
        say("\n%s%.0f problem%s.%s\n", ink(RED), problems, problems == 1 ? "" : "s",
            ink(PLAIN));
    else
        say("\n%sNo problem.%s\n", ink(GREEN), ink(PLAIN));
}

/* The tree {"schema", "problems", "checks"}; the caller releases it. */
static json_t *doctor_json(const struct report *report)
{
    json_t *rows = report->checks ? json_incref(report->checks) : checks_of(report);
    return json_pack("{s:i, s:I, s:o}", "schema", 1, "problems",
                     (json_int_t)checks_problems(rows), "checks", rows);
}

int cmd_doctor(int argc, const char **argv)
{
    const struct poptOption table[] = { OPTIONS_COMMON, POPT_TABLEEND };
    struct arguments arguments;
    struct report report;
    int status;

    if (options_read(&arguments, &manual, table, argc, argv, 0, &status)) {
        status = EXIT_FAILED;
        if (report_open(&report, NULL)) {
            json_t *tree = doctor_json(&report);
            status = number_of(tree, "problems") > 0 ? EXIT_FAILED : 0;
            if (out_json)
                out_tree(json_incref(tree));
            else
                print_checks(tree);
            json_decref(tree);
            report_close(&report);
        }
    }
    options_close(&arguments);
    return status;
}
