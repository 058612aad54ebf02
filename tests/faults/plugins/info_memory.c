/* SPDX-License-Identifier: MIT */
/* Reports more free memory than memory. */
#define NAME "info_memory"
#define CHANGES
#include "minimal.h"

static int32_t bad_info(void *self, int32_t index, struct hw_device_info *info)
{
    strcpy(info->name, "lies");
    info->memory_total = 1;
    info->memory_free = 2;
    (void)self, (void)index;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_info = bad_info;
}
