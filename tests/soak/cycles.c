/* SPDX-License-Identifier: MIT */
/* cycles.c - opens and closes contexts, one after the other. */
#include "soak.h"

#include <stdio.h>

void soak_cycles(long count)
{
    put_good("plugins");
    for (long i = 0; i < 10 + count / 10; i++) /* until nothing is new */
        open_once(below("plugins"));
    const struct host before = host_now();
    const double start = seconds();
    for (long i = 0; i < count; i++)
        open_once(below("plugins"));
    const struct host after = host_now();
    check_host(&before, &after);
    printf(
        "cycles: %ld, %.1f us each; descriptors %d, threads %d, resident %ld KiB, then %ld\n",
        count, 1e6 * (seconds() - start) / (double)count, after.descriptors, after.threads,
        before.resident, after.resident);
}
