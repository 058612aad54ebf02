/* SPDX-License-Identifier: MIT */
/* config.h - reads the settings: options, environment, configuration file, defaults. */
#ifndef HW_SETTINGS_CONFIG_H
#define HW_SETTINGS_CONFIG_H

#include "settings.h"

#include <hw/hw.h>

extern const char *const setting_fields[SETTING_COUNT];
extern const char *const setting_variables[SETTING_COUNT];
/* The setting that has this name in one of these lists; SETTING_COUNT if none has. */
enum setting setting_named(const char *const list[SETTING_COUNT], const char *name);

/* Reads all sources, once. `options` has all fields. The message of HW_INVALID has the source, the
 * value and the accepted values. With `anyway`, the default replaces an invalid value, and the
 * other settings are read nevertheless. */
enum hw_status config_read(struct settings *settings, const struct hw_options *options,
                           bool anyway);
void config_free(struct settings *settings);

/* Adds a warning to the report. Takes ownership of `text`, which may be NULL. */
void settings_warn(struct settings *settings, char *text);

#endif
