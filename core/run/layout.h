/* SPDX-License-Identifier: MIT */
/* layout.h - which bytes a tensor covers, and how messages describe it. Nothing here touches
 * what tensors point at. */
#ifndef HW_RUN_LAYOUT_H
#define HW_RUN_LAYOUT_H

#include "core.h"

/* Where an operand's bytes lie: host addresses, or offsets in a buffer that the host can
 * not see. Empty operands lie nowhere. */
struct byte_range {
    const void *space; /* NULL: the host's */
    uint64_t begin, end;
};

#define FAULT_SIZE 256
/* What can not be about one tensor, whatever the op: true, with the words in `why`.
 * `writes`: it is an output, in which no two elements may lie in one place. */
bool tensor_fault(const struct hw_tensor *tensor, bool writes, char why[FAULT_SIZE]);

/* The same of dtype, rank, extents and strides alone. */
bool shape_fault(const struct hw_tensor *tensor, char why[FAULT_SIZE]);

#define DESCRIBE_SIZE 128
/* "f32 [4, 64]", for messages. */
const char *describe(const struct hw_tensor *tensor, char text[DESCRIBE_SIZE]);
/* The names of a set of dtypes, "f32, f16 or bf16". */
const char *describe_dtypes(uint32_t dtypes, char text[DESCRIBE_SIZE]);
bool tensor_empty(const struct hw_tensor *tensor);
/* Whether all elements follow each other, in order. */
bool tensor_dense(const struct hw_tensor *tensor);
/* Sets the strides of a contiguous tensor, and answers its bytes; false if too large. With
 * `like`, an extent that `like` repeats (stride 0) stays repeated, the innermost excepted.
 */
bool make_dense(struct hw_tensor *tensor, const struct hw_tensor *like, uint64_t *bytes);

static inline bool share_space(const struct byte_range *a, const struct byte_range *b)
{
    return (a->space == b->space) & (a->begin < b->end) & (b->begin < a->end);
}

/* Whether two tensors whose spans overlap really share no byte. */
bool interleaved(const struct hw_tensor *a, const struct byte_range *a_bytes,
                 const struct hw_tensor *b, const struct byte_range *b_bytes);

/* Same extents: entries beyond the rank are zero. */
static inline bool equal_extents(const struct hw_tensor *a, const struct hw_tensor *b)
{
    return ((a->rank ^ b->rank) | (a->extent[0] ^ b->extent[0]) |
            (a->extent[1] ^ b->extent[1]) | (a->extent[2] ^ b->extent[2]) |
            (a->extent[3] ^ b->extent[3])) == 0;
}

static inline bool equal_strides(const struct hw_tensor *a, const struct hw_tensor *b)
{
    return ((a->stride[0] ^ b->stride[0]) | (a->stride[1] ^ b->stride[1]) |
            (a->stride[2] ^ b->stride[2]) | (a->stride[3] ^ b->stride[3])) == 0;
}

#endif
