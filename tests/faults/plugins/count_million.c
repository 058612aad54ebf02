/* SPDX-License-Identifier: MIT */
/* Reports a million devices. */
#define NAME "count_million"
#define CHANGES
#include "minimal.h"

static int32_t bad_count(void *self, int32_t *count)
{
    (void)self;
    *count = 1000000;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_count = bad_count;
}
