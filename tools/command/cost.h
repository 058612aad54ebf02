/* SPDX-License-Identifier: MIT */
/* cost.h - predicted and measured times, for people to read. */
#ifndef HW_TOOL_COST_H
#define HW_TOOL_COST_H

#include <hw/hw.h>

/* Seconds: the sum of all parts of a predicted cost. */
double cost_total(const struct hw_cost *cost);

/* "12.5 us", "3.10 ms", "2.00 s" */
struct time_text {
    char text[24];
};
struct time_text time_text(double seconds);

#endif
