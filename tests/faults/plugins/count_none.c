/* SPDX-License-Identifier: MIT */
/* Works, but finds no device. */
#define NAME "count_none"
#define CHANGES
#include "minimal.h"

static int32_t bad_count(void *self, int32_t *count)
{
    (void)self;
    *count = 0;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_count = bad_count;
}
