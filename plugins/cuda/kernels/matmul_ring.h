/* SPDX-License-Identifier: MIT */
/* matmul_ring.h - what ring.h, matmul_mma.cu, matmul_f32.cu and the plans of their launches agree
 * on. Both have args.h before. Device addresses are u64. */
#ifndef MATMUL_RING_H
#define MATMUL_RING_H

enum {
    RING_BYTES = 64, /* of each row of a and b, in a step along k */
    RING_STEPS = 3   /* that are in shared memory */
};

#define RING_SHARED(rows, cols, ways) (RING_STEPS * (ways) * ((rows) + (cols)) * RING_BYTES)

/* c = a . b^T * scale + bias. Rows of a and b begin at multiples of 16 bytes, those of c, too. */
struct ring_args {
    u64 a, b, c;
    u64 bias;  /* address; 0: none */
    u64 scale; /* address of an f32 for each row; 0: none */
    i64 a_stride, b_stride, c_stride;
    int m, n, k, band; /* band: see tiles.h */
    int bias_type, c_type;
};

/* X(rows, cols): the tiles of c that a group may compute; the first is the largest. */
#define MMA_TILES(X)                                                                       \
    X(128, 128)                                                                            \
    X(64, 64)

/* X(rows, cols, down, right, ways): besides, how many rows and columns are a lane's, and in how
 * many parts the warps share the steps along k. */
#define F32_TILES(X)                                                                       \
    X(128, 128, 8, 16, 1)                                                                  \
    X(64, 64, 8, 8, 1)                                                                     \
    X(64, 64, 8, 8, 4)                                                                     \
    X(32, 64, 8, 8, 4)                                                                     \
    X(16, 32, 4, 4, 8)

/* Threads of a group: a warp for a quarter of a tile; a lane for down x right numbers. */
#define MMA_THREADS 128
#define F32_THREADS(rows, cols, down, right, ways)                                         \
    ((rows) * (cols) / (down) / (right) * (ways))

#endif
