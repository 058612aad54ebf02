/* SPDX-License-Identifier: MIT */
/* devices.c - `hw devices`: every fact of each device, those not used too. */
#include "command.h"
#include "options.h"
#include "output.h"
#include "report.h"

#include <hw/hw.h>

#include <stdio.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw devices - every fact of each device\n\n"
        "In order of preference; the first is the recommended one. A fact that the device does\n"
        "not tell is left out, never guessed.",
    .arguments = "[OPTION...] [DEVICE]",
    .notes = "  hw devices                   all of them\n"
             "  hw devices cpu:0             one, by backend:index, PCI address or UUID\n"
             "  hw devices --kernels         with the kernels of each op, best first\n"
             "  hw devices --json | jq -r '.devices[].name'\n\n"
             "Exit status 1: there is no device.",
};

/* The rows of one op, best first; NULL if the device does not tell. */
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

/* Adds "kernels": {"matmul": [{"name", "eligible", "needs"}...]...}, or why there are none. */
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

static void print_device(const json_t *facts, bool first)
{
    static const struct row {
        const char *label, *key;
    } before
        [] = { { "name", "device" },       { "vendor", "vendor" }, { "kind", "kind" },
               { "architecture", "arch" }, { "driver", "driver" }, { "units", "units" } },
  after[] = { { "PCI address", "pci" }, { "UUID", "uuid" } };

    say("%s%s%s%s\n", ink(BOLD), text_of(facts, "name"), ink(PLAIN),
        first ? "  (recommended)" : "");
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

/* ---- All ----------------------------------------------------------------------------------- */

/* Those of the report, or the one called `only`; with kernels, which wakes the devices. */
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

static int list_devices(const struct report *report, const char *name, bool kernels)
{
    struct hw_device *first = report_device(report, name);
    if (!first)
        return EXIT_FAILED;

    json_t *list = devices_json(report, name ? hw_device_name(first) : NULL, kernels),
           *facts;
    size_t index;
    if (out_json) {
        out_tree(json_pack("{s:i, s:o}", "schema", 1, "devices", list));
        return 0;
    }
    clean_tree(list);
    json_array_foreach (list, index, facts) {
        say("%s", index ? "\n" : "");
        print_device(facts, !strcmp(text_of(facts, "name"),
                                    hw_device_name(hw_device_default(report->context))));
    }
    json_decref(list);
    return 0;
}

int cmd_devices(int argc, const char **argv)
{
    int kernels = 0, status;
    const struct poptOption table[] = { { "kernels", 'k', POPT_ARG_NONE, &kernels, 0,
                                          "with each op's kernels, best first", NULL },
                                        OPTIONS_COMMON,
                                        POPT_TABLEEND };
    struct arguments arguments;
    struct report report;

    if (options_read(&arguments, &manual, table, argc, argv, 1, &status)) {
        status = EXIT_FAILED;
        if (report_open(&report, NULL)) {
            status = list_devices(&report, arguments.words[0], kernels);
            report_close(&report);
        }
    }
    options_close(&arguments);
    return status;
}
