/* SPDX-License-Identifier: MIT */
/* config_value.h - what the value of each setting may be. */
#ifndef HW_OPEN_CONFIG_VALUE_H
#define HW_OPEN_CONFIG_VALUE_H

#include "settings.h"

#define VALUE_BYTES 4096 /* the longest value of a setting */

/* Takes a setting's text into the parsed fields. */
enum hw_status config_apply(struct settings *settings, enum setting setting,
                            const char *text, const char *source);
/* Whether the text can be a value: not too long, no control characters. */
bool config_is_line(const char *text);
/* Whether the text is one of `on` or `off`, for the one setting that the others depend on.
 */
bool config_trust_off(const char *text);

#endif
