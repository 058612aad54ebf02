/* SPDX-License-Identifier: MIT */
/* first_use.h - binds a plugin when one of its devices is first used. */
#ifndef HW_OPEN_FIRST_USE_H
#define HW_OPEN_FIRST_USE_H

#include "core.h"

/* Loads and starts the plugin unless that has been done. Returns HW_NO_DEVICE, with the reason, if
 * the plugin can never be used. Returns HW_NO_MEMORY if memory or descriptors ran out: a later call
 * may succeed. Called with no lock held. */
enum hw_status plugin_bind(struct plugin *plugin);

#endif
