/* SPDX-License-Identifier: MIT */
/* tolerance.h - the largest difference between two correct results of an op. */
#ifndef HW_RUN_TOLERANCE_H
#define HW_RUN_TOLERANCE_H

#include "run/ops.h"

#include <hw/plugin.h>

/* A bound for the errors of an op, from the largest finite magnitude of each operand. Let u(T) be
 * half the distance from 1 to the next number of dtype T. The error of an output element w is at
 * most stored * (|w| + noise) + u(f32) * (share * |w| + drift) + codes. */
struct tolerance {
    double stored; /* u of the output's dtype, or of a less precise unit that computes it */
    double noise, share, drift, codes;
    bool exact;
};

/* The operands' magnitudes, for tolerance_of(). */
struct magnitudes {
    double most[MAX_OPERANDS]; /* 0 for absent operands */
    enum hw_precision precision;
};

/* The tolerance for operand `output`, a tensor of floats. */
struct tolerance tolerance_of(uint32_t op, const void *args, uint32_t output,
                              const struct magnitudes *magnitudes);
/* The difference as a multiple of the tolerance: at most 1 is correct. */
double tolerance_use(const struct tolerance *tolerance, int32_t dtype, double got,
                     double want);

#endif
