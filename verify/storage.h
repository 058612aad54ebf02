/* SPDX-License-Identifier: MIT */
/* storage.h - how numbers lie in memory, read and written from the formats' definitions,
 * for the oracle's use: nothing here is shared with any kernel. */
#ifndef VERIFY_STORAGE_H
#define VERIFY_STORAGE_H

#include <hw/types.h>

#include <stdbool.h>

/* Bytes that `elements` of `dtype` take when packed; `elements` is a whole number of
 * blocks. */
size_t storage_bytes(int32_t dtype, int64_t elements);

/* Element `i` of packed elements. Every i8, i32, f16, bf16 and f32, and every block
 * element, is a double; an i64 is one up to 2^53. */
double storage_read(int32_t dtype, const unsigned char *packed, int64_t i);

/* Writes `count` packed elements, each rounded to nearest, ties to even, overflow to
 * infinity; integers are cast. q8_0 and q4_0 are quantised in float steps, exactly as
 * GGML's reference does. The K types are not known here yet: reading gives NaN. */
void storage_write(int32_t dtype, unsigned char *packed, const double *values,
                   int64_t count);

/* `value` as it comes back from storage. `dtype` is a float. */
double storage_round(int32_t dtype, double value);

/* Half the distance from 1 to the next number of a float type: what rounding can cost. */
double storage_unit(int32_t dtype);
/* The largest finite number of a float type. */
double storage_largest(int32_t dtype);
/* What an absolute error may be without being one: half the smallest subnormal f16; for f32
 * and bf16 a number so small that flushing what is below it to zero is allowed. */
double storage_floor(int32_t dtype);

bool storage_is_float(int32_t dtype);
bool storage_is_block(int32_t dtype);
/* The dtype called `name` ("f16"), or HW_NONE. */
int32_t storage_named(const char *name);
const char *storage_name(int32_t dtype);

/* Between a strided tensor whose first element is at `first`, and packed elements. */
void storage_gather(const struct hw_tensor *tensor, const unsigned char *first,
                    unsigned char *packed);
void storage_scatter(const struct hw_tensor *tensor, unsigned char *first,
                     const unsigned char *packed);
/* Sets the bytes of `tensor`'s elements to `value`, and nothing between them. */
void storage_set(const struct hw_tensor *tensor, unsigned char *first, int value);
/* Elements of `tensor`. */
int64_t storage_count(const struct hw_tensor *tensor);

#endif
