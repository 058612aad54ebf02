/* SPDX-License-Identifier: MIT */
/* depends.h - the files that a verdict depends on, as lines of text. hw-probe lists the files that
 * it has looked at. The library looks at them again, and knows nothing more about them.
 * docs/cache.md describes the lines. */
#ifndef HW_CACHE_DEPENDS_H
#define HW_CACHE_DEPENDS_H

#include <stdbool.h>
#include <sys/stat.h>

#define DEPENDS_BYTES (64 << 10) /* of all lines; a verdict with more of them is not kept */

/* These members change if a file is replaced or written to. */
struct identity {
    char text[160];
};
struct identity identity_of(const struct stat *file);
/* "-" if there is no file at this path, or `path` is NULL. */
struct identity identity_at(const char *path);

/* Whether all files are as they were. */
bool depends_hold(const char *lines);

/* For hw-probe: these add a line. If memory runs out or a name contains control characters, the
 * lines become NULL and stay so: then the verdict is not kept.
 *
 * A file or a directory; only the owner and the rights of a directory count. */
void depends_add_file(char **lines, const char *path);
/* A needed library. `used`: its path, NULL if it was not found. `found`: where it is found by a
 * process that has not loaded it, or NULL. */
void depends_add_library(char **lines, const char *name, const char *used,
                         const char *found);

#endif
