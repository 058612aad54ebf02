/* SPDX-License-Identifier: MIT */
/* The name of its device is not terminated. */
#define NAME "info_endless"
#define CHANGES
#include "minimal.h"

static int32_t bad_info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self, (void)index;
    memset(info->name, 'a', sizeof info->name);
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_info = bad_info;
}
