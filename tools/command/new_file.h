/* SPDX-License-Identifier: MIT */
/* new_file.h - writes a file that appears with all of its contents, or not at all. */
#ifndef HW_TOOL_NEW_FILE_H
#define HW_TOOL_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the bytes to a file with these permissions. A file of this name is replaced only with
 * `replace`.
 * Returns false, with a complaint that names the file, if that fails; a file that was there is then
 * as before. */
bool new_file_write(const char *path, unsigned mode, bool replace, const char *bytes,
                    size_t size);

#endif
