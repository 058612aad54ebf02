/* SPDX-License-Identifier: MIT */
/* inventory.h - the hardware that the system lists, read without any vendor's library and
 * without waking a device. */
#ifndef HW_OPEN_INVENTORY_H
#define HW_OPEN_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pci_device {
    char slot[16];       /* "0000:17:00.0" */
    uint32_t class_code; /* three bytes: 0x030200 is a 3D controller */
    uint16_t vendor, device;
    char driver[32]; /* the kernel's driver; "" if none is bound */
};

struct inventory {
    bool pci_known; /* the system lists its PCI devices */
    struct pci_device *pci;
    size_t pci_count;
};

/* Reads the devices that the system lists below `root`, which is "" except in tests. Leaves out
 * devices that cannot be read. False if memory runs out. */
bool inventory_read(struct inventory *inventory, const char *root);
void inventory_free(struct inventory *inventory);

/* Whether a rule `match` of a manifest holds; see hw/plugin.h. A rule that cannot be decided
 * holds. */
bool inventory_holds(const struct inventory *inventory, const char *root, const char *rule);

#endif
