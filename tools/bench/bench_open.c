/* SPDX-License-Identifier: MIT */
/* bench_open.c - the time to open a context: in a new process, with and without the plugin files in
 * the page cache, and again in the same process; and the time to start one plugin alone.
 *
 * A forked child that has not opened anything counts as a new process. A plain dlopen() of the
 * same files is measured in new processes, too; the difference is the library's own work and the
 * start of the plugins. */
#define _DEFAULT_SOURCE /* mincore() */

#include "bench.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/output.h"
#include "command/report.h"
#include "command/watch.h"
#include "direct.h"

#include <hw/hw.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPETITIONS = 25, AGAIN = 200, LONGEST_REPLY = 1 << 20 };

/* ---- A new process ------------------------------------------------------------------------- */

static char *read_all(int fd)
{
    char *text = malloc(LONGEST_REPLY);
    size_t used = 0;
    ssize_t got;

    while (text && used < LONGEST_REPLY - 1 &&
           (got = read(fd, text + used, LONGEST_REPLY - 1 - used)) > 0)
        used += (size_t)got;
    if (text)
        text[used] = '\0';
    return text;
}

/* Runs `work` in a new process. Returns its result, or NULL with a complaint. */
static json_t *in_new_process(json_t *(*work)(const json_t *input), const json_t *input)
{
    int ends[2], state = 0;
    out_flush();
    if (pipe(ends)) {
        perror("hw: bench open: pipe");
        return NULL;
    }
    pid_t child = fork();
    if (child == 0) {
        json_t *found = work(input);
        int failed = !found || json_dumpfd(found, ends[1], 0);
        _exit(failed ? EXIT_FAILED : 0);
    }
    close(ends[1]);
    char *text = child > 0 ? read_all(ends[0]) : NULL;
    close(ends[0]);
    if (child > 0)
        waitpid(child, &state, 0);
    json_t *found = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    if (!found)
        complain("open: the measuring process ended without a result");
    return found;
}

/* ---- Work of such a process
 * -------------------------------------------------------------------- */

/* The plugin files that were not refused, or only those that were loaded. */
static json_t *plugin_files(const struct report *report, bool loaded)
{
    json_t *files = json_array(), *file;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "candidates"), index, file)
        if (strcmp(text_of(file, "state"), "stopped") != 0 &&
            (!loaded || flag_of(file, "bound")))
            json_array_append_new(files, json_string(text_of(file, "real")));
    return files;
}

/* {"open", "close": ns, "files", "loaded", "devices"}, or {"error"}. */
static json_t *open_once(const json_t *unused)
{
    const struct hw_options options = { .size = sizeof options, .start_fn = watch_start };
    struct hw_context *context = NULL;
    (void)unused;

    double start = now_ns();
    enum hw_status status = hw_open(&options, &context);
    double opened = now_ns();
    if (status)
        return json_pack("{s:s}", "error", hw_message());
    struct report report = { .context = context };
    if (!report_read(&report))
        return NULL;
    json_t *reply = json_pack("{s:f, s:o, s:o, s:i}", "open", opened - start, "files",
                              plugin_files(&report, false), "loaded",
                              plugin_files(&report, true), "devices",
                              (int)hw_device_count(context));
    json_decref(report.explain);
    double closing = now_ns();
    hw_close(context);
    json_object_set_new(reply, "close", json_real(now_ns() - closing));
    return reply;
}

/* {"open": ns}: the time to load the files and nothing else; or {"error"}. */
static json_t *dlopen_once(const json_t *files)
{
    json_t *file;
    size_t index;
    double start = now_ns();

    json_array_foreach ((json_t *)files, index, file)
        if (!dlopen(json_string_value(file), RTLD_NOW | RTLD_LOCAL))
            return json_pack("{s:s}", "error", dlerror());
    return json_pack("{s:f, s:f}", "open", now_ns() - start, "close", 0.0);
}

/* {"name", "path", "index"} of a device; {}, with a complaint, if there is none. */
static json_t *find_device(const json_t *name)
{
    const char *word = json_string_value(name);
    struct report report;
    if (!report_open_for(&report, word, NULL))
        return NULL;
    struct hw_device *device = report_listed(&report, word);
    json_t *found = device ? json_pack("{s:s, s:s, s:i}", "name", hw_device_name(device),
                                       "path", report_plugin_path(&report, device), "index",
                                       device_index(device))
                           : json_object();
    report_close(&report);
    return found;
}

/* {"load", "start": ns}: the times to load and to start the plugin of a device; or {"error"}. */
static json_t *start_once(const json_t *device)
{
    struct direct plugin;
    const double start = now_ns();
    const bool loaded = direct_load(&plugin, text_of(device, "path"));
    const double middle = now_ns();
    const bool started = loaded &&
                         direct_start(&plugin, (int32_t)number_of(device, "index"), 0);
    const double end = now_ns();
    json_t *reply = started ? json_pack("{s:f, s:f}", "load", middle - start, "start",
                                        end - middle)
                            : json_pack("{s:s}", "error", plugin.why);
    direct_close(&plugin);
    return reply;
}

/* The share of the pages of a file that are in memory; 0 if unknown. */
static double resident(int fd, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page,
           there = 0;
    unsigned char *map = calloc(pages + 1, 1);
    void *view = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

    if (view != MAP_FAILED && map && !mincore(view, bytes, map))
        for (size_t i = 0; i < pages; i++)
            there += map[i] & 1;
    if (view != MAP_FAILED)
        munmap(view, bytes);
    free(map);
    return pages ? (double)there / (double)pages : 0;
}

/* Asks the kernel to drop the pages of the files. Returns the largest share that stayed. */
static double drop_from_cache(const json_t *files)
{
    json_t *file;
    size_t index;
    double most = 0;

    json_array_foreach ((json_t *)files, index, file) {
        struct stat info;
        int fd = open(json_string_value(file), O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        fsync(fd); /* pages not written yet cannot be dropped */
        if (!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) && !fstat(fd, &info)) {
            double share = resident(fd, (size_t)info.st_size);
            most = share > most ? share : most;
        }
        close(fd);
    }
    return most;
}

/* ---- Many times ---------------------------------------------------------------------------- */

/* One way of opening, measured many times; in microseconds. */
struct series {
    const char *name, *words;
    size_t count;
    double *open, *dlopen, *close;
};

static bool series_make(struct series *series, const char *name, const char *words,
                        int count)
{
    double *samples = calloc(3 * (size_t)count, sizeof *samples);
    *series = (struct series){ .name = name,
                               .words = words,
                               .open = samples,
                               .dlopen = samples + count,
                               .close = samples + 2 * count };
    return samples != NULL;
}

/* Stores one result as a sample. Returns false, with a complaint, if it is an error. */
static bool take(json_t *reply, double *open_us, double *close_us)
{
    bool good = reply && !json_object_get(reply, "error");
    if (reply && !good)
        complain("open: %s", text_of(reply, "error"));
    *open_us = number_of(reply, "open") / 1000;
    *close_us = number_of(reply, "close") / 1000;
    json_decref(reply);
    return good;
}

static bool measure_new(struct series *series, const json_t *first, bool cold,
                        double *stayed, size_t count)
{
    const json_t *files = json_object_get(first, "files");
    const json_t *loaded = json_object_get(first, "loaded");
    double none;
    for (size_t i = 0; i < count; i++, series->count++) {
        if (cold)
            *stayed = drop_from_cache(files);
        if (!take(in_new_process(open_once, NULL), &series->open[i], &series->close[i]))
            return false;
        if (cold)
            drop_from_cache(files);
        if (!take(in_new_process(dlopen_once, loaded), &series->dlopen[i], &none))
            return false;
    }
    return true;
}

static bool measure_again(struct series *series, size_t count)
{
    double none;
    bool good = take(open_once(NULL), &none, &none);
    for (size_t i = 0; i < count && good; i++, series->count++)
        good = take(open_once(NULL), &series->open[i], &series->close[i]);
    return good;
}

/* ---- The table ----------------------------------------------------------------------------- */

static void print_row(const char *words, struct spread spread)
{
    say("  %-44s %s%8.0f%s %8.0f %8.0f\n", words, ink(BOLD), spread.median, ink(PLAIN),
        spread.min, spread.p90);
}

static void report_series(const struct bench *bench, struct series *series)
{
    double *rest = calloc(series->count, sizeof *rest);
    for (size_t i = 0; rest && i < series->count; i++)
        rest[i] = series->open[i] - series->dlopen[i];
    if (!rest)
        return;
    bool apart = series->dlopen[0] > 0;
    struct spread open_us = spread_of(series->open, series->count);
    struct spread dlopen_us = spread_of(series->dlopen, series->count);
    double rest_us = spread_of(rest, series->count).median;
    struct spread close_us = spread_of(series->close, series->count);
    free(rest);

    json_t *row = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "bench", "open", "how",
                            series->name, "unit", "us", "repetitions", (int)series->count,
                            "open", spread_json(open_us), "close", spread_json(close_us));
    if (apart) {
        json_object_set_new(row, "dlopen", spread_json(dlopen_us));
        json_object_set_new(row, "besides_dlopen", json_pack("{s:f}", "median", rest_us));
    }
    json_array_append_new(bench->results, row);
    if (!out_is_text())
        return;
    print_row(series->words, open_us);
    if (apart) {
        print_row("  of this: dlopen of the files, alone", dlopen_us);
        /* Only the median: the times of two processes vary by more than this part, so other
         * percentiles of the difference mean nothing. */
        say("  %-44s %s%8.0f%s\n", "  of this: everything else", ink(BOLD), rest_us,
            ink(PLAIN));
    }
    print_row("  close", close_us);
}

static int measure_all(const struct bench *bench, const json_t *first)
{
    int count = bench->repetitions ? bench->repetitions : REPETITIONS;
    int many = bench->repetitions ? bench->repetitions : AGAIN;
    struct series cold, fresh, again;
    double stayed = 0;
    bool good = series_make(&cold, "cold", "open, new process, files not in memory", count);

    good = series_make(&fresh, "new process", "open, new process", count) && good;
    good = series_make(&again, "again", "open, again in one process", many) && good;
    good = good && measure_new(&cold, first, true, &stayed, (size_t)count) &&
           measure_new(&fresh, first, false, &stayed, (size_t)count) &&
           measure_again(&again, (size_t)many);
    if (good) {
        report_series(bench, &cold);
        report_series(bench, &fresh);
        report_series(bench, &again);
        if (out_is_text() && stayed > 0)
            say("  (up to %.0f %% of a file's pages stayed in memory: they are in use elsewhere)\n",
                100 * stayed);
    }
    free(cold.open);
    free(fresh.open);
    free(again.open);
    return good ? 0 : EXIT_FAILED;
}

/* ---- One plugin alone ---------------------------------------------------------------------- */

static void report_plugin(const struct bench *bench, const json_t *device, double *us,
                          size_t count)
{
    const struct spread whole = spread_of(us, count), load = spread_of(us + count, count),
                        start = spread_of(us + 2 * count, count);
    json_array_append_new(bench->results,
                          json_pack("{s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "bench",
                                    "open", "how", "plugin", "device",
                                    text_of(device, "name"), "unit", "us", "repetitions",
                                    (int)count, "open", spread_json(whole), "load",
                                    spread_json(load), "start", spread_json(start)));
    if (!out_is_text())
        return;
    say("  %-44s   median      min      p90\n", "");
    say("  the plugin of %s alone, without the library,\n", text_of(device, "name"));
    print_row("  new process", whole);
    print_row("  of this: dlopen of its file", load);
    print_row("  of this: itself, its device, rows, a queue", start);
}

/* us: room for the sums, the times to load, and the times to start, `count` each. */
static bool measure_plugin(const struct bench *bench, const json_t *device, double *us,
                           size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        json_t *reply = in_new_process(start_once, device);
        good = reply && !json_object_get(reply, "error");
        if (reply && !good)
            complain("open: %s", text_of(reply, "error"));
        us[count + i] = number_of(reply, "load") / 1000;
        us[2 * count + i] = number_of(reply, "start") / 1000;
        us[i] = us[count + i] + us[2 * count + i];
        json_decref(reply);
    }
    if (good)
        report_plugin(bench, device, us, count);
    return good;
}

/* Runs before this process loads a plugin, because its children would inherit it. */
static int measure_one_plugin(const struct bench *bench)
{
    const size_t count = (size_t)(bench->repetitions ? bench->repetitions : REPETITIONS);
    json_t *name = bench->device ? json_string(bench->device) : NULL;
    json_t *device = in_new_process(find_device, name);
    double *us = calloc(3 * count, sizeof *us);
    const bool good = us && json_object_get(device, "path") &&
                      measure_plugin(bench, device, us, count);
    free(us);
    json_decref(device);
    json_decref(name);
    return good ? 0 : EXIT_FAILED;
}

/* ---- All of it ----------------------------------------------------------------------------- */

int measure_open(const struct bench *bench)
{
    int status = EXIT_FAILED;
    json_t *first;

    first = in_new_process(open_once, NULL);
    const json_t *files = json_object_get(first, "files");
    if (first && !files)
        complain("open: %s", text_of(first, "error"));
    if (files) {
        if (out_is_text())
            say("\nopening a context with %.0f device%s of %zu plugin%s, %zu of them loaded: "
                "microseconds\n",
                number_of(first, "devices"), number_of(first, "devices") == 1 ? "" : "s",
                json_array_size(files), json_array_size(files) == 1 ? "" : "s",
                json_array_size(json_object_get(first, "loaded")));
        const bool any = bench->device || number_of(first, "devices") > 0;
        status = any ? measure_one_plugin(bench) : 0;
        if (!status)
            status = measure_all(bench, first);
    }
    json_decref(first);
    return status;
}
