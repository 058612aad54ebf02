/* SPDX-License-Identifier: MIT */
/* matmul.h - shared by the plans of tuned products. */
#ifndef OPENCL_MATMUL_H
#define OPENCL_MATMUL_H

#include "../opencl.h"

static inline int64_t matmul_pieces(int64_t n, int64_t piece)
{
    return n / piece + (n % piece != 0);
}

/* The matrices of c; the portable kernel has at least one group for each. */
static inline int64_t matmul_batches(const struct lowered *l)
{
    const struct matmul_args *m = &l->args.matmul;
    if (l->kernel == PORTABLE_matmul_vec)
        return l->groups / matmul_pieces(m->n, MATMUL_VEC_COLS);
    return l->groups / matmul_pieces(m->m, MATMUL_ROWS) / matmul_pieces(m->n, MATMUL_COLS);
}

/* f32, f16, bf16: 0, 1, 2. */
static inline uint32_t matmul_float(int dtype)
{
    return dtype == STORAGE_F32 ? 0 : dtype == STORAGE_F16 ? 1 : 2;
}

/* The types of b; the types of a come first. `align`: of rows, in bytes, so that kernels can read
 * parts of rows as vectors. */
static const struct {
    int dtype;
    const char *name;
    int64_t align;
} matmul_types[] = {
    { STORAGE_F32, "f32", 16 },  { STORAGE_F16, "f16", 8 },   { STORAGE_BF16, "bf16", 8 },
    { STORAGE_Q8_0, "q8_0", 2 }, { STORAGE_Q4_0, "q4_0", 2 }, { STORAGE_Q4_K, "q4_K", 16 },
};
enum { MATMUL_TYPES = sizeof matmul_types / sizeof matmul_types[0] };

/* MATMUL_TYPES if it is none of them. */
static inline uint32_t matmul_type(int dtype)
{
    uint32_t i = 0;
    while (i < MATMUL_TYPES && matmul_types[i].dtype != dtype)
        i++;
    return i;
}

/* The block types of b that are read in units (units.h). */
static const struct {
    int dtype;
    const char *name;
} matmul_blocks[] = {
    { STORAGE_Q8_0, "q8_0" }, { STORAGE_Q4_0, "q4_0" }, { STORAGE_Q4_1, "q4_1" },
    { STORAGE_Q5_0, "q5_0" }, { STORAGE_Q5_1, "q5_1" }, { STORAGE_Q5_K, "q5_K" },
    { STORAGE_Q6_K, "q6_K" }, { STORAGE_Q4_K, "q4_K" },
};
enum { MATMUL_BLOCKS = sizeof matmul_blocks / sizeof matmul_blocks[0] };

/* MATMUL_BLOCKS if it is none of them. */
static inline uint32_t matmul_block_type(int dtype)
{
    uint32_t i = 0;
    while (i < MATMUL_BLOCKS && matmul_blocks[i].dtype != dtype)
        i++;
    return i;
}

static inline bool matmul_is_aligned(struct place p, int64_t align)
{
    return p.offset % align == 0 && p.stride[0] % align == 0 && p.stride[1] % align == 0 &&
           p.stride[2] % align == 0;
}

/* Whether vectors of four floats or q8_0 codes are aligned in a matrix with `inner` elements in a
 * row, and never cross the end of a row. */
static inline bool matmul_has_fours(struct place p, int dtype, int64_t inner)
{
    const int64_t four = dtype == STORAGE_F32 ? 16 : dtype == STORAGE_Q8_0 ? 2 : 8;
    return matmul_is_aligned(p, four) && inner % 4 == 0;
}

#endif
