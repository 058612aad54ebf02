/* SPDX-License-Identifier: MIT */
/* report.c - see report.h. */
#define _GNU_SOURCE /* asprintf(), realpath() */

#include "report.h"

#include "output.h"
#include "watch.h"

#include <hw/report.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
        complain("the library's report is not valid JSON: line %d, column %d: %s",
                 error.line, error.column, error.text);
    free(text);
    return report->explain;
}

/* ---- a report from a file ---- */

static const char *replayed; /* the file; NULL: this machine's report is wanted */

void report_replay(const char *path)
{
    replayed = path;
}

/* The whole file, NUL-terminated, or NULL with a complaint. */
static char *read_text(const char *path)
{
    enum { MOST = 64 << 20 };
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(MOST + 1) : NULL;
    const size_t size = text ? fread(text, 1, MOST + 1, file) : 0;
    const bool good = text && !ferror(file) && size <= MOST;
    if (!good)
        complain("%s: %s", path,
                 size > MOST ? "is too large for a report" : strerror(errno));
    if (file)
        fclose(file);
    if (good)
        text[size] = '\0';
    else
        free(text);
    return good ? text : NULL;
}

/* The JSON inside a page; otherwise the text itself. */
static char *json_part(char *text)
{
    static const char start[] = "<script type=\"application/json\">";
    char *from = strstr(text, start);
    char *end = from ? strstr(from, "</script>") : NULL;
    if (!end)
        return text;
    *end = '\0';
    return from + strlen(start);
}

/* Whether the tree has the parts that the commands rely on. */
static bool is_report(const json_t *tree)
{
    static const char *const lists[] = { "stages",      "settings", "warnings",
                                         "directories", "hardware", "candidates",
                                         "devices",     "selection" };
    const json_t *explain = json_object_get(tree, "explain");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (!json_is_array(json_object_get(explain, lists[i])))
            return false;
    return !strcmp(text_of(tree, "kind"), REPORT_KIND) &&
           json_object_get(explain, "open_error") &&
           json_is_array(json_object_get(tree, "checks"));
}

static bool read_replayed(struct report *report)
{
    json_error_t error;
    char *text = read_text(replayed);
    if (!text)
        return false;
    json_t *tree = json_loads(json_part(text), JSON_REJECT_DUPLICATES, &error);
    const bool good = is_report(tree);
    if (good) {
        report->explain = json_incref(json_object_get(tree, "explain"));
        report->checks = json_incref(json_object_get(tree, "checks"));
    } else
        complain("%s: was not written by 'hw report'", replayed);
    json_decref(tree);
    free(text);
    return good;
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
    *report = (struct report){ 0 };
    if (replayed)
        return read_replayed(report);
    if (hw_open(&own, &report->context)) {
        complain("%s", hw_message());
        return false;
    }
    if (report_read(report))
        return true;
    report_close(report);
    return false;
}

bool is_plugin_file(const char *word)
{
    const size_t length = strlen(word);
    return strchr(word, '/') || (length > 3 && !strcmp(word + length - 3, ".so"));
}

/* The absolute path of a plugin file, which the caller frees. Returns NULL, with a
 * complaint, if it is not a file. */
static char *plugin_file(const char *word)
{
    char *path = realpath(word, NULL);
    struct stat about;
    if (!path || stat(path, &about)) {
        complain("%s: %s", word, strerror(errno));
    } else if (S_ISDIR(about.st_mode)) {
        complain("%s: is a directory; name the plugin file in it", word);
    } else {
        return path;
    }
    free(path);
    return NULL;
}

bool report_open_for(struct report *report, const char *word,
                     const struct hw_options *options)
{
    struct hw_options own = { .size = sizeof own };
    if (!word || !is_plugin_file(word))
        return report_open(report, options);
    if (replayed) {
        complain(
            "%s: a report knows only the plugin files of its machine; 'explain' lists them",
            word);
        return false;
    }
    char *file = plugin_file(word);
    if (!file)
        return false;
    if (options)
        own = *options;
    char *alone = NULL;
    if (asprintf(&alone, "%s:!", file) < 0) {
        complain("out of memory");
        free(file);
        return false;
    }
    own.plugin_path = alone;
    own.start_user = file; /* the user named the file */
    own.backends = "*";
    const bool good = report_open(report, &own);
    free(alone);
    if (good)
        report->file = file;
    else
        free(file);
    return good;
}

void report_close(struct report *report)
{
    free(report->file);
    json_decref(report->explain);
    json_decref(report->checks);
    hw_close(report->context);
    *report = (struct report){ 0 };
}

const char *report_setting(const struct report *report, const char *variable)
{
    json_t *setting;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "settings"), index, setting)
        if (!strcmp(text_of(setting, "variable"), variable))
            return text_of(setting, "value");
    return "";
}

const char *report_error(const struct report *report)
{
    return json_string_value(json_object_get(report->explain, "open_error"));
}

/* The facts about the device with this name, or NULL. */
static const json_t *device_facts(const struct report *report, const json_t *name)
{
    json_t *device;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "devices"), index, device)
        if (json_equal(json_object_get(device, "name"), name))
            return device;
    return NULL;
}

/* Whether the plugin in use for the backend has less than half of the ops. */
static bool has_few_ops(const struct report *report, const char *backend)
{
    json_t *file;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "candidates"), index, file)
        if (!strcmp(text_of(file, "state"), "used") &&
            !strcmp(text_of(file, "name"), backend))
            return json_array_size(json_object_get(file, "ops")) < HW_OP_COUNT / 2;
    return false;
}

const json_t *report_recommended(const struct report *report)
{
    const json_t *selection = json_object_get(report->explain, "selection");
    for (size_t i = 0; i < json_array_size(selection); i++) {
        const json_t *device = device_facts(report, json_array_get(selection, i));
        if (device && !has_few_ops(report, text_of(device, "backend")))
            return device;
    }
    return device_facts(report, json_array_get(selection, 0));
}

/* The remedy for somebody who names a plugin file, and has probably written it. */
static const char *remedy_for_author(const char *remedy)
{
    static const char others[] = "Report it to its author";
    const size_t length = sizeof others - 1;
    if (strncmp(remedy, others, length))
        return remedy;
    return remedy[length] == ':' ? remedy + length + 2 : "mend the plugin";
}

/* Complains that the file has no device, with the reason. */
static void complain_of_file(const struct report *report, const char *word)
{
    const json_t *file = json_array_get(json_object_get(report->explain, "candidates"), 0);
    if (*text_of(file, "message"))
        complain("%s: stopped at %s (%s): %s. Remedy: %s", word, text_of(file, "stage"),
                 text_of(file, "reason"), text_of(file, "message"),
                 remedy_for_author(text_of(file, "remedy")));
    else
        complain("%s: %s", word,
                 report_error(report) ? report_error(report) : "it has no device");
}

struct hw_device *report_listed(const struct report *report, const char *name)
{
    struct hw_device *device = NULL;

    if (report->file && !hw_device_count(report->context))
        complain_of_file(report, name);
    else if (report_error(report))
        complain("%s", report_error(report));
    else if (!name || report->file) {
        if (!(device = hw_device_at(report->context, 0)))
            complain("no device can be used; 'hw status' has the reasons");
        return device;
    } else if (hw_device_find(report->context, name, &device)) {
        complain("%s", hw_message());
    } else {
        return device;
    }
    return NULL;
}

struct hw_device *report_device(const struct report *report, const char *name)
{
    struct hw_device *device = report_listed(report, name);
    return device && (!name || report->file) ? hw_device_default(report->context) : device;
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

bool report_has_kernel(struct hw_device *device, const char *op, const char *name)
{
    bool known = false;
    for (uint32_t i = 0; i < HW_OP_COUNT; i++) {
        struct hw_kernel_info row = { .size = sizeof row };
        enum hw_status status = HW_END;
        if (op && strcmp(op, hw_op_name(i)) != 0)
            continue;
        for (uint32_t k = 0; !(status = hw_device_kernel(device, i, k, &row)); k++) {
            const bool meant = !strcmp(row.name, name);
            if (meant && row.eligible)
                return true;
            known = known || meant;
        }
        if (status != HW_END && status != HW_UNSUPPORTED) {
            complain("%s: %s", name, hw_message());
            return false;
        }
    }
    complain("%s: %s %s%s%s; 'hw devices --kernels' lists them", name,
             hw_device_name(device),
             known ? "cannot run the kernel of that name" : "has no kernel of that name",
             op ? " for " : "", op ? op : "");
    return false;
}

void print_warnings(const json_t *warnings, const char *error)
{
    json_t *warning;
    size_t index;
    json_array_foreach ((json_t *)warnings, index, warning) {
        const char *text = json_string_value(warning);
        if (text && (!error || strcmp(error, text)))
            say("%sWarning:%s %s\n", ink(YELLOW), ink(PLAIN), text);
    }
}

static bool is_of(const json_t *demotion, const char *name)
{
    const char *device = text_of(demotion, "device");
    const size_t length = strlen(name);
    return !strncmp(device, name, length) && (!device[length] || device[length] == ':');
}

void print_demotions(const json_t *demotions, const char *name, int most)
{
    const char *last = ""; /* a remedy shared by all is shown once */
    json_t *demotion;
    size_t index;
    int count = 0;
    json_array_foreach ((json_t *)demotions, index, demotion)
        if (is_of(demotion, name) && ++count <= most) {
            const char *remedy = text_of(demotion, "remedy");
            const bool again = !strcmp(remedy, last),
                       slow = !strcmp(text_of(demotion, "cause"), "slow");
            say_folded(8, "    %s%s:%s %s (%s) on %s: %s%s%s\n", ink(YELLOW),
                       slow ? "Too slow" : "Withdrawn", ink(PLAIN), text_of(demotion, "op"),
                       text_of(demotion, "dtypes"), text_of(demotion, "device"),
                       text_of(demotion, "why"),
                       again ? "" : ". Remedy: ", again ? "" : remedy);
            last = remedy;
        }
    if (count > most)
        say("        and %d more: 'hw explain' lists them\n", count - most);
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
