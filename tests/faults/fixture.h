/* SPDX-License-Identifier: MIT */
/* fixture.h - shared by the tests of the loader: directories for plugin files, opening a
 * context on them, and reading its report. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <hw/hw.h>
#include <hw/interop.h>
#include <hw/report.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka.h needs the headers above. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Each test works in its own directory, below one that is removed at the end, and without the
 * user's environment variables. */
int lair_open(void **state);
int lair_close(void **state);

/* "<the lair>/<...>", in one of a few buffers used in rotation. */
const char *lair(const char *format, ...) __attribute__((format(printf, 1, 2)));
void make_directory(const char *path);
void write_file(const char *path, const void *bytes, size_t size);
/* Reads a whole file and appends a NUL byte; the caller frees it. */
unsigned char *read_file(const char *path, size_t *size);
/* The path of the fixture built from plugins/<name>.c. */
const char *built(const char *name);
/* Copies a built fixture to <directory>/hw_<name>.so. */
void put_plugin(const char *directory, const char *name);

/* How often the fixture tally was loaded: by hw-probe, or to be used. */
struct tally {
    unsigned tried, bound;
};
/* tally_begin() starts counting; tallied() returns the counts since then or since its last call. */
void tally_begin(void);
struct tally tallied(void);

/* Opens a context that searches only these directories (colon-separated). */
enum hw_status open_on(const char *path, const struct hw_options *more,
                       struct hw_context **context);
/* Returns the whole report, which must be valid JSON; the caller frees it. */
json_t *report(struct hw_context *context);
/* Returns the report's entry for the file at that path, or NULL. */
const json_t *candidate(const json_t *report, const char *path);
const char *text_of(const json_t *object, const char *key);

/* Fails unless the file was rejected for this reason, with a message and a remedy; "": unless it is
 * used. */
void check_reason(const json_t *entry, const char *reason);
/* Fails unless the good plugin at `path` is used and its device works. */
void check_good(struct hw_context *context, const json_t *json, const char *path);
/* Uses each usable device, so that plugins tried in hw-probe are loaded here as well. */
void use_all(struct hw_context *context);

#endif
