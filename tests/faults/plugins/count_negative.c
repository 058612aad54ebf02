/* SPDX-License-Identifier: MIT */
/* Reports a negative number of devices. */
#define NAME "count_negative"
#define CHANGES
#include "minimal.h"

static int32_t bad_count(void *self, int32_t *count)
{
    (void)self;
    *count = -1;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_count = bad_count;
}
