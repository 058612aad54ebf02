/* SPDX-License-Identifier: MIT */
/* cache_world.h - setup for the tests of the verdict cache: a context and a candidate in their
 * state after preflight, a cache of their own, and a clock that does not advance by itself. */
#ifndef CACHE_WORLD_H
#define CACHE_WORLD_H

#include "cache/cache.h"
#include "cache/key.h"
#include "probe/store.h"

#include <stdbool.h>
#include <time.h>

struct world {
    struct hw_context context;
    struct catalog found;
    struct candidate candidate;
};

extern time_t clock_time;  /* the result of time(); each test sets it */
extern unsigned told;      /* lines in the log about unkept verdicts */
extern int32_t told_level; /* of the last one */
/* HW_CACHE_DIR, and the directory of entries. */
extern char cache[4096], place[4200];

/* Creates a plugin file and a world whose cache directory does not exist yet. end() frees the
 * memory. */
void begin(struct world *w);
void end(struct world *w);
/* Changes a setting; look() then recomputes the key. */
void set(struct world *w, enum setting setting, const char *text);
/* Repeats the part of preflight that computes the key. */
void look(struct world *w);

enum { VERDICT_BYTES = 18 };

/* Stores a verdict of VERDICT_BYTES bytes and returns it with its dates. */
struct cached store(struct world *w, enum cache_kind kind);
/* Stores the verdict, or logs why it is not kept. Returns whether it was stored. */
bool keep(struct world *w, struct cached *verdict);
/* Whether the cache has this verdict. */
bool is_there(struct world *w);

/* Counts the files in a directory, except for hidden ones. */
unsigned count_files(const char *path);
/* The path of the only entry. */
const char *entry(void);

#endif
