/* SPDX-License-Identifier: MIT */
/* explain_op.c - see explain_op.h. The library decides; this shows its estimates. */
#include "explain_op.h"

#include "command/command.h"
#include "command/output.h"
#include "command/report.h"
#include "command/shapes.h"

#include <hw/report.h>

#include <verify.h>

#include <stdio.h>
#include <string.h>

/* "12.5 us", "3.10 ms", "2.00 s" */
struct time_text {
    char text[24];
};

static struct time_text time_text(double seconds)
{
    struct time_text t;
    if (seconds < 999.5e-6)
        snprintf(t.text, sizeof t.text, "%.*f us", seconds < 99.95e-6, seconds * 1e6);
    else if (seconds < 0.9995)
        snprintf(t.text, sizeof t.text, "%.*f ms", seconds < 99.95e-3 ? 2 : 0,
                 seconds * 1e3);
    else
        snprintf(t.text, sizeof t.text, "%.2f s", seconds);
    return t;
}

static void print_route(const char *test, const struct hw_route_info *info)
{
    say("%s on host memory\n", test);
    say_folded(4, "\nDecision: %s%s%s: %s\n", ink(BOLD),
               info->device ? hw_device_name(info->device) : "none", ink(PLAIN), info->why);
    say_folded(4, "Estimates: %s with %s moved to a device and back, %s on the CPU\n",
               time_text(info->own).text, size_text((uint64_t)info->moved).text,
               time_text(info->cpu).text);
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

static int ask(struct hw_device *device, const char *test,
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
            "{s:i, s:s, s:o, s:s, s:f, s:f, s:I}", "schema", 1, "call", test, "device",
            info.device ? json_string(hw_device_name(info.device)) : json_null(), "why",
            info.why, "own", info.own * 1e6, "cpu", info.cpu * 1e6, "moved",
            (json_int_t)info.moved));
    else
        print_route(test, &info);
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
            status = ask(device, test, call);
        report_close(&report);
    }
    verify_host_call_free(call);
    return status;
}
