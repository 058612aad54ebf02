/* SPDX-License-Identifier: MIT */
/* operands.h - the tensors of each op, as data. */
#ifndef PROXY_OPERANDS_H
#define PROXY_OPERANDS_H

#include <hw/plugin.h>

struct operand {
    const char *name;
    uint32_t offset; /* of the tensor in the op's struct */
    enum hw_role role;
};

struct op_operands {
    uint32_t size;  /* of the op's struct */
    uint32_t count; /* of operands */
    const struct operand *operand;
};
extern const struct op_operands op_operands[HW_OP_COUNT];

static inline const struct hw_tensor *operand_at(const void *args,
                                                 const struct operand *operand)
{
    return (const struct hw_tensor *)(const void *)((const char *)args + operand->offset);
}

#endif
