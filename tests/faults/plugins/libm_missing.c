/* SPDX-License-Identifier: MIT */
/* It uses a function of libm and is not linked with it: a program that has libm does not notice. */
#define NAME "libm_missing"
#define CHANGES
#include "minimal.h"

#include <math.h>

static void change(struct hw_plugin *table)
{
    table->version = expf((float)table->size) > 1.0f ? "1" : "2";
}
