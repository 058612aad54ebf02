/* SPDX-License-Identifier: MIT */
/* caches.h - how much the processor's caches hold, so that a measurement can leave them. */
#ifndef VERIFY_CACHES_H
#define VERIFY_CACHES_H

/* Bytes of the last level of cache, all its parts together (one for each group of cores that
 * share one), as Linux tells below `root`, "/sys/devices/system/cpu"
 * (Documentation/ABI/testing/sysfs-devices-system-cpu). 0: it does not tell. */
double cache_bytes(const char *root);

#endif
