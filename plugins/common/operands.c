/* SPDX-License-Identifier: MIT */
/* operands.c - see operands.h. */
#include "operands.h"

#define PLACE(op, field, role) PLACE_OF_##op##_##field,
#define FIRST(op, field, role)                                                             \
    _Static_assert(offsetof(struct hw_##op, field) ==                                      \
                       PLACE_OF_##op##_##field * sizeof(struct hw_tensor),                 \
                   #op ": its operands must come first, in the order of the table");
#define X(NAME, name)                                                                      \
    enum { HW_OPERANDS_##NAME(PLACE) PLACES_OF_##name };                                   \
    HW_OPERANDS_##NAME(FIRST) _Static_assert(PLACES_OF_##name <= MOST_OPERANDS,            \
                                             #name ": operands");
HW_OPS(X)
#undef X
#undef FIRST
#undef PLACE

const struct op_layout op_layouts[HW_OP_COUNT] = {
#define OPERAND(op, field, role) { #field, HW_ROLE_##role },
#define X(NAME, name)                                                                      \
    { #name, sizeof(struct hw_##name), PLACES_OF_##name, { HW_OPERANDS_##NAME(OPERAND) } },
    HW_OPS(X)
#undef X
#undef OPERAND
};
