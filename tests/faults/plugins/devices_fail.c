/* SPDX-License-Identifier: MIT */
/* A device that cannot be opened. */
#define NAME "devices_fail"
#define CHANGES
#include "minimal.h"

static int32_t none(void *self, int32_t index, void **device)
{
    (void)index, (void)device;
    return hw_fail(self, HW_DRIVER, "it is used by another program");
}

static void change(struct hw_plugin *table)
{
    table->device_open = none;
}
