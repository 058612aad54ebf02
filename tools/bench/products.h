/* SPDX-License-Identifier: MIT */
/* products.h - shapes of products and attention as words of the command line, and random operands.
 */
#ifndef HW_TOOL_PRODUCTS_H
#define HW_TOOL_PRODUCTS_H

#include <hw/hw.h>

#include <stdbool.h>

/* c[m,n] = a[m,k] . b[n,k]^T. */
struct product {
    int32_t type; /* enum hw_dtype */
    int64_t m, n, k;
    bool tf32; /* f32 may be rounded to TF32; product_read() leaves it false */
};

/* "bf16:4096x4096x4096": type, m, n, k, each from 1 to 2^20. */
#define PRODUCT_EXTENTS "M, N and K are 1 to 1048576"
bool product_read(const char *word, struct product *product);
double product_operations(const struct product *product);

/* Causal attention of one batch: the queries stand at the positions of the last keys. */
struct attention_shape {
    int32_t type;          /* enum hw_dtype, of q, k, v and y */
    int64_t queries, keys; /* one query, or as many as keys */
    int64_t heads, kv_heads, size;
};

/* "bf16:1x4096x32/8x128": type, queries, keys, heads of q and of k, elements of a head. */
bool attention_read(const char *word, struct attention_shape *shape);
double attention_operations(const struct attention_shape *shape);

/* A fixed sequence of numbers between -1 and 1, because multiplying zeros can be faster. It has
 * RANDOM_SPARE more than RANDOM_NUMBERS, so that operands can begin at different places. free() it;
 * NULL: out of memory. */
enum { RANDOM_NUMBERS = 1 << 20, RANDOM_SPARE = 1 << 16 };
float *random_numbers(void);
/* Fills a contiguous matrix in a buffer with them, converted to its type. */
enum hw_status fill_random(struct hw_queue *queue, const float *numbers,
                           const struct hw_tensor *matrix);

#endif
