/* SPDX-License-Identifier: MIT */
/* elsewhere.h - where Windows and macOS look for a library that an object needs. This code knows
 * only the rules and opens nothing: the caller says which file is at a path. So the caller can also
 * use a directory that holds the file system of another machine. */
#ifndef HW_PROBE_OBJECT_ELSEWHERE_H
#define HW_PROBE_OBJECT_ELSEWHERE_H

#include "probe/object/object.h"

/* The start of a relative path. */
enum base {
    FROM_ROOT,   /* the root directory; on Windows the root of drive C */
    FROM_OBJECT, /* the directory of the object */
    FROM_PROGRAM /* the directory of the program */
};

enum there {
    THERE_NOTHING,
    THERE_FIT,   /* a library for the processor of the object */
    THERE_UNFIT, /* another file */
    THERE_UNSEEN /* the caller has no such directory */
};

/* A library that is neither found nor part of the system is UNKNOWN if a place could not be looked
 * at, else UNFIT if a file was there, else MISSING. */
enum located {
    LIBRARY_MISSING,
    LIBRARY_UNFIT,
    LIBRARY_UNKNOWN,
    LIBRARY_PERHAPS,   /* the system may have it, but not as a file */
    LIBRARY_OF_SYSTEM, /* the system has it, but not as a file */
    LIBRARY_FOUND
};

/* Variables with lists of directories, which macOS obeys; NULL or "": not set. A process with
 * elevated rights has none. */
enum variable {
    DYLD_LIBRARY_PATH,
    DYLD_FRAMEWORK_PATH,
    DYLD_FALLBACK_LIBRARY_PATH,
    DYLD_FALLBACK_FRAMEWORK_PATH,
    VARIABLE_COUNT
};

struct elsewhere {
    const struct object *object; /* PE or Mach-O */
    const char *variables[VARIABLE_COUNT];
    /* The path is separated by slashes on both systems, and does not begin with one. On Windows the
     * case of its letters may differ from the file's. */
    enum there (*look)(void *user, enum base base, const char *path);
    void *user;
};

/* Calls look() for each place in the system's order, until the search ends. So if the result is
 * LIBRARY_FOUND or, on Windows, LIBRARY_UNFIT, the last call was for that file. */
enum located library_elsewhere(const struct elsewhere *elsewhere, const char *name);

#endif
