/* SPDX-License-Identifier: MIT */
/* matmul_gemv.h - what matmul_gemv.cu and the plan of its launches agree on. Both include args.h
 * first. `type` is the type of b, enum storage. */
#ifndef MATMUL_GEMV_H
#define MATMUL_GEMV_H

enum {
    GEMV_ROWS = 2,   /* of b, that a warp has at a time */
    GEMV_STAGES = 3, /* of a warp's ring */
    GEMV_WARPS = 16  /* of a group, at most */
};

/* Of each row, in a step: numbers of b and their bytes; bytes of a slot of the ring, which begins
 * at a multiple of 16; bytes of a in shared memory. */
#define GEMV_IS_FLOAT(type)     ((type) == STORAGE_F16 || (type) == STORAGE_BF16)
#define GEMV_STEP_NUMBERS(type) (GEMV_IS_FLOAT(type) ? 512 : 1024)
#define GEMV_STEP_BYTES(type)                                                              \
    ((type) == STORAGE_Q8_0   ? 1088                                                       \
     : (type) == STORAGE_Q6_K ? 840                                                        \
     : GEMV_IS_FLOAT(type)    ? 1024                                                       \
                              : 576)
#define GEMV_SLOT_BYTES(type) ((GEMV_STEP_BYTES(type) + 47) / 16 * 16)
#define GEMV_A_BYTES(type)    (GEMV_IS_FLOAT(type) ? 2048 : 3584)

/* The ring of a warp. */
#define GEMV_RING_BYTES(type) (GEMV_STAGES * GEMV_ROWS * GEMV_SLOT_BYTES(type))

#endif
