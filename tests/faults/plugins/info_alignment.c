/* SPDX-License-Identifier: MIT */
/* Its buffer alignment is not a power of two. */
#define NAME "info_alignment"
#define CHANGES
#include "minimal.h"

static int32_t bad_info(void *self, int32_t index, struct hw_device_info *info)
{
    strcpy(info->name, "askew");
    info->buffer_alignment = 768;
    (void)self, (void)index;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_info = bad_info;
}
