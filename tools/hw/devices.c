/* SPDX-License-Identifier: MIT */
/* devices.c - `hw devices`: every fact of each device that can be used. */
#include "command.h"
#include "options.h"
#include "output.h"
#include "report.h"

#include <hw/hw.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct manual manual = {
    .about = "hw devices - every fact of each device\n\n"
             "In order of preference; the first is the recommended one. A fact that the device does\n"
             "not tell is left out, never guessed.",
    .arguments = "[OPTION...] [DEVICE]",
    .notes = "  hw devices                   all of them\n"
             "  hw devices cpu:0             one, by backend:index, PCI address or UUID\n"
             "  hw devices --kernels         with the kernels of each op, best first\n"
             "  hw devices --json | jq -r '.devices[].name'\n\n"
             "Exit status 1: there is no device.",
};

/* ---- Facts in words ------------------------------------------------------------------------ */

static const char *kind_name(int32_t kind)
{
    static const char *const names[] = {
        [HW_DEVICE_OTHER] = "other",           [HW_DEVICE_DISCRETE] = "discrete",
        [HW_DEVICE_INTEGRATED] = "integrated", [HW_DEVICE_CPU] = "cpu",
        [HW_DEVICE_SOFTWARE] = "software",
    };
    bool known = kind >= 0 && kind < (int32_t)(sizeof names / sizeof names[0]);
    return names[known ? kind : HW_DEVICE_OTHER];
}

static const struct feature {
    uint64_t bit;
    const char *name;
} features[] = {
    { HW_FEATURE_UNIFIED_MEMORY, "unified-memory" }, { HW_FEATURE_HOST_TENSORS, "host-tensors" },
    { HW_FEATURE_F16, "f16" },                       { HW_FEATURE_BF16, "bf16" },
    { HW_FEATURE_INT8_DOT, "int8-dot" },             { HW_FEATURE_MATRIX, "matrix" },
};
enum { FEATURES = sizeof features / sizeof features[0] };

static json_t *features_json(uint64_t bits)
{
    json_t *list = json_array();
    for (int i = 0; i < FEATURES; i++)
        if (bits & features[i].bit)
            json_array_append_new(list, json_string(features[i].name));
    return list;
}

struct address {
    char text[48];
};

/* "0000:01:00.0"; "" if it is no PCI device. */
static struct address pci_address(const struct hw_device_info *info)
{
    struct address address = { "" };
    if (info->pci_domain >= 0)
        snprintf(address.text, sizeof address.text, "%04x:%02x:%02x.%x", (unsigned)info->pci_domain,
                 (unsigned)info->pci_bus, (unsigned)info->pci_device,
                 (unsigned)info->pci_function);
    return address;
}

/* "b4b5...-..."; "" if it has none. */
static struct address uuid(const struct hw_device_info *info)
{
    struct address address = { "" };
    size_t used = 0;
    for (int i = 0; i < 16 && info->has_uuid; i++)
        used += (size_t)snprintf(address.text + used, sizeof address.text - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info->uuid[i]);
    return address;
}

/* A fact that is not known is null. */
static json_t *known(const char *text)
{
    json_t *string = *text ? json_string(text) : NULL;
    return string ? string : json_null();
}

static json_t *known_number(uint64_t number)
{
    return number ? json_integer((json_int_t)number) : json_null();
}

/* ---- One device ---------------------------------------------------------------------------- */

/* {"matmul": [{"name", "eligible", "needs"}...]...}: the rows of each op, best first. */
static json_t *kernels_json(struct hw_device *device)
{
    json_t *ops = json_object();
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        struct hw_kernel_info row = { .size = sizeof row };
        json_t *rows = json_array();
        for (uint32_t i = 0; hw_device_kernel(device, op, i, &row) == HW_OK; i++)
            json_array_append_new(rows, json_pack("{s:s, s:b, s:s}", "name", row.name, "eligible",
                                                  (int)row.eligible, "needs", row.needs));
        json_object_set_new(ops, hw_op_name(op), rows);
    }
    return ops;
}

/* The facts as they are now; NULL, and said, if the device does not tell them. */
static json_t *device_json(struct hw_device *device, bool kernels)
{
    struct hw_device_info info = { .size = sizeof info };

    if (hw_device_info(device, &info)) {
        complain("devices: %s: %s", hw_device_name(device), hw_message());
        return NULL;
    }
    json_t *facts = json_pack(
        "{s:s, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", /* in print order */
        "id", hw_device_name(device), "backend", hw_device_backend(device), "name",
        known(info.name), "vendor", known(info.vendor), "kind", kind_name(info.kind), "arch",
        known(info.arch), "driver", known(info.driver), "units", known_number(info.units),
        "memory_total", known_number(info.memory_total), "memory_free",
        known_number(info.memory_free), "features", features_json(info.features), "pci",
        known(pci_address(&info).text), "uuid", known(uuid(&info).text));
    if (facts && kernels)
        json_object_set_new(facts, "kernels", kernels_json(device));
    if (!facts)
        complain("devices: %s: its facts are no text", hw_device_name(device));
    return facts;
}

static void print_list(const char *label, const json_t *list)
{
    size_t index;
    json_t *word;

    printf("  %-14s", label);
    json_array_foreach((json_t *)list, index, word)
        printf("%s%s", index ? ", " : "", json_string_value(word));
    printf("%s\n", json_array_size(list) ? "" : "none");
}

static void print_fact(const char *label, const json_t *fact)
{
    if (json_is_string(fact))
        printf("  %-14s%s\n", label, json_string_value(fact));
    else if (json_is_integer(fact))
        printf("  %-14s%" JSON_INTEGER_FORMAT "\n", label, json_integer_value(fact));
}

static void print_memory(const json_t *facts)
{
    const json_t *total = json_object_get(facts, "memory_total");
    const json_t *left = json_object_get(facts, "memory_free");
    if (!json_is_integer(total))
        return;
    printf("  %-14s%s", "memory", gigabytes((uint64_t)json_integer_value(total)).text);
    if (json_is_integer(left))
        printf(" (%s free)", gigabytes((uint64_t)json_integer_value(left)).text);
    printf("\n");
}

static void print_kernels(json_t *ops)
{
    const char *op;
    json_t *rows, *row;
    size_t index;

    json_object_foreach(ops, op, rows)
        json_array_foreach(rows, index, row)
            printf("  %-14s%s%s%s%s%s\n", index ? "" : op, text_of(row, "name"),
                   flag_of(row, "eligible") ? "" : " (not for this device)",
                   *text_of(row, "needs") ? ": " : "", text_of(row, "needs"), "");
}

static void print_device(json_t *facts, bool first)
{
    static const struct row {
        const char *label, *key;
    } before[] = { { "name", "name" }, { "vendor", "vendor" }, { "kind", "kind" },
                   { "architecture", "arch" }, { "driver", "driver" }, { "units", "units" } },
      after[] = { { "PCI address", "pci" }, { "UUID", "uuid" } };

    clean_tree(facts);
    printf("%s%s%s%s\n", ink(BOLD), text_of(facts, "id"), ink(PLAIN), first ? "  (recommended)" : "");
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        print_fact(before[i].label, json_object_get(facts, before[i].key));
    print_memory(facts);
    print_list("features", json_object_get(facts, "features"));
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
        print_fact(after[i].label, json_object_get(facts, after[i].key));
    if (json_object_get(facts, "kernels"))
        print_kernels(json_object_get(facts, "kernels"));
}

/* ---- All ----------------------------------------------------------------------------------- */

static json_t *devices_json(const struct report *report, struct hw_device *only, bool kernels)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < hw_device_count(report->context); i++) {
        struct hw_device *device = hw_device_at(report->context, i);
        json_t *facts = only && device != only ? NULL : device_json(device, kernels);
        if (facts)
            json_array_append_new(list, facts);
        else if (!only) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int list_devices(const struct report *report, const char *name, bool kernels)
{
    struct hw_device *first = report_device(report, name);
    if (!first)
        return EXIT_FAILED;

    json_t *list = devices_json(report, name ? first : NULL, kernels), *facts;
    size_t index;
    if (!list || !json_array_size(list)) {
        json_decref(list);
        return EXIT_FAILED;
    }
    if (out_json) {
        out_tree(json_pack("{s:i, s:o}", "schema", 1, "devices", list));
        return 0;
    }
    json_array_foreach(list, index, facts) {
        printf("%s", index ? "\n" : "");
        print_device(facts, index == 0 && !name);
    }
    json_decref(list);
    return 0;
}

int cmd_devices(int argc, const char **argv)
{
    int kernels = 0, status;
    const struct poptOption table[] = {
        { "kernels", 'k', POPT_ARG_NONE, &kernels, 0, "with each op's kernels, best first", NULL },
        OPTIONS_COMMON,
        POPT_TABLEEND
    };
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
