/* SPDX-License-Identifier: MIT */
/* operands.c - the op table of ops.h as data: where each op's tensors are, and which are
 * written. */
#include "work.h"

#define OPERAND(op, field, role)                                                           \
    { #field, (uint16_t)offsetof(struct hw_##op, field), ROLE_##role },
#define COUNT(op, field, role) +1u
#define DESC(NAME, name)                                                                   \
    [HW_OP_##NAME] = { #name,                                                              \
                       (uint32_t)sizeof(struct hw_##name),                                 \
                       0u HW_OPERANDS_##NAME(COUNT),                                       \
                       { HW_OPERANDS_##NAME(OPERAND) } },

const struct op_desc op_descs[HW_OP_COUNT] = { HW_OPS(DESC) };
