/* SPDX-License-Identifier: MIT */
/* report.h - a context that is opened for its report, and the report. */
#ifndef HW_TOOL_REPORT_H
#define HW_TOOL_REPORT_H

#include <hw/hw.h>
#include <jansson.h>
#include <stdbool.h>

struct report {
    struct hw_context *context;
    json_t *explain; /* hw_explain(), parsed; its schema: docs/explain.md */
    char *file;      /* if not NULL, only this plugin file was looked at */
    json_t *checks;  /* of a replayed report: the rows of checks_of(); else NULL */
};

/* The value of "kind" in a file of `hw report`. */
#define REPORT_KIND "hw report"

/* From now on, report_open() reads the report from this file of `hw report` and opens no context:
 * `context` is NULL. NULL: opens a context again. */
void report_replay(const char *path);

/* Opens a context with `options` (may be NULL), even if no device can be used. Shows the log
 * only if HW_LOG is set, since the report has everything. Returns false, with a complaint, on
 * failure. */
bool report_open(struct report *report, const struct hw_options *options);
/* Like report_open(), but if `word` (may be NULL) names a plugin file, looks only at that file,
 * whatever HW_BACKENDS says. */
bool report_open_for(struct report *report, const char *word,
                     const struct hw_options *options);
void report_close(struct report *report);

/* Whether a word of the command line names a plugin file: it has a slash or ends in ".so". */
bool is_plugin_file(const char *word);

/* Reads the report of a context that the caller has opened; the caller releases `explain`.
 */
bool report_read(struct report *report);

/* The value in effect of a setting, by its variable: "HW_PRECISION". */
const char *report_setting(const struct report *report, const char *variable);

/* The error that would have kept the context from opening without HW_OPEN_ANYWAY; NULL if none. */
const char *report_error(const struct report *report);

/* The facts about the device to recommend: the first one in order of preference whose plugin has at
 * least half of the ops, or else the first one, which hw_device_default() returns. NULL if no
 * device can be used. */
const json_t *report_recommended(const struct report *report);

/* The device with this name, or of this plugin file; the recommended one for NULL. Returns
 * NULL, with a complaint, if there is none. report_device() starts its plugin, report_listed()
 * does not. */
struct hw_device *report_device(const struct report *report, const char *name);
struct hw_device *report_listed(const struct report *report, const char *name);
/* The N in "backend:N": the index that the plugin uses. */
int device_index(struct hw_device *device);
/* The file that serves the device. */
const char *report_plugin_path(const struct report *report, struct hw_device *device);

/* Whether the device has a kernel of this name that it can run, for this op (NULL: for any);
 * complains if not. */
bool report_has_kernel(struct hw_device *device, const char *op, const char *name);

/* Prints the warnings, except the one that is also the error (may be NULL). */
void print_warnings(const json_t *warnings, const char *error);

/* Prints up to `most` of the withdrawn ops of a backend, "mine", or of a device, "mine:0". */
void print_demotions(const json_t *demotions, const char *name, int most);

/* Members of an object in the report; "", 0 or false if there is none of this kind. */
const char *text_of(const json_t *object, const char *key);
double number_of(const json_t *object, const char *key);
bool flag_of(const json_t *object, const char *key);

#endif
