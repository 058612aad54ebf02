/* SPDX-License-Identifier: MIT */
/* driver.h - structs that the functions of cuda.def take, for C and C++. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>
#include <stdint.h>

/* Rows to copy, in the driver's form (CUDA_MEMCPY2D). */
struct copy_rows {
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    uint64_t from;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind;
    void *to_host;
    uint64_t to;
    void *to_array;
    size_t to_pitch;
    size_t bytes, rows;
};

/* A launch with attributes (CUlaunchConfig, CUlaunchAttribute). */
struct launch_attribute {
    int id;
    int32_t reserved;
    int value;
    char rest[60];
};

struct launch_config {
    unsigned groups[3], threads[3];
    unsigned shared; /* bytes */
    void *stream;
    const struct launch_attribute *attributes;
    unsigned attribute_count;
};

/* A tensor's description for the copy engine of compute capability 9.0 (CUtensorMap). cuda.h of
 * CUDA 13 aligns it to 128 bytes; the driver accepts the 64 of CUDA 12, which the kernels use. */
struct tensor_map {
    uint64_t opaque[16] __attribute__((aligned(64)));
};

#endif
