/* SPDX-License-Identifier: MIT */
/* fixture.h - shared by the tests of the loader: directories for plugin files, opening a
 * context on them, and reading its report. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <hw/hw.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Every test works in a directory of its own, below one that is removed at the end; no
 * variable of the person who runs the tests gets in. */
int lair_open(void **state);
int lair_close(void **state);

/* "<the lair>/<...>", in one of a few buffers that take turns. */
const char *lair(const char *format, ...) __attribute__((format(printf, 1, 2)));
void make_directory(const char *path);
void write_file(const char *path, const void *bytes, size_t size);
/* A whole file, one NUL byte behind it; the caller frees. */
unsigned char *read_file(const char *path, size_t *size);
/* The fixture that was built from plugins/<name>.c. */
const char *built(const char *name);
/* Copies a built fixture to <directory>/hw_<name>.so. */
void put_plugin(const char *directory, const char *name);

/* How often processes have loaded the fixture tally, to try it or to bind it. */
struct tally {
    unsigned tried, bound;
};
/* Begins to count; what was counted since then, or since the last call. */
void tally_begin(void);
struct tally tallied(void);

/* Opens a context on these directories alone (a colon between them). */
enum hw_status open_on(const char *path, const struct hw_options *more,
                       struct hw_context **context);
/* The whole report, which is valid JSON; the caller's. */
json_t *report(struct hw_context *context);
/* The entry of the file of that path in the report, or NULL. */
const json_t *candidate(const json_t *report, const char *path);
const char *text_of(const json_t *object, const char *key);

/* The entry's file stopped for this reason, with a message and a remedy; "": it is used. */
void check_reason(const json_t *entry, const char *reason);
/* The good plugin at `path` is used, and its device can be asked. */
void check_good(struct hw_context *context, const json_t *json, const char *path);
/* Uses each device, if it can be used, so that what was tried elsewhere is loaded here as well. */
void use_all(struct hw_context *context);

#endif
