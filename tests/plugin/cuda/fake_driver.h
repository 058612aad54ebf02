/* SPDX-License-Identifier: MIT */
/* fake_driver.h - what a test that is linked with the stand-in may ask it. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of memory of each device. */
#define FAKE_DRIVER_MEMORY (UINT64_C(4) << 30)

/* A launch, as the driver got it. */
struct fake_launch {
    const char *kernel;
    unsigned groups[3], threads[3], shared;
    bool early;    /* programmatic dependent launch */
    bool recorded; /* the stream is under capture */
    void *const *arguments;
};

/* What the stand-in's maps of tensors have: the address, the bytes of a row, and the type of the
 * elements: TENSOR_F16 .. */
enum { FAKE_MAP_ADDRESS, FAKE_MAP_ROW_BYTES, FAKE_MAP_TYPE };

/* Calls `seen` at each launch, on the thread that launches; NULL: no more. */
void fake_driver_watch(void (*seen)(const struct fake_launch *launch));

/* Contexts that are current on this thread, one above the other. */
int fake_driver_depth(void);

/* What the driver knows of memory. */
struct fake_memory {
    uint64_t start;
    size_t bytes;
    void *context;          /* NULL: that of a pool, or mapped */
    unsigned kind, managed; /* 1: the host's, 2: a device's */
    int device;
};

/* Answers with this where it is asked about an address inside; NULL: knows what was allocated here
 * alone. */
void fake_driver_know(const struct fake_memory *memory);

/* Bytes of device memory that are allocated. */
uint64_t fake_driver_used(int device);

/* How many functions were found by their version of CUDA. */
unsigned fake_driver_found(void);

#endif
