/* SPDX-License-Identifier: MIT */
/* The architecture string of its device is not terminated. */
#define NAME "info_arch_endless"
#define CHANGES
#include "minimal.h"

static int32_t bad_info(void *self, int32_t index, struct hw_device_info *info)
{
    strcpy(info->name, "endless");
    memset(info->arch, 'a', sizeof info->arch);
    (void)self, (void)index;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_info = bad_info;
}
