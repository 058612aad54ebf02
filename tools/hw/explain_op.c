/* SPDX-License-Identifier: MIT */
/* explain_op.c - see explain_op.h. The library decides; this shows its figures. */
#define _POSIX_C_SOURCE 200809L
#include "explain_op.h"

#include "command/command.h"
#include "command/cost.h"
#include "command/output.h"
#include "command/report.h"
#include "command/shapes.h"

#include <verify.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- figures ---- */

static const char *source_name(const struct hw_cost *cost)
{
    return cost->source == HW_COST_MEASURED    ? "measured"
           : cost->source == HW_COST_ESTIMATED ? "estimated"
                                               : "unknown";
}

struct date {
    char text[32];
};

static struct date date_of(int64_t seconds)
{
    const time_t when = (time_t)seconds;
    struct date date = { "" };
    struct tm utc;
    if (seconds && gmtime_r(&when, &utc))
        strftime(date.text, sizeof date.text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return date;
}

static json_t *cost_json(const struct hw_cost *cost)
{
    if (!cost->device)
        return json_null();
    return json_pack(
        "{s:s, s:s, s:o, s:f, s:f, s:f, s:f, s:f}", "device", hw_device_name(cost->device),
        "source", source_name(cost), "measured",
        cost->measured ? json_string(date_of(cost->measured).text) : json_null(), "upload",
        cost->upload * 1e6, "launch", cost->launch * 1e6, "compute", cost->compute * 1e6,
        "download", cost->download * 1e6, "total", cost_total(cost) * 1e6);
}

/* ---- text ---- */

static void print_cost(const struct hw_cost *cost)
{
    if (!cost->device)
        return;
    say("%-14s %10s %10s %10s %10s", hw_device_name(cost->device),
        time_text(cost->upload).text, time_text(cost->launch).text,
        time_text(cost->compute).text, time_text(cost->download).text);
    say("  %s%10s%s  %s%s%s\n", ink(BOLD), time_text(cost_total(cost)).text, ink(PLAIN),
        source_name(cost), cost->measured ? " " : "", date_of(cost->measured).text);
}

/* Why a device has no measured figures. */
static const char *why_estimated(const struct report *report, struct hw_device *device)
{
    const char *why = "";
    json_t *profile;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "profiles"), index, profile)
        if (device && !strcmp(text_of(profile, "device"), hw_device_name(device)))
            why = text_of(profile, "why");
    return why;
}

static void print_reason(const struct report *report, const struct hw_cost *cost)
{
    const char *why = why_estimated(report, cost->device);
    if (cost->device && cost->source == HW_COST_ESTIMATED)
        say_folded(4, "%s: defaults of the library, not measured here: %s\n",
                   hw_device_name(cost->device),
                   *why ? why : "'hw tune' has not measured this op with these types");
}

static void print_route(const struct report *report, const char *test,
                        const struct hw_route_info *info)
{
    say("%s on host memory\n\n", test);
    say("%s%-14s %10s %10s %10s %10s  %10s  %s%s\n", ink(BOLD), "DEVICE", "UPLOAD",
        "LAUNCH", "COMPUTE", "DOWNLOAD", "TOTAL", "FIGURES", ink(PLAIN));
    print_cost(&info->own);
    if (info->cpu.device != info->own.device)
        print_cost(&info->cpu);
    say_folded(4, "\nDecision: %s%s%s: %s\n", ink(BOLD),
               info->device ? hw_device_name(info->device) : "none", ink(PLAIN), info->why);
    print_reason(report, &info->own);
    if (info->cpu.device != info->own.device)
        print_reason(report, &info->cpu);
}

/* ---- the question ---- */

/* Finds the device without naming it to the library, which routes ops only of queues whose
 * device it chose itself. So if the name is that of the default device, returns the library's
 * own choice. */
static struct hw_device *find_device(const struct report *report, const char *name)
{
    if (!name || report->file)
        return report_device(report, name);
    for (uint32_t i = 0; i < hw_device_count(report->context); i++) {
        struct hw_device *device = hw_device_at(report->context, i);
        if (!strcmp(hw_device_name(device), name) ||
            !strcmp(hw_device_backend(device), name))
            return device == hw_device_at(report->context, 0) ? report_device(report, NULL)
                                                              : device;
    }
    return report_listed(report, name);
}

static int ask(const struct report *report, struct hw_device *device, const char *test,
               const struct verify_host_call *call)
{
    struct hw_route_info info = { .size = sizeof info };
    struct hw_queue *queue = NULL;
    enum hw_status status = hw_queue_open(device, NULL, &queue);
    if (!status)
        status = hw_queue_route(queue, call->op, call->args, hw_op_size(call->op), &info);
    hw_queue_close(queue);
    if (status) {
        complain("%s", hw_message());
        return EXIT_FAILED;
    }
    if (out_json)
        out_tree(json_pack(
            "{s:i, s:s, s:o, s:s, s:o, s:o}", "schema", 1, "call", test, "device",
            info.device ? json_string(hw_device_name(info.device)) : json_null(), "why",
            info.why, "own", cost_json(&info.own), "cpu", cost_json(&info.cpu)));
    else
        print_route(report, test, &info);
    return info.device ? 0 : EXIT_FAILED;
}

int explain_op(const struct explain_op *asked)
{
    char text[SHAPE_CASE], error[VERIFY_ERROR_TEXT];
    const char *test = strchr(asked->op, '(') ? asked->op : text;
    struct verify_host_call *call;
    struct hw_device *device;
    struct report report;
    int status = EXIT_FAILED;

    if (test == text && !shape_case(asked->op, asked->shape, asked->types, text))
        return EXIT_USAGE;
    if (test != text && (asked->shape || asked->types)) {
        complain("%s: a case already has a shape and types", test);
        return EXIT_USAGE;
    }
    if (verify_host_call(test, false, &call, error)) {
        complain("%s: %s", test, error);
        return EXIT_USAGE;
    }
    if (report_open_for(&report, asked->device, NULL)) {
        if (!report.context)
            complain("--op: cannot be answered from a report");
        else if ((device = find_device(&report, asked->device)))
            status = ask(&report, device, test, call);
        report_close(&report);
    }
    verify_host_call_free(call);
    return status;
}
