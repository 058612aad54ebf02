/* SPDX-License-Identifier: MIT */
/* depends_write.h - writes the lines of a verdict that list what it depends on
 * (cache/depends.h). A verdict that depends on a name with control characters is not kept. */
#ifndef HW_PROBE_DEPENDS_WRITE_H
#define HW_PROBE_DEPENDS_WRITE_H

/* A file or a directory. */
void depends_add_file(char **lines, const char *path);
/* A needed library. `used`: its path, NULL if it was not found. `found`: where it is found by a
 * process that has not loaded it, or NULL. */
void depends_add_library(char **lines, const char *name, const char *used,
                         const char *found);

#endif
