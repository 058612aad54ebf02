/* SPDX-License-Identifier: MIT */
/* onednn.h - products of f32 by oneDNN's primitive, with weights packed in oneDNN's own layout, for
 * rival_cpu.c. It needs version 2: other versions have other signatures. */
#ifndef HW_TOOL_ONEDNN_H
#define HW_TOOL_ONEDNN_H

#include "bench/products.h"

struct onednn;

/* `library`: of dlopen(). Returns NULL if it is not of version 2, or out of memory. */
struct onednn *onednn_product_open(void *library);
/* Accepts NULL. */
void onednn_product_close(struct onednn *onednn);
/* Makes the primitive of a product and frees an earlier one. Returns NULL, or the reason of a
 * failure. */
const char *onednn_product_prepare(struct onednn *onednn, const struct product *product);
/* Packs weights when they are first used; remembers a few. */
const char *onednn_product_multiply(struct onednn *onednn, const float *a, const float *b,
                                    float *c);

#endif
