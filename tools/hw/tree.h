/* SPDX-License-Identifier: MIT */
/* tree.h - a directory that stands for the file system of a Windows or macOS machine, and the
 * search there for the libraries that a plugin needs. */
#ifndef HW_TOOL_TREE_H
#define HW_TOOL_TREE_H

#include "probe/object/elsewhere.h"

#include <limits.h>

struct tree {
    char *root;    /* the directory; NULL: only the plugin's directory is known */
    char *program; /* the directory of the program, from the root on; NULL: not known */
};

/* A library that was looked for. */
struct sought {
    const char *name; /* "a|b" means that either one is enough */
    bool linked;      /* false: the plugin opens it while it runs */
    enum located located;
    char path[PATH_MAX]; /* here; "" if it is in no file */
    char why[256];       /* why the file does not fit */
};

/* Looks for `sought->name`, which the object in `file` needs, and fills in the rest. */
void tree_find(const struct tree *tree, const struct object *object, const char *file,
               struct sought *sought);

#endif
