/* SPDX-License-Identifier: MIT */
/* report.c - asks the library what it knows, and finds things in the answer. */
#include "report.h"

#include "output.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_line(void *user, int32_t level, const char *text)
{
    (void)user, (void)level, (void)text;
}

bool report_read(struct report *report)
{
    size_t size = hw_explain(report->context, NULL, 0) + 1;
    char *text = malloc(size);
    json_error_t error;

    report->explain = NULL;
    if (!text) {
        complain("out of memory");
        return false;
    }
    hw_explain(report->context, text, size);
    report->explain = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!report->explain)
        complain("the library's report is no JSON: line %d, column %d: %s", error.line,
                 error.column, error.text);
    free(text);
    return report->explain;
}

bool report_open(struct report *report, const struct hw_options *options)
{
    struct hw_options own = { .size = sizeof own };
    const char *log = getenv("HW_LOG");

    if (options)
        own = *options;
    own.flags |= HW_OPEN_ANYWAY;
    if (!log || !*log)
        own.log_fn = drop_line;
    own.start_fn = watch_start;
    own.start_user = (void *)own.plugin_path_only; /* the user named the file */
    *report = (struct report){ 0 };
    if (hw_open(&own, &report->context)) {
        complain("%s", hw_message());
        return false;
    }
    if (report_read(report))
        return true;
    report_close(report);
    return false;
}

void report_close(struct report *report)
{
    json_decref(report->explain);
    hw_close(report->context);
    *report = (struct report){ 0 };
}

const char *report_error(const struct report *report)
{
    return json_string_value(json_object_get(report->explain, "open_error"));
}

struct hw_device *report_device(const struct report *report, const char *name)
{
    struct hw_device *device = NULL;

    if (report_error(report)) {
        complain("%s", report_error(report));
        return NULL;
    }
    if (!name)
        device = hw_device_default(report->context);
    else if (hw_device_find(report->context, name, &device))
        complain("%s", hw_message());
    if (!name && !device)
        complain("no device can be used; 'hw status' says why");
    return device;
}

int device_index(struct hw_device *device)
{
    const char *colon = strrchr(hw_device_name(device), ':');
    return colon ? atoi(colon + 1) : 0;
}

const char *report_plugin_path(const struct report *report, struct hw_device *device)
{
    json_t *file;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "candidates"), index, file)
        if (!strcmp(text_of(file, "state"), "used") &&
            !strcmp(text_of(file, "name"), hw_device_backend(device)))
            return text_of(file, "real");
    return "";
}

void print_warnings(const json_t *warnings, const char *error)
{
    json_t *warning;
    size_t index;
    json_array_foreach ((json_t *)warnings, index, warning)
        if (!error || strcmp(error, json_string_value(warning)))
            say("%sWarning:%s %s\n", ink(YELLOW), ink(PLAIN), json_string_value(warning));
}

const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

bool flag_of(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}
