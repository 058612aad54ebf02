/* SPDX-License-Identifier: MIT */
/* bench.h - the measurements of `hw bench`; each is a file. Each appends its figures to `results`
 * (an array), prints them if the result is text, and returns the exit status. */
#ifndef HW_TOOL_BENCH_H
#define HW_TOOL_BENCH_H

#include <jansson.h>
#include <stdbool.h>

struct bench {
    const char *device;  /* as report_device() takes it; NULL: the recommended one */
    int repetitions;     /* 0: the measurement's own default */
    double seconds;      /* for each op or peak; 0: likewise */
    const char *pattern; /* of cases, as in struct verify_filter; NULL: all */
    const char *kernel;  /* likewise */
    int no_peaks;        /* 1: does not measure the peaks of the device */
    int graph;           /* 1: measures calls of one graph */
    const char **words;  /* ops or products to measure, NULL-terminated; none: all */
    json_t *results;
};

/* Whether the measurement can take these words; complains if not. */
bool dispatch_accepts(const char **words);
bool ops_accepts(const char **words);
bool products_accepts(const char **words);

int measure_dispatch(const struct bench *bench);
int measure_open(const struct bench *bench);
int measure_copies(const struct bench *bench);
int measure_overhead(const struct bench *bench);
int measure_peaks(const struct bench *bench);
int measure_speed(const struct bench *bench);
int measure_threads(const struct bench *bench);
int measure_ops(const struct bench *bench);
int measure_products(const struct bench *bench);

#endif
