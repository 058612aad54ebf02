/* SPDX-License-Identifier: MIT */
/* right.c - the unchanged reference: it must pass every test. */
#include "reference.h"

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    return reference_fill(table, &reference_ops);
}
HW_PLUGIN("right", "vendor=tests\n", fill)
