/* SPDX-License-Identifier: MIT */
/* blocktypes.h - properties of block types; constants if the type is one. */
#ifndef CPU_BLOCKTYPES_H
#define CPU_BLOCKTYPES_H

#include "words.h"

INLINE int code_bits(int type)
{
    return type == HW_Q8_0                                         ? 8
           : type == HW_Q6_K                                       ? 6
           : type == HW_Q5_0 || type == HW_Q5_1 || type == HW_Q5_K ? 5
                                                                   : 4;
}

/* Types of 256 elements, whose runs have shares of a scale. */
INLINE bool has_shares(int type)
{
    return type == HW_Q4_K || type == HW_Q5_K || type == HW_Q6_K;
}

/* The sign of the minimum: 0 if there is none. */
INLINE int minimum(int type)
{
    return type == HW_Q4_1 || type == HW_Q5_1   ? 1
           : type == HW_Q4_K || type == HW_Q5_K ? -1
                                                : 0;
}

/* The code of the number 0, if there is no minimum. `eight`: the result for q8_0. */
INLINE int zero_code(int type, int eight)
{
    return type == HW_Q8_0   ? eight
           : type == HW_Q4_0 ? 8
           : type == HW_Q5_0 ? 16
           : type == HW_Q6_K ? 32
                             : 0;
}

#endif
