/* SPDX-License-Identifier: MIT */
/* Uses a function of libm without being linked with it. Programs that have loaded libm hide the
 * mistake. */
#define NAME "libm_missing"
#define CHANGES
#include "minimal.h"

#include <math.h>

static void change(struct hw_plugin *table)
{
    table->version = expf((float)table->size) > 1.0f ? "1" : "2";
}
