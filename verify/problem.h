/* SPDX-License-Identifier: MIT */
/* problem.h - a case with its operands and data, laid out in memory between guard bytes. */
#ifndef VERIFY_PROBLEM_H
#define VERIFY_PROBLEM_H

#include "case.h"
#include "oracle.h"

enum { GUARD_BYTES = 512, ERROR_TEXT = 256 };

/* How the data of an operand is made; data.c has the kinds. */
struct data_kind;

/* The place of an operand in the arena. */
struct layout {
    bool host;      /* in host memory, not on the device */
    int same_as;    /* the operand whose memory it shares (in place); -1: none */
    uint64_t place; /* offset of its first element in the arena, in bytes */
    int64_t stride[HW_MAX_RANK];
    const struct data_kind *data;
    const int64_t
        *index; /* explicit values of an i32 or i64 operand, instead of `data`; owned */
};

/* How much of a problem is made. */
enum detail {
    DETAIL_SHAPES, /* no data: enough to query whether a device computes it */
    DETAIL_DATA,   /* data that repeats, so that large cases are quick */
    DETAIL_NUMBERS /* and the values of the operands as doubles, for the oracle */
};

struct problem {
    uint32_t op;
    struct parameters parameters;
    enum detail detail;
    union op_args args;
    int count;
    struct operand operand[MAX_OPERANDS];
    size_t field[MAX_OPERANDS]; /* offset of the operand's tensor in the op's struct */
    struct layout layout[MAX_OPERANDS];
    /* The arena before the op runs, without outputs: guards and gaps have noise. */
    unsigned char *image;
    uint64_t bytes;
    char error[ERROR_TEXT]; /* the first error in the case; "": none */
    bool no_memory;         /* the reason is that the host's memory ran out */
};

/* Makes the problem for `test`. On failure returns false with a message in `error`, sets
 * `no_memory` if the host's memory ran out, and leaves nothing to clear. */
bool problem_make(struct problem *problem, const struct test_case *test,
                  enum detail detail);
void problem_clear(struct problem *problem);

/* Whether no output has an element. The library completes such a call without the device.
 */
bool problem_is_empty(const struct problem *problem);

/* The tensor of operand `i` without buffer and data; its offset is relative to the arena. */
struct hw_tensor problem_tensor(const struct problem *problem, int i);

/* ---- build.c ------------------------------------------------------------------------------- */

/* Reads the parameters into args, and makes the operands and their data. */
void problem_build(struct problem *problem);

/* Sets the error, unless one is set. */
void problem_fail(struct problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets the error for lack of memory. */
void problem_no_memory(struct problem *problem);

/* ---- data.c -------------------------------------------------------------------------------- */

/* The kind with this name, or NULL. */
const struct data_kind *data_named(const char *name);
/* Fills the bytes of an operand; the same seed gives the same bytes. */
void data_fill(const struct data_kind *kind, uint64_t seed, struct operand *operand);
/* The next of a sequence of pseudo-random 64-bit numbers. */
uint64_t data_random(uint64_t *state);

#endif
