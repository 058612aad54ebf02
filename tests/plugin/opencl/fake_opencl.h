/* SPDX-License-Identifier: MIT */
/* fake_opencl.h - the stand-in's functions for tests that are linked with it. */
#ifndef FAKE_OPENCL_H
#define FAKE_OPENCL_H

#include <stdint.h>

/* Bytes of memory, which its devices share. */
#define FAKE_OPENCL_MEMORY (UINT64_C(4) << 30)

/* Bytes of memory that are allocated. */
uint64_t fake_opencl_used(void);

#endif
