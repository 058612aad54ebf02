/* SPDX-License-Identifier: MIT */
/* matmul_tiles.h - what matmul_tiles.cu and the plan of its launches agree on. Both include args.h
 * first. `type` is the type of b, `eights` how many times 8 rows of a a launch has at most. */
#ifndef MATMUL_TILES_H
#define MATMUL_TILES_H

#include "cells.h"

enum {
    TILES_ROWS = 16,     /* of b, in a tile */
    TILES_NUMBERS = 256, /* of a row, that a warp has of a tile: a cell */
    TILES_CODES = 2048,  /* bytes of 8 rows of a in a cell: codes, */
    TILES_SCALES = 256,  /* then scales of 32, then as many sums of 32 */
    TILES_EIGHT_BYTES = TILES_CODES + 2 * TILES_SCALES,
    TILES_GAP = 20,   /* from token to token of sums: 16 rows, and what parts their banks */
    TILES_MOST = 24,  /* tiles of a group, of which it keeps sums between parts of k */
    TILES_STAGES = 6, /* of a warp's ring, at most */
    TILES_ROUNDERS = 128 /* threads of a group that rounds a */
};

/* Warps of a group; cells along k that it multiplies at a time, a part; tiles at a time, a
 * round. */
#define TILES_WARPS(eights)   ((eights) <= 2 ? 16 : 8)
#define TILES_PART(eights)    (16 / (eights))
#define TILES_AT_ONCE(eights) (TILES_WARPS(eights) / TILES_PART(eights))

/* In shared memory: a part of a, what each warp has of a tile, the rings, and results of all tiles
 * of the group as far as they are added up. */
#define TILES_RESULTS(eights)    ((eights)*8 * TILES_ROWS)
#define TILES_PARTIAL(eights)    ((eights)*8 * TILES_GAP)
#define TILES_CELL_BYTES(eights) ((eights)*TILES_EIGHT_BYTES)
#define TILES_PART_BYTES(eights) (TILES_PART(eights) * TILES_CELL_BYTES(eights))
#define TILES_FIXED_BYTES(eights)                                                          \
    (TILES_PART_BYTES(eights) + TILES_WARPS(eights) * TILES_PARTIAL(eights) * 4)

/* The bytes of a row in a cell, and those from row to row in shared memory, with which eight rows
 * lie in different banks. */
#define TILES_ROW_PIECES(type)  ((CELL_ROW_BYTES(type) + 15) / 16)
#define TILES_ROW_APART(type)   ((TILES_ROW_PIECES(type) | 1) * 16)
#define TILES_STAGE_BYTES(type) (TILES_ROWS * TILES_ROW_APART(type))

struct tiles_args {
    u64 a, b, bias, c;
    u64 x;                            /* rows of a, rounded */
    i64 a_stride, b_stride, c_stride; /* bytes from row to row */
    int tokens, rows, k;              /* rows of a, of b */
    int stages, eights;
    int a_type, bias_type, c_type;
    int constant; /* no kernel writes b: it may be read before what precedes has completed */
};

#endif
