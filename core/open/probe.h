/* SPDX-License-Identifier: MIT */
/* probe.h - starts a plugin and lists its devices. */
#ifndef HW_OPEN_PROBE_H
#define HW_OPEN_PROBE_H

#include "open/candidate.h"

/* Starts candidate->plugin, which is loaded already. */
bool probe(struct hw_context *context, struct candidate *candidate);
/* Lists the devices in the plugin's verdict. Does not run the plugin. */
bool list_known(struct plugin *plugin);

#endif
