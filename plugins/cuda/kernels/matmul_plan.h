/* SPDX-License-Identifier: MIT */
/* matmul_plan.h - shared by the plans of tuned products of many rows. The kernels that multiply
 * take a and b in one type. Operands of other types are first converted in the workspace, as many
 * rows of a and columns of c at a time as fit. */
#ifndef MATMUL_PLAN_H
#define MATMUL_PLAN_H

#include "../launch.h"

/* A matrix in device memory. */
struct matrix {
    uint64_t address;
    int64_t stride; /* of rows, bytes */
    int32_t type;
};

struct size {
    int64_t m, n, k;
};

/* c = a . b^T * scale + bias. a and b have the problem's type; rows of all three begin at multiples
 * of 16 bytes. */
struct product {
    struct size size;
    struct matrix a, b, c;
    uint64_t bias;     /* address; 0: none */
    uint64_t scale;    /* address of an f32 for each row; 0: none */
    int32_t bias_type; /* 0: none */
    int32_t type;
};

/* Launches one product. */
typedef int32_t multiply_fn(const struct launcher *at, const struct product *product);

static inline int64_t pieces(int64_t of, int64_t size)
{
    return (of + size - 1) / size;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rounds up to a multiple of 256, where parts of a workspace begin. */
static inline uint64_t round_up(int64_t bytes)
{
    return ((uint64_t)bytes + 255) / 256 * 256;
}

static inline bool is_half(int32_t type)
{
    return type == HW_F16 || type == HW_BF16;
}

static inline bool is_block(int32_t type)
{
    return type != HW_F32 && !is_half(type);
}

/* A matrix in device memory for the copy engine, and boxes of it. */
struct box {
    int type;                   /* of an element: TENSOR_F16 .. */
    int64_t rows, cols, stride; /* elements; bytes from row to row */
    int box_rows, box_cols, swizzle;
};

/* Describes the matrix to the copy engine. On failure returns a status, with a message. */
int32_t box_describe(const struct launcher *at, uint64_t address, const struct box *box,
                     struct tensor_map *map);

/* Plans an op with products in `type`; 0: in f16 or bf16, whichever suits a and b. Returns NULL, or
 * the reason why the op cannot be computed this way. */
const char *product_plan(struct plan *plan, const struct kernel_row *row,
                         const struct hw_matmul *op, int32_t type);
/* Launches a planned product. */
int32_t product_launch(const struct launcher *at, const struct plan *plan,
                       const struct hw_matmul *op, int32_t type, multiply_fn *multiply);

/* A tile of c that a group of ring.h computes. `ways`: the number of parts of the threads that take
 * turns along k. */
struct ring_tile {
    int rows, cols, ways, threads;
};

/* product_plan() for ring.h, which copies whole units of 16 bytes along k. */
const char *ring_plan(struct plan *plan, const struct kernel_row *row,
                      const struct hw_matmul *op, int32_t type);
/* Launches a product, with the kernel of a tile. */
int32_t ring_launch(const struct launcher *at, const struct product *product,
                    const struct ring_tile *tile, enum tuned kernel);

#endif
