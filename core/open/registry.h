/* SPDX-License-Identifier: MIT */
/* registry.h - the list of devices, and their facts. */
#ifndef HW_OPEN_REGISTRY_H
#define HW_OPEN_REGISTRY_H

#include "core.h"

#define MAX_DEVICES 256 /* per plugin */

/* Asks the plugin for the facts of a device and checks them. Describes the error in `why`. */
enum facts { FACTS_GOOD, FACTS_FAILED, FACTS_INVALID };
enum facts device_facts(struct plugin *plugin, int32_t index, struct hw_device_info *info,
                        char *why, size_t size);
/* device_fault() returns the first error in facts of any origin, or NULL. device_complete() fills
 * in facts without errors. */
const char *device_fault(const struct hw_device_info *info);
void device_complete(const struct plugin *plugin, struct hw_device_info *info);
/* The first fact that identifies a device, or that is in use already, and differs; or NULL. The
 * amount of memory, and facts that drivers derive from it, may vary. */
const char *different_fact(const struct hw_device_info *a, const struct hw_device_info *b);
/* Adds a device to the plugin. */
enum hw_status registry_add(struct plugin *plugin, int32_t index,
                            const struct hw_device_info *info);
/* The fact in which a device differs from the device that the plugin's first verdict has under this
 * index; or NULL. */
const char *registry_differs(const struct plugin *plugin, uint32_t index,
                             const struct hw_device_info *info);
/* Closes and frees the devices of a plugin. */
void registry_drop(struct plugin *plugin);
/* "0000:3b:00.0" and "xxxxxxxx-xxxx-..."; "" if the device has none. */
#define PCI_SIZE  48
#define UUID_SIZE 37
void device_pci(const struct hw_device_info *info, char text[PCI_SIZE]);
void device_uuid(const struct hw_device_info *info, char text[UUID_SIZE]);
const char *device_kind_name(int32_t kind);

#endif
