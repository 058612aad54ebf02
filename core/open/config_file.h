/* SPDX-License-Identifier: MIT */
/* config_file.h - the configuration file. */
#ifndef HW_OPEN_CONFIG_FILE_H
#define HW_OPEN_CONFIG_FILE_H

#include "settings.h"

#define CONFIG_FILE_BYTES 65536

/* What a configuration file says. Zero it before, free it after. */
struct file_values {
    char *text[SETTING_COUNT]; /* NULL: not set there */
    unsigned line[SETTING_COUNT];
};

/* Reads the text of a file: lines of key = value, # starts a comment line. HW_INVALID names
 * path, line and remedy. */
enum hw_status config_parse(struct file_values *values, const char *text, size_t bytes,
                            const char *path);
/* Reads the file at `path`; a file that is not there is HW_IO, one that others may write to
 * HW_UNTRUSTED, unless `trust` is false. */
enum hw_status config_load(struct file_values *values, const char *path, bool trust);
void file_values_free(struct file_values *values);

#endif
