/* SPDX-License-Identifier: MIT */
/* request.h - what hw-probe and hw-worker have in common as programs: their arguments, and how they
 * answer the library. */
#ifndef HELPER_REQUEST_H
#define HELPER_REQUEST_H

#include "load/probe.h"

/* Which plugin, and how: from the arguments. */
struct request {
    char *found, *file;   /* its path as the library found it, and without links */
    const char *identity; /* of the file that the parent checked: cache/depends.h */
    struct settings settings;
    const char *libraries[LIBRARIES_MAX]; /* that the application has loaded */
    uint32_t library_count;
    char *name, *key;      /* for the cache; NULL: the verdict is not kept */
    int64_t time;          /* when the library started this program, by its clock */
    uint64_t started_us;   /* the same in microseconds_now() */
    uint32_t call_seconds; /* hw-worker: the time of one call; 0: no limit */
    enum reason ended;     /* the verdict, if an earlier process could not keep it */
    bool has_only;
    struct only only; /* is tested, if there is one */
    bool patient; /* somebody waits for these cases: each has CASE_TIMES the usual time */
};

enum { CASE_TIMES = 6 };

/* The arguments of load/probe.h. False if they make no sense. */
bool request_read(struct request *request, int count, char **arguments);

/* Orphans of the plugin become children of this process, and it has no other files than those that
 * the library gave it. */
void helper_settle(void);
/* If memory runs out, this process goes before any program of the user: it only tries a plugin. */
void helper_volunteer(void);

/* Writes to the library or, from the process of a plugin, to its watcher. */
bool reply(const void *bytes, size_t size);

/* Closes all descriptors from this one. */
void close_from(int first);

#endif
