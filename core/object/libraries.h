/* SPDX-License-Identifier: MIT */
/* libraries.h - whether the system would find a library, without loading it. */
#ifndef HW_OBJECT_LIBRARIES_H
#define HW_OBJECT_LIBRARIES_H

#include "object/object.h"

enum found { FOUND, NOT_FOUND, UNDECIDED };
/* Searches for a library as the system would: loaded already, rpath, LD_LIBRARY_PATH,
 * runpath, the system's cache, its directories. `directory` is that of the object
 * ($ORIGIN). UNDECIDED: a path has a word in it that only the system's own loader can
 * replace. */
enum found library_find(const char *name, const struct object *object,
                        const char *directory, bool elevated);

#endif
