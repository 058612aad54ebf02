/* SPDX-License-Identifier: MIT */
/* oracle.h - the meaning of every op in double precision. It is written from the definitions in
 * hw/ops.h and shares no code with any kernel, so agreement with it is evidence.
 *
 * Operands have their elements as doubles, packed and row-major. For each element of an output, the
 * oracle computes the value and two magnitudes that bound the rounding error (see docs/testing.md);
 * for an op that moves data, it computes the exact bytes. */
#ifndef VERIFY_ORACLE_H
#define VERIFY_ORACLE_H

#include <hw/hw.h>

#include <math.h>
#include <stdbool.h>

/* The index of each operand: operand_matmul_a, operand_matmul_b ... */
#define T(op, field, role) operand_##op##_##field,
#define X(NAME, name)      enum { HW_OPERANDS_##NAME(T) operand_##name##_count };
HW_OPS(X)
#undef X
#undef T

#define MAX_OPERANDS 8

struct operand {
    const char *name;
    enum hw_role role;
    int32_t dtype; /* HW_NONE: absent */
    int32_t rank;
    int64_t extent[HW_MAX_RANK];
    int64_t count; /* elements */

    /* Inputs: the elements, as packed storage and as numbers. */
    unsigned char *bytes;
    double *value;

    /* Outputs: the expected elements. One unit of error is unit(dtype) * (|want| + noise) +
     * unit(f32) * drift. `noise` bounds the error of storing intermediate terms in the storage
     * type, `drift` the error of summing in f32. `codes` bounds the error of rounding activations
     * to 8 bits in products with block types, if HW_PRECISION allows that. */
    double *want, *noise, *drift, *codes;
    /* Moved data: the expected bytes, if `exact`. Any two NaNs match unless `same_dtype`. */
    unsigned char *exact_bytes;
    bool exact, same_dtype;
};

/* The error of rounding numbers x to 8 bits, `together` neighbours at a time, to integers times a
 * step: a random error of half a step each, multiplied by y. */
struct rounding {
    int64_t together;
    double half_steps;            /* of the largest of them */
    double largest, squares, sum; /* of x, and of the squares of y; the squares of errors */
};

/* Integers of -127 .. 127. */
#define ROUNDED_ACTIVATIONS                                                                \
    {                                                                                      \
        .together = 32, .half_steps = 2 * 127                                              \
    }
/* Weights of values in attention, times the largest number that they multiply: integers of 0 ..
 * 255. */
#define ROUNDED_WEIGHTS                                                                    \
    {                                                                                      \
        .together = 64, .half_steps = 2 * 255                                              \
    }

/* After the last of some neighbours. */
static inline void rounding_end(struct rounding *r)
{
    const double half_step = r->largest / r->half_steps;
    r->sum += half_step * half_step * r->squares;
    r->largest = r->squares = 0;
}

/* Adds number k. In the header because oracles spend most of their time here: with a constant
 * `together`, it needs no division. */
static inline void rounding_add(struct rounding *r, int64_t k, double x, double y)
{
    r->largest = fabs(x) > r->largest ? fabs(x) : r->largest;
    r->squares += y * y;
    if ((k + 1) % r->together == 0)
        rounding_end(r);
}

/* The error of all numbers so far. */
static inline double rounding_cost(struct rounding *r)
{
    rounding_end(r);
    return sqrt(r->sum);
}

/* The struct of any op. */
union op_args {
#define X(NAME, name) struct hw_##name name;
    HW_OPS(X)
#undef X
};

/* The minimum cost of an op: arithmetic, and bytes if each is moved once. */
struct cost {
    double flops, read, written;
};

bool role_is_input(enum hw_role role);
bool role_is_output(enum hw_role role);

/* Sets the names and roles of an op's operands, and field[i] to the offset of operand i's tensor in
 * the op's struct. Returns the number of operands. */
int operands_of(uint32_t op, struct operand operands[MAX_OPERANDS],
                size_t field[MAX_OPERANDS]);
size_t op_args_size(uint32_t op);

/* Sets dtype, rank, extents and count, and allocates the bytes and, if `numbers`, the doubles.
 * Returns false if out of memory. Free with operand_clear(). */
bool operand_make(struct operand *operand, int32_t dtype, int32_t rank,
                  const int64_t *extents, bool numbers);
void operand_clear(struct operand *operand);

/* Computes the expected outputs. Takes the scalars from `args` and ignores its tensors. Returns
 * false if out of memory. */
bool oracle_compute(uint32_t op, const union op_args *args, struct operand *operands);

/* The cost of the op on these operands. Reads only values that determine the amount of work
 * (lengths). */
struct cost oracle_cost(uint32_t op, const union op_args *args,
                        const struct operand *operands);

/* ---- for the oracles ----------------------------------------------------------------------- */

#define X(NAME, name)                                                                      \
    bool oracle_##name(const struct hw_##name *op, struct operand *operands);              \
    double flops_##name(const struct hw_##name *op, const struct operand *operands);
HW_OPS(X)
#undef X

/* The number of rows along the last extent, and their length. */
int64_t operand_rows(const struct operand *operand);
int64_t operand_cols(const struct operand *operand);
/* The index in `small` that repeats, aligned from the right, at element `i` of `big`. */
int64_t broadcast(const struct operand *small, const struct operand *big, int64_t i);

#endif
