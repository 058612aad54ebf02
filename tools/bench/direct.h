/* SPDX-License-Identifier: MIT */
/* direct.h - a plugin without the library: entered through its public ABI, as any host would, with
 * a device and a queue of its own. */
#ifndef HW_TOOL_DIRECT_H
#define HW_TOOL_DIRECT_H

#include <hw/plugin.h>

#include <stdbool.h>

struct direct {
    struct hw_host host;
    struct hw_plugin table;
    void *library, *self, *device, *queue;
    char why[512]; /* the reason of a failure */
};

/* Loads the file and does nothing else. On failure, returns false and sets `why`. */
bool direct_load(struct direct *direct, const char *path);
/* Starts the loaded plugin, opens its device `index` and a queue. `threads` is as HW_THREADS; with
 * 0, the plugin decides. Fails like direct_load(). */
bool direct_start(struct direct *direct, int32_t index, uint32_t threads);
/* Call it after either function, even if that failed. */
void direct_close(struct direct *direct);

#endif
