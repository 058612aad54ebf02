/* SPDX-License-Identifier: MIT */
/* oracle.h - what every op means, in double precision, written from the definitions in
 * hw/ops.h and from nothing else: no code is shared with any kernel, so agreeing with it
 * means something.
 *
 * The oracle works on operands whose elements are doubles, packed and row major. It
 * answers, for each element of an output, the value and two magnitudes that say what error
 * rounding may cause there (see docs/testing.md); or, where an op moves data, the exact
 * bytes. */
#ifndef VERIFY_ORACLE_H
#define VERIFY_ORACLE_H

#include <hw/hw.h>

#include <stdbool.h>

enum role { ROLE_IN, ROLE_OPT_IN, ROLE_WEIGHT, ROLE_OUT, ROLE_OPT_OUT, ROLE_INOUT };

/* The operands of each op by name: MATMUL's are operand_matmul_a, operand_matmul_b ... */
#define T(op, field, role) operand_##op##_##field,
#define X(NAME, name)      enum { HW_OPERANDS_##NAME(T) operand_##name##_count };
HW_OPS(X)
#undef X
#undef T

#define MAX_OPERANDS 6

struct operand {
    const char *name;
    enum role role;
    int32_t dtype; /* HW_NONE: absent */
    int32_t rank;
    int64_t extent[HW_MAX_RANK];
    int64_t count; /* elements */

    /* Inputs: what it holds, as packed storage and as numbers. */
    unsigned char *bytes;
    double *value;

    /* Outputs: what it shall hold. An error of one unit of the storage's rounding is
     * unit(dtype) * (|want| + noise) + unit(f32) * drift: `noise` is what storing
     * intermediate terms in the storage type may cost, `drift` what accumulating in f32
     * may. */
    double *want, *noise, *drift;
    /* Moved data: the very bytes, where `exact`. Two NaNs are equal unless `same_dtype`. */
    unsigned char *exact_bytes;
    bool exact, same_dtype;
};

/* One struct of any op. */
union op_args {
#define X(NAME, name) struct hw_##name name;
    HW_OPS(X)
#undef X
};

/* The least that an op has to do: arithmetic, and bytes moved when each is moved once. */
struct cost {
    double flops, read, written;
};

bool role_is_input(enum role role);
bool role_is_output(enum role role);

/* Names, roles and places of an op's operands; answers their count. The tensor of operand i
 * is at byte field[i] of the op's struct. */
int operands_of(uint32_t op, struct operand operands[MAX_OPERANDS],
                size_t field[MAX_OPERANDS]);
size_t op_args_size(uint32_t op);

/* Sets dtype, rank, extents and count, and allocates what role and dtype ask for: the bytes
 * alone, or the numbers too. false: no memory. operand_clear() frees. */
bool operand_make(struct operand *operand, int32_t dtype, int32_t rank,
                  const int64_t *extents, bool numbers);
void operand_clear(struct operand *operand);

/* Fills in what the outputs shall hold. The scalars come from `args`, the tensors in it are
 * not looked at. false: no memory. */
bool oracle_compute(uint32_t op, const union op_args *args, struct operand *operands);

/* The op's cost on these operands, whose values are looked at only where they say how much
 * there is to do (lengths). */
struct cost oracle_cost(uint32_t op, const union op_args *args,
                        const struct operand *operands);

/* ---- for the oracles ----------------------------------------------------------------------- */

#define X(NAME, name)                                                                      \
    bool oracle_##name(const struct hw_##name *op, struct operand *operands);              \
    double flops_##name(const struct hw_##name *op, const struct operand *operands);
HW_OPS(X)
#undef X

/* Rows of the last extent, and its length; a scalar row has length 1. */
int64_t operand_rows(const struct operand *operand);
int64_t operand_cols(const struct operand *operand);
/* The element of `small` that broadcasts, aligned from the right, to element `i` of `big`.
 */
int64_t broadcast(const struct operand *small, const struct operand *big, int64_t i);

#endif
