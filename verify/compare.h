/* SPDX-License-Identifier: MIT */
/* compare.h - compares a device's result with the expected one. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include "close.h"
#include "problem.h"

/* The memory after two runs of one problem, as whole arenas. Before each run, the outputs were
 * filled with a different poison. */
struct outcome {
    const unsigned char *device[2], *host[2];
};

enum { FIRST_POISON = 0xa5, SECOND_POISON = 0x5a };

/* `precision` is "fp32", "fp16" or "int8", as in HW_PRECISION. Returns false if out of
 * memory. */
bool compare(const struct problem *problem, const struct outcome *outcome,
             const char *precision, struct judgement *judgement);

#endif
