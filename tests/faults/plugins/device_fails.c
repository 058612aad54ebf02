/* SPDX-License-Identifier: MIT */
/* Two devices, the second of which cannot be opened. */
#define NAME "device_fails"
#define CHANGES
#include "minimal.h"

static int32_t two(void *self, int32_t *count)
{
    (void)self;
    *count = 2;
    return HW_OK;
}

static int32_t half(void *self, int32_t index, void **device)
{
    return index ? hw_fail(self, HW_DRIVER, "it is used by another program")
                 : plugin_device(self, index, device);
}

static void change(struct hw_plugin *table)
{
    table->device_count = two;
    table->device_open = half;
}
