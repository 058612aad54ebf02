/* SPDX-License-Identifier: MIT */
/* cache_world.h - what the tests of the cache of verdicts start from: a context and a candidate, as
 * the ladder has them after preflight, a cache of their own, and a clock that stands still. */
#ifndef CACHE_WORLD_H
#define CACHE_WORLD_H

#include "open/cache.h"
#include "open/key.h"

#include <stdbool.h>
#include <time.h>

struct world {
    struct hw_context context;
    struct catalog found;
    struct candidate candidate;
};

extern time_t clock_time;  /* what time() says; each test sets it */
extern unsigned told;      /* lines in the log: what is not kept */
extern int32_t told_level; /* of the last one */
/* HW_CACHE_DIR, and the directory of entries. */
extern char cache[4096], place[4200];

/* A new plugin file and an empty cache, which does not exist yet; end() frees what is in memory. */
void begin(struct world *w);
void end(struct world *w);
/* Gives a setting another value; look() makes the key anew. */
void set(struct world *w, enum setting setting, const char *text);
/* What preflight does, again. */
void look(struct world *w);

enum { VERDICT_BYTES = 18 };

/* Stores a verdict of so many bytes; returns it, with the times that it got. */
struct cached store(struct world *w, enum cache_kind kind);
/* Whether the cache has this verdict. */
bool is_there(struct world *w);

/* Files in a directory, but for hidden ones. */
unsigned count_files(const char *path);
/* The path of the only entry. */
const char *entry(void);

#endif
