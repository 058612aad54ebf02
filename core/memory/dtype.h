/* SPDX-License-Identifier: MIT */
/* dtype.h - sets of dtypes, and the size of an element or a block of each. */
#ifndef HW_MEMORY_DTYPE_H
#define HW_MEMORY_DTYPE_H

#include <hw/types.h>

#define DTYPE(name) (1u << HW_##name)
enum {
    FLOATS = DTYPE(F32) | DTYPE(F16) | DTYPE(BF16),
    BLOCKS = DTYPE(Q8_0) | DTYPE(Q4_0) | DTYPE(Q4_K) | DTYPE(Q5_K) | DTYPE(Q6_K) |
             DTYPE(Q4_1) | DTYPE(Q5_0) | DTYPE(Q5_1),
    ROW_NUMBERS = DTYPE(I32) | DTYPE(I64),
    ANY_DTYPE = (1u << HW_DTYPE_END) - 2
};

/* An element or a block: its bytes, log2 of its elements, alignment of its address. */
struct dtype_row {
    uint8_t bytes, shift, alignment;
};
/* A block is aligned for its 16-bit scale, a plain type to its size. */
#define DTYPE_SHIFT(elements)           ((elements) == 1 ? 0 : (elements) == 32 ? 5 : 8)
#define DTYPE_ALIGNMENT(elements, size) ((elements) == 1 ? (size) : 2)
static const struct dtype_row dtype_rows[16] = {
#define X(NAME, value, name, elements, size)                                               \
    [value] = { size, DTYPE_SHIFT(elements), DTYPE_ALIGNMENT(elements, size) },
    HW_DTYPES(X)
#undef X
};
_Static_assert(HW_DTYPE_END <= 16, "dtype_rows has room for every dtype");
#define X(NAME, value, name, elements, size)                                               \
    _Static_assert(1 << DTYPE_SHIFT(elements) == (elements), name ": elements of a block");
HW_DTYPES(X)
#undef X

#endif
