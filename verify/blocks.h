/* SPDX-License-Identifier: MIT */
/* blocks.h - block types, read and written according to the descriptions of their formats and
 * GGML's reference. For storage.c; no code is shared with any kernel. */
#ifndef VERIFY_BLOCKS_H
#define VERIFY_BLOCKS_H

#include <hw/types.h>

/* Element `i` of a block of `dtype`, as the float that GGML computes. */
float block_read(int32_t dtype, const unsigned char *block, int i);
/* Reads all elements, which is faster than one by one. */
void block_read_all(int32_t dtype, const unsigned char *block, double *values);

/* Quantises the elements of one block. */
void block_write(int32_t dtype, unsigned char *block, const float *x);

#endif
