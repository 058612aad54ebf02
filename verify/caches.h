/* SPDX-License-Identifier: MIT */
/* caches.h - the size of the processor's caches, so that measurements can exceed it. */
#ifndef VERIFY_CACHES_H
#define VERIFY_CACHES_H

/* Bytes in the last level of cache, summed over the groups of cores that each share one, as
 * Linux reports them below `root`, "/sys/devices/system/cpu"
 * (Documentation/ABI/testing/sysfs-devices-system-cpu). Returns 0 if Linux does not report
 * them. */
double cache_bytes(const char *root);

#endif
