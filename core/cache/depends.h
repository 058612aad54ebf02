/* SPDX-License-Identifier: MIT */
/* depends.h - the files that a verdict depends on, as lines of text. hw-probe lists the files that
 * it has looked at. The library looks at them again, and knows nothing more about them.
 * docs/cache.md describes the lines. */
#ifndef HW_CACHE_DEPENDS_H
#define HW_CACHE_DEPENDS_H

#include <stdbool.h>
#include <sys/stat.h>

#define DEPENDS_BYTES (64 << 10) /* of all lines */

/* These members change if a file is replaced or written to. */
struct identity {
    char text[160];
};
struct identity identity_of(const struct stat *file);
/* "-" if there is no file at this path, or `path` is NULL. */
struct identity identity_at(const char *path);

/* Whether all files are as they were. */
bool depends_hold(const char *lines);

/* Adds a line. If memory runs out or the lines become too long, they become NULL and stay so: then
 * the verdict is not kept. */
void lines_add(char **lines, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes them NULL. */
void lines_drop(char **lines);

/* Writes the state of the file at this path as it stands in a line; "-" if there is none, or `path`
 * is NULL. Only the owner and the rights of a directory count. */
enum { DEPENDS_STATE = 17 };
void depends_state(const char *path, char state[DEPENDS_STATE]);

#endif
