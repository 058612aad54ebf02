/* SPDX-License-Identifier: MIT */
/* fake_driver.h - the stand-in's functions for tests that are linked with it. */
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

/* Contents of the stand-in's tensor maps: the address, the bytes of a row, and the element type,
 * TENSOR_F16 .. */
enum { FAKE_MAP_ADDRESS, FAKE_MAP_ROW_BYTES, FAKE_MAP_TYPE };

/* Calls `seen` at each launch, on the launching thread; NULL: no longer. */
void fake_driver_watch(void (*seen)(const struct fake_launch *launch));

/* The number of contexts on this thread's stack. */
int fake_driver_depth(void);

/* The driver's answer about an address. */
struct fake_memory {
    uint64_t start;
    size_t bytes;
    void *context;          /* NULL: pool memory, or mapped */
    unsigned kind, managed; /* 1: the host's, 2: a device's */
    int device;
};

/* Sets the answer for addresses inside this memory; NULL: only allocated memory is known. */
void fake_driver_know(const struct fake_memory *memory);

/* Bytes of device memory that are allocated. */
uint64_t fake_driver_used(int device);

/* The number of functions found by name and CUDA version. */
unsigned fake_driver_found(void);

#endif
