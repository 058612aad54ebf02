/* SPDX-License-Identifier: MIT */
/* Fails to describe its device. */
#define NAME "info_fails"
#define CHANGES
#include "minimal.h"

static int32_t bad_info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self, (void)index, (void)info;
    return HW_DRIVER;
}

static void change(struct hw_plugin *table)
{
    table->device_info = bad_info;
}
