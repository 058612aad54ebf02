/* SPDX-License-Identifier: MIT */
/* layout.h - the bytes that a tensor covers, and its description in messages. Nothing here
 * accesses the memory that tensors point to. */
#ifndef HW_CALL_LAYOUT_H
#define HW_CALL_LAYOUT_H

#include "core.h"

/* The bytes of an operand: host addresses, or offsets in a buffer that the host cannot
 * access. Empty operands have none. */
struct byte_range {
    const void *space; /* the buffer; NULL: host memory */
    uint64_t begin, end;
};

#define FAULT_SIZE 256
/* True if the tensor is malformed on its own, whatever the op; `why` gets the reason. With
 * `writes` it is an output, whose elements must not overlap each other. */
bool tensor_fault(const struct hw_tensor *tensor, bool writes, char why[FAULT_SIZE]);

/* The two halves of tensor_fault(): dtype, rank, extents and strides; and, if these are right, the
 * bytes, which are stored in `where`. */
bool shape_fault(const struct hw_tensor *tensor, char why[FAULT_SIZE]);
bool bytes_fault(const struct hw_tensor *tensor, bool writes, struct byte_range *where,
                 char why[FAULT_SIZE]);

/* Writes the reason, and returns true. */
bool faulty(char why[FAULT_SIZE], const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

#define DESCRIBE_SIZE 128
/* "f32 [4, 64]", for messages. */
const char *describe(const struct hw_tensor *tensor, char text[DESCRIBE_SIZE]);
/* The names of a set of dtypes, "f32, f16 or bf16". */
const char *describe_dtypes(uint32_t dtypes, char text[DESCRIBE_SIZE]);
bool tensor_empty(const struct hw_tensor *tensor);
/* Whether the elements are contiguous and in order. */
bool tensor_dense(const struct hw_tensor *tensor);
/* Sets the strides of a contiguous tensor and its size in bytes; false if it is too large.
 * With `like`, axes that have stride 0 in `like` keep stride 0, except the innermost. */
bool make_dense(struct hw_tensor *tensor, const struct hw_tensor *like, uint64_t *bytes);

static inline bool share_space(const struct byte_range *a, const struct byte_range *b)
{
    return (a->space == b->space) & (a->begin < b->end) & (b->begin < a->end);
}

/* Whether two tensors share no byte although their spans overlap. */
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
