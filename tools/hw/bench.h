/* SPDX-License-Identifier: MIT */
/* bench.h - the measurements that `hw bench` has; each is a file. Each appends what it found to
 * `results` (an array) and, unless JSON is wanted, prints it. They answer the exit status. */
#ifndef HW_TOOL_BENCH_H
#define HW_TOOL_BENCH_H

#include <jansson.h>

struct bench {
    const char *device;  /* as hw_device_find() takes it; NULL: the recommended one */
    int repetitions;     /* 0: as many as the measurement finds right */
    const char **words;  /* what is left to choose, NULL-terminated */
    json_t *results;
};

int bench_dispatch(const struct bench *bench);
int bench_open(const struct bench *bench);
int bench_copy(const struct bench *bench);
int bench_ops(const struct bench *bench);

#endif
