/* SPDX-License-Identifier: MIT */
/* operands.c - the tensors of each op, from the lists of ops.h. */
#include "operands.h"

#define T(op, field, role) { #field, offsetof(struct hw_##op, field), HW_ROLE_##role },
#define X(NAME, name)      static const struct operand of_##name[] = { HW_OPERANDS_##NAME(T) };
HW_OPS(X)
#undef X
#undef T

const struct op_operands op_operands[HW_OP_COUNT] = {
#define X(NAME, name)                                                                      \
    { sizeof(struct hw_##name), sizeof of_##name / sizeof *of_##name, of_##name },
    HW_OPS(X)
#undef X
};
