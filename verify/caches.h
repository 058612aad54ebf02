/* SPDX-License-Identifier: MIT */
/* caches.h - the size of the processor's caches, so that measurements can fill or exceed them. */
#ifndef VERIFY_CACHES_H
#define VERIFY_CACHES_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes in the last level of cache, summed over the groups of cores that each share one, as
 * Linux reports them below `root`, "/sys/devices/system/cpu"
 * (Documentation/ABI/testing/sysfs-devices-system-cpu). Returns 0 if Linux does not report
 * them. */
double cache_bytes(const char *root);

/* The cache for data that the first core has at a level, 1 to 4, and how many cores share it.
 * Returns false if Linux reports none. */
struct data_cache {
    double bytes;
    uint32_t cores;
};
bool cache_of_level(const char *root, int level, struct data_cache *cache);

#endif
