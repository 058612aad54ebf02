/* SPDX-License-Identifier: MIT */
/* onednn.h - products of f32 by oneDNN's primitive, with weights in a form of its own, for
 * rival_cpu.c. Of version 2: in others, functions have other arguments. */
#ifndef HW_TOOL_ONEDNN_H
#define HW_TOOL_ONEDNN_H

#include "bench/products.h"

struct onednn;

/* `library`: of dlopen(). Returns NULL if it is not of version 2, or out of memory. */
struct onednn *onednn_product_open(void *library);
/* Accepts NULL. */
void onednn_product_close(struct onednn *onednn);
/* Makes the primitive of a product, and forgets that of an earlier one. Returns NULL, or what went
 * wrong. */
const char *onednn_product_prepare(struct onednn *onednn, const struct product *product);
/* Weights are packed when they come for the first time; there may be a few. */
const char *onednn_product_multiply(struct onednn *onednn, const float *a, const float *b,
                                    float *c);

#endif
