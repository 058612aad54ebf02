/* SPDX-License-Identifier: MIT */
/* Devices of many kinds, for the selection: see tests/faults/selection.c. */
#define NAME  "zoo"
#define LINES "rank=20\n"
#define CHANGES
#include "plugin.h"

static int32_t count(void *self, int32_t *count)
{
    (void)self;
    *count = 4;
    return HW_OK;
}

static int32_t info(void *self, int32_t index, struct hw_device_info *info)
{
    static const char *const names[] = { "Lynx soft", "Bear integrated", "Wolf X100",
                                         "Wolf X200" };
    static const int32_t kinds[] = { HW_DEVICE_SOFTWARE, HW_DEVICE_INTEGRATED,
                                     HW_DEVICE_DISCRETE, HW_DEVICE_DISCRETE };
    (void)self;
    strcpy(info->name, names[index]);
    info->kind = kinds[index];
    if (index < 2)
        return HW_OK;
    info->pci_domain = info->pci_device = info->pci_function = 0;
    info->pci_bus = 0x3b + index;
    info->has_uuid = 1;
    info->uuid[0] = 0xab;
    info->uuid[15] = (uint8_t)index;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_count = count;
    table->device_info = info;
}
