/* SPDX-License-Identifier: MIT */
/* matmul_gemv.h - what matmul_gemv.cu and the plan of its launches agree on. Both include args.h
 * first. `type` is the type of b, enum storage. */
#ifndef MATMUL_GEMV_H
#define MATMUL_GEMV_H

enum {
    GEMV_ROWS = 2,      /* of b, that a warp has at a time */
    GEMV_TALL_ROWS = 4, /* the same where b has many */
    GEMV_WARPS = 16,    /* of a group, that multiply, at most */
    GEMV_STAGERS = 16,  /* that load a, where it is one row, on compute capability 9.0 */
    GEMV_STAGES = 6,    /* of a warp's ring, at most */
    GEMV_TOKENS = 8,    /* rows of a in a launch, at most */
    GEMV_MOST = 20,     /* rows of a that are rounded, in as few launches, at most */
    GEMV_PARTS = 3,     /* products of one a that a launch computes, at most */
    GEMV_AHEAD_PIECE = 1024, /* bytes that a warp reads ahead at a time */
    GEMV_NORM_QUADS =
        2 /* pieces of 16 bytes that a thread has of a row that is normed, at most */
};

/* One product: c = a . b^T + bias, b [rows,k]. Addresses; 0: no bias, c is not stored. */
struct gemv_part {
    u64 b, bias, c;
    i64 stride; /* bytes from row to row of b */
    int rows, bias_type;
};

struct gemv_args {
    u64 a, y; /* y: with `gated`, silu(c of part 0) * (c of part 1), of type c_type */
    u64 norm,
        normed; /* a weight: a is rmsnorm(a, norm), of f32, and stored at `normed`; or 0 */
    u64 residual; /* += c of the only part, of f32; or 0 */
    struct gemv_part part[GEMV_PARTS];
    i64 a_stride, c_stride; /* bytes from row to row of a, and of c */
    int tokens;             /* rows of a, with one part and not `gated` if more than one */
    int k, parts, rows;     /* rows of all parts */
    float eps;              /* of the norm */
    int stages;
    int a_type, c_type;
    int gated;    /* there are two parts, of as many rows */
    int aligned;  /* all rows of b begin at multiples of 16 */
    int constant; /* no kernel writes b: it may be read before what precedes has completed */
    int groups;   /* that have all parts but the last, if that has another type */
    int ahead_bytes, reserved; /* the second one pads */
    u64 ahead[2]; /* the launch behind this one begins with so many bytes of each */
};

/* Of a row, in a step: numbers of b and their bytes; the bytes of a slot of the ring, which begins
 * at a multiple of 16. A step has GEMV_UNITS times 32 units of 32 numbers of a block type. */
#define GEMV_IS_FLOAT(type)                                                                \
    ((type) == STORAGE_F32 || (type) == STORAGE_F16 || (type) == STORAGE_BF16)
#define GEMV_UNITS(type) ((type) == STORAGE_Q8_0 ? 1 : 2)
#define GEMV_STEP_NUMBERS(type)                                                            \
    ((type) == STORAGE_F32 ? 256 : GEMV_IS_FLOAT(type) ? 512 : GEMV_UNITS(type) * 1024)
#define GEMV_STEP_BYTES(type)                                                              \
    (GEMV_IS_FLOAT(type)      ? 1024                                                       \
     : (type) == STORAGE_Q8_0 ? 1088                                                       \
     : (type) == STORAGE_Q4_0 ? 1152                                                       \
     : (type) == STORAGE_Q4_1 ? 1280                                                       \
     : (type) == STORAGE_Q5_0 ? 1408                                                       \
     : (type) == STORAGE_Q5_1 ? 1536                                                       \
     : (type) == STORAGE_Q4_K ? 1152                                                       \
     : (type) == STORAGE_Q5_K ? 1408                                                       \
                              : 1680)
#define GEMV_SLOT_BYTES(type) (GEMV_STEP_BYTES(type) + 16)

/* Rows of b that a warp has at a time of the first type, where there are two; of q5_K, more do not
 * fit its registers. */
#define GEMV_MIXED_ROWS(type) ((type) == STORAGE_Q4_K ? 4 : GEMV_ROWS)

/* A stage of a warp's ring. */
#define GEMV_STAGE_BYTES(type, rows) ((rows)*GEMV_SLOT_BYTES(type))

/* Numbers of a are floats beside floats, else integers: EXACT ones have 23 bits in three planes of
 * bytes, ROUNDED ones 8 bits. */
enum { EXACT = 3, ROUNDED = 1 };

/* Of a in shared memory, for each step. */
#define GEMV_A_BYTES(type, planes)                                                         \
    (GEMV_IS_FLOAT(type) ? GEMV_STEP_NUMBERS(type) * 4                                     \
                         : GEMV_UNITS(type) * ((planes)*1024 + 512))

#endif
