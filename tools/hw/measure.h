/* SPDX-License-Identifier: MIT */
/* measure.h - clocks, samples, and what a reader of figures needs to know about the machine. */
#ifndef HW_TOOL_MEASURE_H
#define HW_TOOL_MEASURE_H

#include <jansson.h>
#include <stddef.h>

/* Nanoseconds on a clock that never goes back. */
double now_ns(void);

/* What is said of many measurements of one thing. */
struct spread {
    double min, p10, median, p90;
};
/* Sorts `samples`; `count` is at least 1. */
struct spread spread_of(double *samples, size_t count);
/* {"min": ..., "p10": ..., "median": ..., "p90": ...} */
json_t *spread_json(struct spread spread);

/* The clock that the core runs at now, in GHz, by timing a chain of additions, each of which
 * takes one cycle and needs the one before; 0 where this is not known to hold. */
double core_ghz(void);

/* The beginning of every result in JSON: schema, command, date, version, machine. */
json_t *measure_header(int argc, const char **argv);
/* The same for people, in two lines. */
void measure_print_header(void);

#endif
