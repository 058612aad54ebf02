/* SPDX-License-Identifier: MIT */
/* caches.h - the sizes of the processor's caches, so that measurements can fill or exceed them. */
#ifndef VERIFY_CACHES_H
#define VERIFY_CACHES_H

#include <stdbool.h>
#include <stdint.h>

/* The size of the last level of cache in bytes, summed over the groups of cores that share one, as
 * Linux reports it below `root`, "/sys/devices/system/cpu"
 * (Documentation/ABI/testing/sysfs-devices-system-cpu). Returns 0 if Linux does not report it. */
double cache_bytes(const char *root);

/* The data cache of the first core at a level, 1 to 4, and the number of cores that share it.
 * Returns false if Linux reports none. */
struct data_cache {
    double bytes;
    uint32_t cores;
};
bool cache_of_level(const char *root, int level, struct data_cache *cache);

#endif
