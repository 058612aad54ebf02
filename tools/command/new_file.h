/* SPDX-License-Identifier: MIT */
/* new_file.h - writes a file that appears complete, or not at all. */
#ifndef HW_TOOL_NEW_FILE_H
#define HW_TOOL_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the bytes to a file with these permissions. Replaces an existing file only if `replace`.
 * Returns false, with a complaint that names the file, on failure; an existing file is then
 * unchanged. */
bool new_file_write(const char *path, unsigned mode, bool replace, const char *bytes,
                    size_t size);

#endif
