/* SPDX-License-Identifier: MIT */
/* problem.h - a case made concrete: operands with data, laid out in memory between guards.
 */
#ifndef VERIFY_PROBLEM_H
#define VERIFY_PROBLEM_H

#include "case.h"
#include "oracle.h"

enum { GUARD_BYTES = 512, ERROR_TEXT = 256 };

/* How an operand's data is made; data.c lists the kinds. */
struct data_kind;

/* Where an operand lies in the arena. */
struct layout {
    bool host;      /* in host memory, not the device's */
    int same_as;    /* shares the memory of this operand (in place); -1: its own */
    uint64_t place; /* of its first element, in bytes from the arena's start */
    int64_t stride[HW_MAX_RANK];
    const struct data_kind *data;
    const int32_t *index; /* explicit values of an i32 operand instead of `data`; owned */
};

struct problem {
    uint32_t op;
    struct parameters parameters;
    bool numbers; /* operands carry doubles: there will be an oracle */
    union op_args args;
    int count;
    struct operand operand[MAX_OPERANDS];
    size_t field[MAX_OPERANDS]; /* of the operand's tensor, in the op's struct */
    struct layout layout[MAX_OPERANDS];
    /* The arena as it is before the op, outputs excepted: guards and gaps hold noise. */
    unsigned char *image;
    uint64_t bytes;
    char error[ERROR_TEXT]; /* the first thing that is wrong with the case; "": nothing */
};

/* Builds the problem that `test` describes. false: `error` has the words, and there is
 * nothing to clear. `numbers`: as in struct problem; without them data repeats and big
 * cases are quick. */
bool problem_make(struct problem *problem, const struct test_case *test, bool numbers);
void problem_clear(struct problem *problem);

/* Whether no output has an element. The library answers such a call without the device. */
bool problem_is_empty(const struct problem *problem);

/* The tensor of operand `i`, with neither buffer nor data set: its offset is its place. */
struct hw_tensor problem_tensor(const struct problem *problem, int i);

/* ---- build.c ------------------------------------------------------------------------------- */

/* Reads the problem's parameters into args, makes its operands and says how they are
 * filled. */
void problem_build(struct problem *problem);

/* Says what is wrong with the case, unless something was wrong before. */
void problem_fail(struct problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- data.c -------------------------------------------------------------------------------- */

/* The kind called `name`, or NULL. */
const struct data_kind *data_named(const char *name);
/* Writes the operand's bytes, the same ones for the same seed. */
void data_fill(const struct data_kind *kind, uint64_t seed, struct operand *operand);
/* The next of a sequence of well mixed 64-bit numbers. */
uint64_t data_random(uint64_t *state);

#endif
