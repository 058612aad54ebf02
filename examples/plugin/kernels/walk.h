/* SPDX-License-Identifier: MIT */
/* walk.h - how the kernels go through tensors: index by index, whatever the strides. */
#ifndef WALK_H
#define WALK_H

#include "../discrete.h"

/* The element of an operand at an index into `rank` extents. Extents that the operand lacks are
 * 1, and smaller ones repeat. */
static inline unsigned char *element(const struct hw_tensor *t,
                                     const int64_t index[HW_MAX_RANK], int rank)
{
    uint64_t at = t->offset;
    for (int i = 0; i < t->rank; i++)
        at += (uint64_t)(index[i + rank - t->rank] % t->extent[i] * t->stride[i]);
    return memory_cells(t->buffer, at);
}

/* Moves to the next index of `t`; false past the last one. */
static inline bool advance(const struct hw_tensor *t, int64_t index[HW_MAX_RANK])
{
    for (int i = t->rank - 1; i >= 0; i--) {
        if (++index[i] < t->extent[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static inline float *number(const struct hw_tensor *t, const int64_t index[HW_MAX_RANK],
                            int rank)
{
    return (float *)(void *)element(t, index, rank);
}

#endif
