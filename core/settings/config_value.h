/* SPDX-License-Identifier: MIT */
/* config_value.h - parses the value of each setting. */
#ifndef HW_SETTINGS_CONFIG_VALUE_H
#define HW_SETTINGS_CONFIG_VALUE_H

#include "settings.h"

#define VALUE_BYTES 4096 /* the longest value of a setting */

/* Parses the text of a setting into its field. */
enum hw_status config_apply(struct settings *settings, enum setting setting,
                            const char *text, const char *source);
/* Whether the text can be a value: it is not too long and has no control characters. */
bool config_is_line(const char *text);

#endif
