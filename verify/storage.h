/* SPDX-License-Identifier: MIT */
/* storage.h - numbers in memory, read and written according to the definitions of their
 * formats. For the oracle; no code is shared with any kernel. */
#ifndef VERIFY_STORAGE_H
#define VERIFY_STORAGE_H

#include <hw/types.h>

#include <stdbool.h>

/* The bytes of `elements` packed elements, which must be a whole number of blocks. */
size_t storage_bytes(int32_t dtype, int64_t elements);

/* Element `i` of packed elements. A double represents every i8, i32, f16, bf16, f32 and block
 * element exactly, and an i64 up to 2^53. */
double storage_read(int32_t dtype, const unsigned char *packed, int64_t i);
/* The first `count` elements, a whole number of blocks. */
void storage_read_all(int32_t dtype, const unsigned char *packed, double *values,
                      int64_t count);

/* Writes `count` packed elements: rounded to nearest, ties to even, overflow to infinity; integers
 * are cast. Block types are quantised in float steps, exactly like GGML's reference. */
void storage_write(int32_t dtype, unsigned char *packed, const double *values,
                   int64_t count);

/* The value read back after writing `value`. `dtype` must be a float type. */
double storage_round(int32_t dtype, double value);

/* Half the distance from 1 to the next number of a float type: the largest relative error
 * of rounding. */
double storage_unit(int32_t dtype);
/* The largest finite number of a float type. */
double storage_largest(int32_t dtype);
/* An absolute error up to this is ignored: half the smallest subnormal f16; for f32 and
 * bf16, a number below which flushing to zero is allowed. */
double storage_floor(int32_t dtype);

bool storage_is_float(int32_t dtype);
bool storage_is_block(int32_t dtype);
/* The dtype with this name ("f16"), or HW_NONE. */
int32_t storage_named(const char *name);
const char *storage_name(int32_t dtype);

/* Copies between a strided tensor, whose first element is at `first`, and packed elements.
 */
void storage_gather(const struct hw_tensor *tensor, const unsigned char *first,
                    unsigned char *packed);
void storage_scatter(const struct hw_tensor *tensor, unsigned char *first,
                     const unsigned char *packed);
/* Sets the bytes of the tensor's elements to `value`, but no bytes between them. */
void storage_set(const struct hw_tensor *tensor, unsigned char *first, int value);
/* The number of elements. */
int64_t storage_count(const struct hw_tensor *tensor);

#endif
