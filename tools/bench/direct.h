/* SPDX-License-Identifier: MIT */
/* direct.h - a plugin without the library: entered through its public ABI, as by any host, with a
 * device and a queue of its own. */
#ifndef HW_TOOL_DIRECT_H
#define HW_TOOL_DIRECT_H

#include <hw/plugin.h>

#include <stdbool.h>

struct direct {
    struct hw_host host;
    struct hw_plugin table;
    void *library, *self, *device, *queue;
    char why[512]; /* what went wrong, if something did */
};

/* Loads the file and does nothing else. False, with the reason, if that fails. */
bool direct_load(struct direct *direct, const char *path);
/* Starts what was loaded: the plugin, its device `index`, a queue. `threads` as HW_THREADS; 0:
 * the plugin decides. Fails like direct_load(). */
bool direct_start(struct direct *direct, int32_t index, uint32_t threads);
/* After either, also if it has failed. */
void direct_close(struct direct *direct);

#endif
