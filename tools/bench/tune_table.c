/* SPDX-License-Identifier: MIT */
/* tune_table.c - up to which size the CPU is faster than a device, as the library predicts. */
#include "command/command.h"
#include "command/cost.h"
#include "command/output.h"
#include "command/shapes.h"
#include "tune.h"

#include <verify.h>

#include <stdio.h>
#include <string.h>

/* The library's prediction for one shape. */
struct answer {
    bool measured, cpu_wins;
    double own, cpu; /* seconds */
};

static bool ask(struct hw_queue *queue, const struct tune_row *row, int index,
                struct answer *answer)
{
    char test[SHAPE_CASE], error[VERIFY_ERROR_TEXT];
    struct hw_route_info info = { .size = sizeof info };
    struct verify_host_call *call;
    if (!shape_case(row->op, row->shape[index], row->types, test) ||
        verify_host_call(test, false, &call, error))
        return false;
    const bool good = !hw_queue_route(queue, call->op, call->args, hw_op_size(call->op),
                                      &info);
    verify_host_call_free(call);
    answer->own = cost_total(&info.own);
    answer->cpu = cost_total(&info.cpu);
    answer->measured = info.own.source == HW_COST_MEASURED &&
                       info.cpu.source == HW_COST_MEASURED;
    answer->cpu_wins = answer->cpu * 1.1 <=
                       answer->own; /* as core/run/cost_route.c has it */
    return good;
}

/* The sizes of a row, with the last one at which the CPU wins and the first one at which the device
 * does. NULL if nothing was measured. */
static json_t *row_json(struct hw_queue *queue, const struct tune_row *row)
{
    json_t *sizes = json_array();
    int last_cpu = -1;
    for (int i = 0; i < row->count; i++) {
        struct answer answer;
        if (!ask(queue, row, i, &answer) || !answer.measured)
            continue;
        last_cpu = answer.cpu_wins ? i : last_cpu;
        json_array_append_new(sizes,
                              json_pack("{s:s, s:f, s:f, s:b}", "shape", row->shape[i],
                                        "device", answer.own * 1e6, "cpu", answer.cpu * 1e6,
                                        "routed", (int)answer.cpu_wins));
    }
    if (json_array_size(sizes) == 0) {
        json_decref(sizes);
        return NULL;
    }
    const bool never = last_cpu == row->count - 1;
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o}", "op", row->op, "type", row->class, "form",
        row->form, "cpu_up_to",
        last_cpu < 0 ? json_null() : json_string(row->shape[last_cpu]), "device_from",
        never ? json_null() : json_string(row->shape[last_cpu + 1]), "sizes", sizes);
}

static void print_row(const json_t *row)
{
    const char *cpu = text_of(row, "cpu_up_to"), *device = text_of(row, "device_from");
    const json_t *sizes = json_object_get(row, "sizes");
    const json_t *last = json_array_get(sizes, json_array_size(sizes) - 1);
    say("%-12s %-7s %-5s %-18s %-18s", text_of(row, "op"), text_of(row, "type"),
        text_of(row, "form"), *cpu ? cpu : "-", *device ? device : "-");
    say(" %10s %10s  %s\n", time_text(number_of(last, "cpu") * 1e-6).text,
        time_text(number_of(last, "device") * 1e-6).text, text_of(last, "shape"));
}

static json_t *device_json(struct hw_device *device, bool quick)
{
    struct hw_queue *queue = NULL;
    struct tune_row row;
    json_t *rows = json_array();
    if (hw_queue_open(device, NULL, &queue)) {
        complain("%s", hw_message());
        return json_pack("{s:s, s:o}", "device", hw_device_name(device), "rows", rows);
    }
    for (int i = 0; tune_plan(i, quick, &row); i++) {
        json_t *made = row_json(queue, &row);
        if (made)
            json_array_append_new(rows, made);
    }
    hw_queue_close(queue);
    return json_pack("{s:s, s:o}", "device", hw_device_name(device), "rows", rows);
}

static void print_device(const json_t *found)
{
    const json_t *rows = json_object_get(found, "rows");
    json_t *row;
    size_t index;
    if (json_array_size(rows) == 0) {
        say("%s: has no figures for these settings; run hw tune\n",
            text_of(found, "device"));
        return;
    }
    say("%s and the CPU, operands in host memory: predicted from the measured figures\n",
        text_of(found, "device"));
    say("%s%-12s %-7s %-5s %-18s %-18s %10s %10s  %s%s\n", ink(BOLD), "OP", "TYPE", "FORM",
        "CPU UP TO", "DEVICE FROM", "CPU", "DEVICE", "AT THE LARGEST", ink(PLAIN));
    json_array_foreach ((json_t *)rows, index, row)
        print_row(row);
}

/* Says which profiles are ignored, and why. */
static void complain_of(const struct report *report)
{
    json_t *profile;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "profiles"), index, profile)
        if (!strcmp(text_of(profile, "state"), "ignored"))
            complain("%s: its profile %s is ignored: %s", text_of(profile, "device"),
                     text_of(profile, "profile"), text_of(profile, "why"));
}

static bool is_shown(struct hw_device *device, const char *name)
{
    struct hw_device_info info = { .size = sizeof info };
    if (name)
        return !strcmp(name, hw_device_name(device)) ||
               !strcmp(name, hw_device_backend(device));
    return !hw_device_info(device, &info) && !(info.features & HW_FEATURE_HOST_TENSORS);
}

int tune_show(const char *name, bool quick)
{
    struct report report;
    json_t *devices = json_array(), *found;
    size_t index, rows = 0;
    if (!report_open(&report, NULL)) {
        json_decref(devices);
        return EXIT_FAILED;
    }
    for (uint32_t i = 0; i < hw_device_count(report.context); i++) {
        struct hw_device *device = hw_device_at(report.context, i);
        if (is_shown(device, name))
            json_array_append_new(devices, device_json(device, quick));
    }
    complain_of(&report);
    json_array_foreach (devices, index, found)
        rows += json_array_size(json_object_get(found, "rows"));
    if (out_json) {
        out_tree(json_pack("{s:i, s:o}", "schema", 1, "devices", devices));
    } else {
        json_array_foreach (devices, index, found)
            print_device(found);
        if (json_array_size(devices) == 0)
            say("No device has memory of its own, so there is nothing to decide.\n");
        json_decref(devices);
    }
    report_close(&report);
    return rows ? 0 : EXIT_FAILED;
}
