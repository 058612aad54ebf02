/* SPDX-License-Identifier: MIT */
/* operands.h - the op table as data: the name of each op, and the operands in its struct. They come
 * first there, one after the other. */
#ifndef COMMON_OPERANDS_H
#define COMMON_OPERANDS_H

#include <hw/plugin.h>

#define MOST_OPERANDS 8

struct op_layout {
    const char *name;
    uint32_t bytes; /* of the struct */
    uint32_t count; /* of the operands */
    struct {
        const char *name;
        enum hw_role role;
    } operand[MOST_OPERANDS];
};
extern const struct op_layout op_layouts[HW_OP_COUNT];

#endif
