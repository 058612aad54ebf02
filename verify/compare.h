/* SPDX-License-Identifier: MIT */
/* compare.h - is what a device made what it should have made? */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include "problem.h"

/* What two runs of one problem left in memory, as whole arenas; before the first, outputs
 * were filled with the one poison, before the second with the other. */
struct outcome {
    const unsigned char *device[2], *host[2];
};

enum { FIRST_POISON = 0xa5, SECOND_POISON = 0x5a };

struct judgement {
    double error, error_bound, worst, worst_bound;
    char text[400]; /* "": all is well */
};

/* `precision`: "fp32", "fp16", "int8", as HW_PRECISION. false: no memory. */
bool compare(const struct problem *problem, const struct outcome *outcome,
             const char *precision, struct judgement *judgement);

#endif
