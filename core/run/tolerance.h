/* SPDX-License-Identifier: MIT */
/* tolerance.h - by how much two right results of an op may differ. */
#ifndef HW_RUN_TOLERANCE_H
#define HW_RUN_TOLERANCE_H

#include "run/ops.h"

#include <hw/plugin.h>

/* What the largest finite magnitude of each operand says about the errors of an op. Let u(T) be
 * half the distance from 1 to the next number of dtype T. An output element w may then be off by
 * stored * (|w| + noise) + u(f32) * (share * |w| + drift) + codes. */
struct tolerance {
    double stored; /* u of the output's dtype, or of what may compute it */
    double noise, share, drift, codes;
    bool exact;
};

/* The operands' magnitudes, for tolerance_of(). */
struct magnitudes {
    double most[MAX_OPERANDS]; /* 0 for absent operands */
    enum hw_precision precision;
};

/* For the results of operand `output`, a tensor of floats. */
struct tolerance tolerance_of(uint32_t op, const void *args, uint32_t output,
                              const struct magnitudes *magnitudes);
/* How far above what is allowed the difference is, as a multiple: 1 and less is right. */
double tolerance_use(const struct tolerance *tolerance, int32_t dtype, double got,
                     double want);

#endif
