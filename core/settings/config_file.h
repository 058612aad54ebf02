/* SPDX-License-Identifier: MIT */
/* config_file.h - the configuration file. */
#ifndef HW_SETTINGS_CONFIG_FILE_H
#define HW_SETTINGS_CONFIG_FILE_H

#include "settings.h"

#define CONFIG_FILE_BYTES 65536

/* The values in a configuration file. Initialise it with zeros; free it with
 * file_values_free(). */
struct file_values {
    char *text[SETTING_COUNT]; /* NULL: not set */
    unsigned line[SETTING_COUNT];
};

/* Parses the text of a file: lines of key = value; # begins a comment line. The message of
 * HW_INVALID has the path, the line and a remedy. */
enum hw_status config_parse(struct file_values *values, const char *text, size_t bytes,
                            const char *path);
/* Reads the file at `path`. HW_IO if it cannot be read; with `trust`, HW_UNTRUSTED if users
 * other than root and the caller can write to it or replace it. */
enum hw_status config_load(struct file_values *values, const char *path, bool trust);
void file_values_free(struct file_values *values);

#endif
