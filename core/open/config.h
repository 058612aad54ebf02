/* SPDX-License-Identifier: MIT */
/* config.h - what the files of the settings share: config.c (who decides), config_file.c
 * (the configuration file), config_value.c (what a value may be). */
#ifndef HW_CONFIG_H
#define HW_CONFIG_H

#include "core.h"

#define CONFIG_FILE_BYTES 65536
#define VALUE_BYTES       4096 /* the longest value of a setting */

/* What a configuration file says. Zero it before, free it after. */
struct file_values {
    char *text[SETTING_COUNT]; /* NULL: not set there */
    unsigned line[SETTING_COUNT];
};

extern const char *const setting_fields[SETTING_COUNT];
extern const char *const setting_variables[SETTING_COUNT];

/* Reads the text of a file: lines of key = value, # starts a comment line. HW_INVALID names
 * path, line and remedy. */
enum hw_status config_parse(struct file_values *values, const char *text, size_t bytes,
                            const char *path);
/* Reads the file at `path`; a file that is not there is HW_IO, one that others may write to
 * HW_UNTRUSTED, unless `trust` is false. */
enum hw_status config_load(struct file_values *values, const char *path, bool trust);
void file_values_free(struct file_values *values);

/* Takes a setting's text into the parsed fields. */
enum hw_status config_apply(struct settings *settings, enum setting setting,
                            const char *text, const char *source);
/* Whether the text is one of `on` or `off`, for the one setting that the others depend on.
 */
bool config_trust_off(const char *text);

#endif
