/* SPDX-License-Identifier: MIT */
/* measure.h - samples, the clock of the core, and a header that describes the machine. */
#ifndef HW_TOOL_MEASURE_H
#define HW_TOOL_MEASURE_H

#include "util/clock.h"

#include <jansson.h>
#include <stddef.h>

/* The summary of many samples. */
struct spread {
    double min, p10, median, p90;
};
/* Sorts `samples`; `count` is at least 1. */
struct spread spread_of(double *samples, size_t count);
/* {"min": ..., "p10": ..., "median": ..., "p90": ...} */
json_t *spread_json(struct spread spread);

/* The current clock of the core in GHz, measured with a chain of dependent additions, each
 * of which takes one cycle; 0 on machines where this is not known. */
double core_ghz(void);

/* The first members of every result in JSON: schema, command, date, version, machine. */
json_t *measure_header(int argc, const char **argv);
/* Prints the same as text. */
void measure_print_header(void);
/* Ends a measurement: unless it failed, prints the results, an array, as CSV, or in `header` as
 * JSON, if one of these is asked for. Releases both. Returns `status`. */
int measure_end(json_t *header, json_t *results, int status);

#endif
