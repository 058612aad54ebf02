/* SPDX-License-Identifier: MIT */
/* The wolves of zoo.c once more, through another vendor's API. */
#define NAME  "view"
#define LINES "rank=60\n"
#define CHANGES
#include "plugin.h"

static int32_t count(void *self, int32_t *count)
{
    (void)self;
    *count = 2;
    return HW_OK;
}

static int32_t info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self;
    strcpy(info->name, index ? "Wolf 2 by view" : "Wolf 1 by view");
    info->kind = HW_DEVICE_DISCRETE;
    if (index) { /* the one is known by its UUID, the other by its address */
        info->has_uuid = 1;
        info->uuid[0] = 0xab;
        info->uuid[15] = 3;
    } else {
        info->pci_domain = info->pci_device = info->pci_function = 0;
        info->pci_bus = 0x3d;
    }
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_count = count;
    table->device_info = info;
}
