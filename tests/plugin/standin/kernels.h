/* SPDX-License-Identifier: MIT */
/* kernels.h - the portable kernels, compiled as plain C, found by the names that plugins request
 * from their driver. */
#ifndef STANDIN_KERNELS_H
#define STANDIN_KERNELS_H

#include "portable.h"
#include "stream.h"

#include <stdbool.h>
#include <stddef.h>

struct kernel {
    portable_fn *run;
    unsigned pointers; /* arguments before the struct */
    size_t bytes;      /* of the struct */
};

/* "matmul_vec", "rmsnorm_f16_f32" (lowered_name() of common/lower.h); false: there is none. */
bool kernel_find(const char *name, struct kernel *kernel);

/* A launch with its arguments, for stream_submit_launch(). */
struct kernel_launch {
    portable_fn *run;
    void *pointers[PORTABLE_POINTERS];
    union portable_args args;
    int64_t groups;
};
void stream_submit_launch(struct stream *stream, const struct kernel_launch *launch);

/* Turns computing on (the default) or off. When off, launches are only queued and counted, for a
 * test in which two queues write the same memory at once. */
void kernels_compute(bool on);

#endif
