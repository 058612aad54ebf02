/* SPDX-License-Identifier: MIT */
/* match.h - the stage match: is there hardware that makes the plugin worthwhile? */
#ifndef HW_LOAD_MATCH_H
#define HW_LOAD_MATCH_H

#include "open/candidate.h"

#include <stddef.h>

struct pci_device {
    char slot[16];       /* "0000:17:00.0" */
    uint32_t class_code; /* three bytes: 0x030200 is a 3D controller */
    uint16_t vendor, device;
    char driver[32]; /* the kernel's driver; "" if none is bound */
};

/* The hardware that the system lists, read without any vendor's library and without waking a
 * device. */
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

/* The hardware that the system lists. The first call reads it. NULL if memory runs out. */
const struct inventory *inventory_of(struct catalog *found);

/* Stops a candidate if no rule `match` of its manifest holds, unless the settings name it. */
bool match(struct hw_context *context, struct candidate *candidate);

#endif
