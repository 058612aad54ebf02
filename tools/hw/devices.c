/* SPDX-License-Identifier: MIT */
/* devices.c - `hw devices`: all facts about each device, including those that are not used. */
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <stdio.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw devices - all facts about each device\n\n"
        "In order of preference. A fact that the device does not report is left out, never\n"
        "guessed.",
    .arguments = "[OPTION...] [DEVICE|FILE.so]",
    .notes = "  hw devices                   all of them\n"
             "  hw devices -l                one line each\n"
             "  hw devices cpu:0             one, by backend:index, PCI address or UUID\n"
             "  hw devices ./hw_mine.so      those of a plugin file, installed or not\n"
             "  hw devices --kernels         with the kernels of each op, best first\n"
             "  hw devices --json | jq -r '.devices[].name'\n\n"
             "The exit status is 1 if there is no device.",
};

/* The rows of one op, best first; NULL if the device does not list them. */
static json_t *rows_json(struct hw_device *device, uint32_t op)
{
    struct hw_kernel_info row = { .size = sizeof row };
    json_t *rows = json_array();
    enum hw_status status;

    for (uint32_t i = 0; !(status = hw_device_kernel(device, op, i, &row)); i++)
        json_array_append_new(rows,
                              json_pack("{s:s, s:b, s:s}", "name", row.name, "eligible",
                                        (int)row.eligible, "needs", row.needs));
    if (status == HW_END)
        return rows;
    json_decref(rows);
    return NULL;
}

/* Adds "kernels": {"matmul": [{"name", "eligible", "needs"}...]...}, or "kernels_error". */
static void add_kernels(json_t *facts, struct hw_device *device)
{
    json_t *ops = json_object();
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        json_t *rows = rows_json(device, op);
        if (!rows) {
            json_object_set_new(facts, "kernels_error", json_string(hw_message()));
            break;
        }
        json_object_set_new(ops, hw_op_name(op), rows);
    }
    json_object_set_new(facts, "kernels", ops);
}

static void print_list(const char *label, const json_t *list)
{
    size_t index;
    json_t *word;

    say("  %-14s", label);
    json_array_foreach ((json_t *)list, index, word)
        say("%s%s", index ? ", " : "", json_string_value(word));
    say("%s\n", json_array_size(list) ? "" : "none");
}

static void print_fact(const char *label, const json_t *fact)
{
    if (json_string_length(fact))
        say("  %-14s%s\n", label, json_string_value(fact));
    else if (json_integer_value(fact))
        say("  %-14s%" JSON_INTEGER_FORMAT "\n", label, json_integer_value(fact));
}

static void print_memory(const json_t *facts)
{
    double total = number_of(facts, "memory_total"), left = number_of(facts, "memory_free");
    if (total > 0)
        say("  %-14s%s", "memory", size_text((uint64_t)total).text);
    if (total > 0 && left > 0)
        say(" (%s free)", size_text((uint64_t)left).text);
    say("%s", total > 0 ? "\n" : "");
    if (number_of(facts, "buffer_max") > 0)
        say("  %-14sat most %s\n", "buffers",
            size_text((uint64_t)number_of(facts, "buffer_max")).text);
}

static void print_kernels(json_t *ops)
{
    const char *op;
    json_t *rows, *row;
    size_t index;

    json_object_foreach (ops, op, rows)
        json_array_foreach (rows, index, row)
            say("  %-14s%s%s%s%s\n", index ? "" : op, text_of(row, "name"),
                flag_of(row, "eligible") ? "" : " (not for this device)",
                *text_of(row, "needs") ? ": " : "", text_of(row, "needs"));
}

static void print_device(const json_t *facts, bool recommended)
{
    static const struct row {
        const char *label, *key;
    } before
        [] = { { "name", "device" },       { "vendor", "vendor" }, { "kind", "kind" },
               { "architecture", "arch" }, { "driver", "driver" }, { "units", "units" } },
  after[] = { { "PCI address", "pci" }, { "UUID", "uuid" } };

    say("%s%s%s%s\n", ink(BOLD), text_of(facts, "name"), ink(PLAIN),
        recommended ? "  (recommended)" : "");
    if (!flag_of(facts, "selected"))
        say("  %snot used%s      %s\n", ink(YELLOW), ink(PLAIN), text_of(facts, "why"));
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        print_fact(before[i].label, json_object_get(facts, before[i].key));
    print_memory(facts);
    print_list("features", json_object_get(facts, "features"));
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
        print_fact(after[i].label, json_object_get(facts, after[i].key));
    print_kernels(json_object_get(facts, "kernels"));
    print_fact("kernels", json_object_get(facts, "kernels_error"));
}

/* "cpu:0    cpu       23.54 GiB  AMD EPYC" */
static void print_line(const json_t *facts)
{
    const double total = number_of(facts, "memory_total");
    const char *name = text_of(facts, "device");

    say("%-12s %-10s %12s  %s%s\n", text_of(facts, "name"), text_of(facts, "kind"),
        total > 0 ? size_text((uint64_t)total).text : "-", *name ? name : "-",
        flag_of(facts, "selected") ? "" : "  (not used)");
}

/* ---- The command --------------------------------------------------------------------------- */

struct wishes {
    int kernels, lines;
};

/* The devices of the report, or the one called `only`. Asking for kernels opens them. */
static json_t *devices_json(const struct report *report, const char *only, bool kernels)
{
    json_t *list = json_array(), *facts;
    size_t index;

    json_array_foreach (json_object_get(report->explain, "devices"), index, facts) {
        struct hw_device *device = NULL;
        if (only && strcmp(only, text_of(facts, "name")))
            continue;
        if (kernels && flag_of(facts, "selected") &&
            !hw_device_find(report->context, text_of(facts, "name"), &device))
            add_kernels(facts, device);
        json_array_append(list, facts);
    }
    return list;
}

static void print_devices(const struct report *report, json_t *list, bool lines)
{
    const json_t *recommended = report_recommended(report);
    json_t *facts;
    size_t index;

    clean_tree(list);
    json_array_foreach (list, index, facts) {
        if (lines) {
            print_line(facts);
            continue;
        }
        say("%s", index ? "\n" : "");
        print_device(facts, facts == recommended);
    }
}

/* A replayed report has no devices to open, so this compares names. */
static bool has_device(const struct report *report, const char *name)
{
    json_t *facts;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "devices"), index, facts)
        if (!name || !strcmp(text_of(facts, "name"), name))
            return true;
    complain("%s", name                   ? "there is no such device in the report"
                   : report_error(report) ? report_error(report)
                                          : "there is no device in the report");
    return false;
}

static int list_devices(const struct report *report, const char *name,
                        const struct wishes *wishes)
{
    struct hw_device *first = report->context ? report_listed(report, name) : NULL;
    if (report->context ? !first : !has_device(report, name))
        return EXIT_FAILED;
    if (!report->context && wishes->kernels) {
        complain("--kernels: a report has no list of kernels");
        return EXIT_USAGE;
    }

    const char *only = !name || report->file ? NULL : first ? hw_device_name(first) : name;
    json_t *list = devices_json(report, only, wishes->kernels);
    if (out_json) {
        out_tree(json_pack("{s:i, s:o}", "schema", 1, "devices", list));
        return 0;
    }
    if (out_csv)
        out_csv_rows(list);
    else
        print_devices(report, list, wishes->lines);
    json_decref(list);
    return 0;
}

int cmd_devices(int argc, const char **argv)
{
    struct wishes wishes = { 0 };
    int status;
    const struct poptOption table[] = { { "list", 'l', POPT_ARG_NONE, &wishes.lines, 0,
                                          "one line for each device", NULL },
                                        { "kernels", 'k', POPT_ARG_NONE, &wishes.kernels, 0,
                                          "add the kernels of each op, best first", NULL },
                                        OPTION_CSV,
                                        OPTIONS_COMMON,
                                        POPT_TABLEEND };
    struct arguments arguments;
    struct report report;

    if (options_read(&arguments, &manual, table, argc, argv, 1, &status)) {
        status = EXIT_FAILED;
        if (report_open_for(&report, arguments.words[0], NULL)) {
            status = list_devices(&report, arguments.words[0], &wishes);
            report_close(&report);
        }
    }
    options_close(&arguments);
    return status;
}
