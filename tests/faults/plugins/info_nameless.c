/* SPDX-License-Identifier: MIT */
/* Its device has no name. */
#define NAME "info_nameless"
#define CHANGES
#include "minimal.h"

static int32_t bad_info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self, (void)index;
    info->name[0] = 0;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_info = bad_info;
}
