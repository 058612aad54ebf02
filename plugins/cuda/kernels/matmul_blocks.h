/* SPDX-License-Identifier: MIT */
/* matmul_blocks.h - what matmul_blocks.cu and the plan of its launches agree on. Both have args.h
 * and struct tensor_map before. Device addresses are u64. `type` is the type of b, `tokens` how
 * many rows of a a tile has. */
#ifndef MATMUL_BLOCKS_H
#define MATMUL_BLOCKS_H

#include "cells.h"

/* X(TYPE, type): the types of b. */
#define BLOCKS_TYPES(X)                                                                    \
    X(Q8_0, q8_0)                                                                          \
    X(Q4_0, q4_0)                                                                          \
    X(Q4_1, q4_1)                                                                          \
    X(Q5_0, q5_0)                                                                          \
    X(Q5_1, q5_1)                                                                          \
    X(Q4_K, q4_K)                                                                          \
    X(Q5_K, q5_K)                                                                          \
    X(Q6_K, q6_K)

enum {
    BLOCKS_WARPS = 8, /* of a group, that multiply: four for each 64 rows of b */
    BLOCKS_THREADS = BLOCKS_WARPS * 32 + 128, /* of the last four warps, two load */
    BLOCKS_ROWS = BLOCKS_WARPS * 16,          /* of b, of a group */
    BLOCKS_PAIR = 2, /* groups of a cluster, which share rows of a */
    BLOCKS_TILE = BLOCKS_PAIR * BLOCKS_ROWS,
    BLOCKS_NUMBERS = 256, /* of a row of b that come at a time: a cell */
    BLOCKS_STEP = 64,     /* of a row of a that come at a time: 128 bytes */
    BLOCKS_STEPS_OF_CELL = BLOCKS_NUMBERS / BLOCKS_STEP,
    BLOCKS_MOST_CELLS = 8, /* in shared memory */
    BLOCKS_SHARED = 231424 /* bytes that a group may have */
};

/* The bytes of a row in a cell, and those from row to row in shared memory, with which eight rows
 * lie in different banks: what is between them is copied, too, and not used. */
#define BLOCKS_SKEWED(type) ((type) == STORAGE_Q6_K) /* cells begin anywhere in 16 bytes */
#define BLOCKS_ROW_APART(type)                                                             \
    (((CELL_ROW_BYTES(type) + (BLOCKS_SKEWED(type) ? 14 : 0) + 15) / 16 | 1) * 16)
#define BLOCKS_CELL_BYTES(type) (BLOCKS_ROWS * BLOCKS_ROW_APART(type))
/* How many steps of a are in shared memory: those of one or two cells. */
#define BLOCKS_STEPS(tokens)      ((tokens) <= 128 ? 8 : 4)
#define BLOCKS_STEP_BYTES(tokens) ((tokens)*BLOCKS_STEP * 2)
#define BLOCKS_BARRIERS(steps)    (2 * ((steps) + BLOCKS_MOST_CELLS) * 8)
#define BLOCKS_CELLS_FIT(type, tokens, steps)                                              \
    ((BLOCKS_SHARED - BLOCKS_BARRIERS(steps) - (steps)*BLOCKS_STEP_BYTES(tokens)) /        \
     BLOCKS_CELL_BYTES(type))
#define BLOCKS_CELLS(type, tokens, steps)                                                  \
    (BLOCKS_CELLS_FIT(type, tokens, steps) < BLOCKS_MOST_CELLS                             \
         ? BLOCKS_CELLS_FIT(type, tokens, steps)                                           \
         : BLOCKS_MOST_CELLS)

/* Bytes of the sums of a tile that a group leaves to another: two such places for each group. */
#define BLOCKS_SUMS_BYTES(tokens) (BLOCKS_ROWS * (tokens)*4)

/* c = a . b^T * scale + bias. A launch has parts * across pairs of groups. */
struct blocks_args {
    struct tensor_map a, b;
    u64 c;
    u64 bias;           /* address; 0: none */
    u64 scale;          /* address of an f32 for each row of a */
    u64 counters, sums; /* addresses: counters are 0 between launches */
    i64 c_stride;       /* bytes */
    int m, n, cells;    /* rows of a, of b; along k */
    int across, parts;  /* tiles of a; parts into which all else is divided */
    int a_rows;         /* of a that each group of a pair loads: half of a tile, or of m */
    int bias_type, c_type;
    int constant; /* no kernel writes b: it may be read before what precedes has completed */
};

#endif
