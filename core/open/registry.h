/* SPDX-License-Identifier: MIT */
/* registry.h - the list of devices, and their facts. */
#ifndef HW_OPEN_REGISTRY_H
#define HW_OPEN_REGISTRY_H

#include "core.h"

struct verdict;

#define MAX_DEVICES 256 /* of one plugin */

/* Asks the plugin for the facts of a device and checks them. Describes the error in `why`. */
enum facts { FACTS_GOOD, FACTS_FAILED, FACTS_INVALID };
enum facts device_facts(struct plugin *plugin, int32_t index, struct hw_device_info *info,
                        char *why, size_t size);
/* The first error in facts of any origin, or NULL; what is left to do with those without. */
const char *device_fault(const struct hw_device_info *info);
void device_complete(const struct plugin *plugin, struct hw_device_info *info);
/* The first fact that tells two devices apart, or that was relied on already; or NULL. The
 * memory, and what drivers derive from it, may vary. */
const char *different_fact(const struct hw_device_info *a, const struct hw_device_info *b);
/* Adds a device to those of the plugin. */
enum hw_status registry_add(struct plugin *plugin, int32_t index,
                            const struct hw_device_info *info);
/* Whether the plugin, which is being bound, has the devices of the verdict that they were listed
 * from; else says why. */
bool registry_confirm(const struct plugin *plugin, const struct hw_device_info *infos,
                      uint32_t count, char *why, size_t size);
/* Whether a verdict has the same devices as that which those of the plugin were listed from, and
 * the same ops are withdrawn. */
bool registry_matches(const struct plugin *plugin, const struct verdict *verdict);
/* The fact in which a device of a later verdict is not the one that was listed under its index; or
 * NULL: it is. */
const char *registry_differs(const struct plugin *plugin, const struct verdict *verdict,
                             uint32_t index);
/* Closes the devices of a plugin, and forgets them. */
void registry_drop(struct plugin *plugin);
/* "0000:3b:00.0" and "xxxxxxxx-xxxx-..."; "" if the device has none. */
#define PCI_SIZE  48
#define UUID_SIZE 37
void device_pci(const struct hw_device_info *info, char text[PCI_SIZE]);
void device_uuid(const struct hw_device_info *info, char text[UUID_SIZE]);
const char *device_kind_name(int32_t kind);

#endif
