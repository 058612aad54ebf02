/* SPDX-License-Identifier: MIT */
/* libraries.h - finds a library as the system would, without loading it. */
#ifndef HW_PROBE_LIBRARIES_H
#define HW_PROBE_LIBRARIES_H

#include "probe/object/object.h"

enum found {
    NOT_FOUND,
    FOUND,
    UNDECIDED /* only the system's loader can tell, or the process is short of resources */
};

struct library {
    enum found found;
    /* NULL if the library was not found, or if it is loaded already and its path is not known.
     * The caller frees it. */
    char *path;
    bool system; /* found in the system's directories, or loaded already */
    bool loaded; /* loaded in the process already */
    bool own;    /* found by the object's own rpath or runpath, or by a name with a slash */
};

struct library_search {
    const struct object *object; /* that needs the library */
    const char *directory;       /* of the object, for $ORIGIN */
    bool elevated;               /* the process has elevated rights */
    /* Is called with each path where no suitable file was found; may be NULL. */
    void (*missed)(void *user, const char *path);
    void *user;
};

/* Searches in the system's order: loaded already, rpath, LD_LIBRARY_PATH, runpath, the
 * system's cache, its directories. */
struct library library_find(const struct library_search *about, const char *name);

/* Calls visit() with each directory in the object's rpath or runpath, with $ORIGIN replaced. Stops
 * and returns false if visit() returns false. A relative path starts in the current directory. A
 * path of NULL means that memory ran out. Directories with variables that only the system's loader
 * can replace are left out. */
bool library_directories(const struct object *object, const char *directory,
                         bool (*visit)(void *user, const char *path), void *user);

#endif
