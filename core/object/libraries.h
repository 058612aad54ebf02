/* SPDX-License-Identifier: MIT */
/* libraries.h - whether the system would find a library, without loading it. */
#ifndef HW_OBJECT_LIBRARIES_H
#define HW_OBJECT_LIBRARIES_H

#include "object/object.h"

enum found {
    NOT_FOUND,
    FOUND,
    UNDECIDED /* only the system's loader can tell, or the process has no descriptors left */
};

struct library {
    enum found found;
    /* Of a file that no system directory has, else NULL; the caller frees it. */
    char *path;
    bool own; /* the object itself says where: by rpath, runpath or a name with a slash */
};

/* Searches for a library as the system would: loaded already, rpath, LD_LIBRARY_PATH, runpath, the
 * system's cache, its directories. `directory` is that of the object ($ORIGIN). */
struct library library_find(const char *name, const struct object *object,
                            const char *directory, bool elevated);

#endif
