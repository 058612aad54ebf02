/* SPDX-License-Identifier: MIT */
/* close.h - whether a result of an op is as close to the expected one as rounding allows. Nothing
 * in it needs the library. */
#ifndef VERIFY_CLOSE_H
#define VERIFY_CLOSE_H

#include "oracle.h"

/* The operands of an op. For output_judge(), oracle_compute() has filled them. */
struct result {
    uint32_t op;
    int count;
    const struct operand *operand;
    const char *precision; /* "fp32", "fp16" or "int8", as in HW_PRECISION */
};

struct judgement {
    double error, error_bound, worst, worst_bound;
    char text[400]; /* "": correct */
};

/* Judges the packed elements of an output, and adds to the judgement. */
void output_judge(const struct result *result, int output, const unsigned char *packed,
                  struct judgement *judgement);

/* Whether two results of an output are so close that neither needs a judgement: in each row, they
 * differ by no more than the error that conformance allows to the whole output, relative to the
 * largest element of the row. */
bool outputs_agree(const struct result *result, int output, const unsigned char *a,
                   const unsigned char *b);

/* "y[3,17]" */
void name_element(const struct operand *o, int64_t i, char *text, size_t size);

#endif
