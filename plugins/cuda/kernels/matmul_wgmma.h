/* SPDX-License-Identifier: MIT */
/* matmul_wgmma.h - what matmul_wgmma.cu and the plan of its launches agree on. Both have args.h
 * and struct tensor_map before. Device addresses are u64. */
#ifndef MATMUL_WGMMA_H
#define MATMUL_WGMMA_H

/* X(rows, cols, steps): the tiles of c that a group may compute, and how many steps along k its
 * ring in shared memory holds. */
#define WGMMA_TILES(X)                                                                     \
    X(128, 256, 4)                                                                         \
    X(128, 224, 4)                                                                         \
    X(128, 192, 4)                                                                         \
    X(128, 128, 6)                                                                         \
    X(64, 160, 7)                                                                          \
    X(64, 128, 8)                                                                          \
    X(64, 64, 12)                                                                          \
    X(64, 32, 16)

enum {
    WGMMA_ROW = 128,       /* bytes of a row of a or b in a step along k, */
    WGMMA_UNIT = 32,       /* and those that the matrix units multiply at a time */
    WGMMA_STORE_ROWS = 16, /* of c, that a warp stores at once */
    WGMMA_STORE_COLS = 32
};

/* Numbers of a row in a step, by the storage type of a and b: f32 becomes TF32. */
#define WGMMA_STEP(type) (WGMMA_ROW / ((type) == STORAGE_F32 ? 4 : 2))

/* Of a group: threads, a warpgroup for each 64 rows and one that loads; bytes of shared memory,
 * which are the ring, two places for each warp to store f32 from, two barriers for each step. */
#define WGMMA_THREADS(rows)          (((rows) / 64 + 1) * 128)
#define WGMMA_STEP_BYTES(rows, cols) (((rows) + (cols)) * WGMMA_ROW)
#define WGMMA_STORE_BYTES            (WGMMA_STORE_ROWS * WGMMA_STORE_COLS * 4)
#define WGMMA_SHARED(rows, cols, steps)                                                    \
    ((steps) * (WGMMA_STEP_BYTES(rows, cols) + 16) + (rows) / 16 * 2 * WGMMA_STORE_BYTES)

/* c = a . b^T * scale + bias; `band`: see tiles.h. */
struct wgmma_args {
    struct tensor_map a, b, c;
    u64 bias;  /* address; 0: none */
    u64 scale; /* address of an f32 for each row; 0: none */
    int m, n, k, band;
    int a_rows; /* of a that a copy loads: no more than m, because those outside would take time */
    int bias_type, c_type, reserved;
};

#endif
