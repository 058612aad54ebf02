/* SPDX-License-Identifier: MIT */
/* config.h - reads the settings: options, environment, configuration file, defaults. */
#ifndef HW_OPEN_CONFIG_H
#define HW_OPEN_CONFIG_H

#include "settings.h"

#include <hw/hw.h>

extern const char *const setting_fields[SETTING_COUNT];
extern const char *const setting_variables[SETTING_COUNT];

/* Reads every source, once. HW_INVALID names the source, the value and what would be right; with
 * `anyway` a value in error gives way to the default, and the rest is read all the same. */
enum hw_status config_read(struct settings *settings, const struct hw_options *options,
                           bool anyway);
void config_free(struct settings *settings);

/* A warning for the report; takes `text`, which may be NULL. */
void settings_warn(struct settings *settings, char *text);

#endif
