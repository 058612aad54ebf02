/* SPDX-License-Identifier: MIT */
/* defaults.h - functions for the slots that a plugin leaves empty. */
#ifndef HW_LOAD_DEFAULTS_H
#define HW_LOAD_DEFAULTS_H

#include <hw/plugin.h>

/* Fills the empty optional slots of both tables. */
void defaults_fill(struct hw_plugin *table, struct hw_plugin_ops *ops);

#endif
