/* SPDX-License-Identifier: MIT */
/* operands.h - operands for the tests of rows: memory, filled with noise of any storage type. */
#ifndef OPERANDS_H
#define OPERANDS_H

#include "harness.h"

enum { BYTES = 1 << 20 };

/* Converts operands from f32 and back, on a queue of its own, because the tested row may not be
 * able to convert. */
static struct harness mover;

/* Memory for one operand. */
struct operand {
    _Alignas(64) unsigned char bytes[BYTES];
};

static float plain[BYTES / 4];

static inline int64_t count(const struct hw_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->extent[i];
    return n;
}

/* The same noise for the same seed. */
static inline struct hw_tensor fill(struct operand *o, struct hw_tensor t, uint32_t seed)
{
    const int64_t extents[] = { t.extent[0], t.extent[1], t.extent[2], t.extent[3], 0 };
    t.data = o->bytes;
    for (int64_t i = 0; i < count(&t); i++)
        plain[i] = harness_noise(&seed);
    harness_convert(&mover, t, harness_tensor(plain, HW_F32, extents));
    return t;
}

#endif
