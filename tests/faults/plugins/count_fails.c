/* SPDX-License-Identifier: MIT */
/* Fails to list its devices. */
#define NAME "count_fails"
#define CHANGES
#include "minimal.h"

static int32_t bad_count(void *self, int32_t *count)
{
    (void)self, (void)count;
    return HW_LOST;
}

static void change(struct hw_plugin *table)
{
    table->device_count = bad_count;
}
