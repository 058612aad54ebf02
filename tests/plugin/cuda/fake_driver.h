/* SPDX-License-Identifier: MIT */
/* fake_driver.h - what a test that is linked with the stand-in may ask it. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <stdint.h>

/* Bytes of memory of each device. */
#define FAKE_DRIVER_MEMORY (UINT64_C(4) << 30)

/* Contexts that are current on this thread, one above the other. */
int fake_driver_depth(void);

/* Bytes of device memory that are allocated. */
uint64_t fake_driver_used(int device);

#endif
