/* SPDX-License-Identifier: MIT */
/* elsewhere.h - where Windows and macOS look for a library that an object needs. These are the
 * rules alone: nothing is opened here. The caller says what is at a place, so that they hold for a
 * directory that stands for the file system of another machine, too. */
#ifndef HW_OBJECT_ELSEWHERE_H
#define HW_OBJECT_ELSEWHERE_H

#include "object/object.h"

/* What a path is relative to. */
enum base {
    FROM_ROOT,   /* the root directory; on Windows that of the drive C */
    FROM_OBJECT, /* the directory of the object */
    FROM_PROGRAM /* the directory of the program */
};

enum there {
    THERE_NOTHING,
    THERE_FIT,   /* a library for the processor of the object */
    THERE_UNFIT, /* another file */
    THERE_UNSEEN /* the caller has no such directory */
};

/* In its order of strength: one that is neither found nor part of the system is UNKNOWN if there
 * was a place that could not be looked at, else UNFIT if a file was there, else MISSING. */
enum located {
    LIBRARY_MISSING,
    LIBRARY_UNFIT,
    LIBRARY_UNKNOWN,
    LIBRARY_PERHAPS,   /* the system may have it, in no file of its own */
    LIBRARY_OF_SYSTEM, /* the system has it, in no file of its own */
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
    /* The path has slashes on both systems, and none in front. On Windows its letters may have
     * another case than those of the file. */
    enum there (*look)(void *user, enum base base, const char *path);
    void *user;
};

/* Calls look() for each place in the system's order, until one decides: of LIBRARY_FOUND and, on
 * Windows, LIBRARY_UNFIT, that is the last one. */
enum located library_elsewhere(const struct elsewhere *elsewhere, const char *name);

#endif
