/* SPDX-License-Identifier: MIT */
/* A device kind that this host does not know, and a name of odd bytes: it is used. */
#define NAME "info_kind"
#define CHANGES
#include "minimal.h"

static int32_t bad_info(void *self, int32_t index, struct hw_device_info *info)
{
    strcpy(info->name, "\"odd\" \\ \001\033[31m \xff\xc0\x80 name");
    info->kind = 99;
    info->pci_domain = INT32_MAX;
    info->pci_bus = info->pci_device = info->pci_function = INT32_MAX;
    (void)self, (void)index;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_info = bad_info;
}
