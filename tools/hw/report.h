/* SPDX-License-Identifier: MIT */
/* report.h - a context opened to be looked at, and what the library tells of it. */
#ifndef HW_TOOL_REPORT_H
#define HW_TOOL_REPORT_H

#include <hw/hw.h>
#include <jansson.h>
#include <stdbool.h>

struct report {
    struct hw_context *context;
    json_t *explain; /* hw_explain(), parsed; its schema: docs/explain.md */
    char *file;      /* the plugin file that is looked at alone; NULL: all */
};

/* Opens a context by `options` (may be NULL), even if no device can be used. Log lines are shown
 * only if HW_LOG asks for them, since the report has everything. False, and said, if not even that
 * succeeds. */
bool report_open(struct report *report, const struct hw_options *options);
/* The same. If `word` (may be NULL) names a plugin file, only that file is looked at, whatever
 * HW_BACKENDS says. */
bool report_open_for(struct report *report, const char *word,
                     const struct hw_options *options);
void report_close(struct report *report);

/* Whether a word of the command line names a plugin file: it has a slash or ends in ".so". */
bool is_plugin_file(const char *word);

/* Reads the report of a context that the caller opened; `explain` is then the caller's. */
bool report_read(struct report *report);

/* Why the context would not have opened without HW_OPEN_ANYWAY; NULL if it would have. */
const char *report_error(const struct report *report);

/* The device of that name, or of that plugin file; the recommended one for NULL. NULL, and said, if
 * there is none. */
struct hw_device *report_device(const struct report *report, const char *name);
/* The N of "backend:N": the plugin's own index. */
int device_index(struct hw_device *device);
/* The file that serves the device. */
const char *report_plugin_path(const struct report *report, struct hw_device *device);

/* Prints the warnings, without the one that was told as the error (may be NULL). */
void print_warnings(const json_t *warnings, const char *error);

/* Members of an object of the report: "", 0, false where there is none of that kind. */
const char *text_of(const json_t *object, const char *key);
double number_of(const json_t *object, const char *key);
bool flag_of(const json_t *object, const char *key);

#endif
