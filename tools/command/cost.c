/* SPDX-License-Identifier: MIT */
/* cost.c - see cost.h. */
#include "cost.h"

#include <stdio.h>

double cost_total(const struct hw_cost *cost)
{
    return cost->upload + cost->launch + cost->compute + cost->download;
}

struct time_text time_text(double seconds)
{
    struct time_text t;
    if (seconds < 999.5e-6)
        snprintf(t.text, sizeof t.text, "%.*f us", seconds < 99.95e-6, seconds * 1e6);
    else if (seconds < 0.9995)
        snprintf(t.text, sizeof t.text, "%.*f ms", seconds < 99.95e-3 ? 2 : 0,
                 seconds * 1e3);
    else
        snprintf(t.text, sizeof t.text, "%.2f s", seconds);
    return t;
}
