/* SPDX-License-Identifier: MIT */
/* bench.h - the measurements that `hw bench` has; each is a file. Each appends what it found to
 * `results` (an array) and, unless JSON is wanted, prints it. They answer the exit status. */
#ifndef HW_TOOL_BENCH_H
#define HW_TOOL_BENCH_H

#include <jansson.h>

struct bench {
    const char *device;  /* as hw_device_find() takes it; NULL: the recommended one */
    int repetitions;     /* 0: as many as the measurement finds right */
    double seconds;      /* for each op; 0: as verify/ finds right */
    const char *pattern; /* of cases, as struct verify_filter; NULL: all */
    const char *kernel;  /* likewise */
    int no_peaks;        /* 1: does not measure what the device can do at best */
    const char **words;  /* what is left to choose, NULL-terminated */
    json_t *results;
};

int measure_dispatch(const struct bench *bench);
int measure_open(const struct bench *bench);
int measure_copies(const struct bench *bench);
int measure_ops(const struct bench *bench);

#endif
