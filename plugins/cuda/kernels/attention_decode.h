/* SPDX-License-Identifier: MIT */
/* attention_decode.h - what attention_decode.cu and the plan of its launches agree on. Both
 * include args.h and heads.h first. */
#ifndef ATTENTION_DECODE_H
#define ATTENTION_DECODE_H

enum {
    DECODE_ROWS = 8, /* of a group: queries times the heads that read one head of k and v */
    DECODE_KEYS = 16, /* of a step of a warp */
    DECODE_FEW = 128, /* keys that are not split */
    DECODE_SET = 32   /* splits whose results are added up at a time */
};

/* Addresses are those of first elements; the offsets of `a` do not count. `partial`: for each
 * batch, head of k and v, run of DECODE_ROWS rows, and split: a record of each row. `counters`: for
 * each of these but rows a number, which is 0 before and after a launch. */
struct decode_args {
    struct attention_args a;
    u64 y, q, k, v, slopes, sinks, lengths, partial, counters;
    int heads_each, runs; /* that read one head of k and v */
    int splits;
    int constant; /* no other launch of the graph writes keys, values and lengths, nor what says
                     where a decoding step is: they may be read before what precedes has
                     completed */
};

/* One query of one batch, with a run for each head of k and v, whose jobs come first: q = rope(x),
 * k = rope(x) by the same angles and storing that, storing v. */
struct decode_step_args {
    struct decode_args decode;
    struct heads_job q, k, v;
    u64 angles; /* where they are kept for launches behind this one, DECODE_ANGLES bytes; or 0 */
    int angles_there; /* a launch before this one has kept them */
    int reserved;
};

/* Of a lane, two numbers of each piece of 64 pairs. */
#define DECODE_ANGLES 1024

/* Of heads that are padded to `dim`: floats of a record, which are values, the largest score and
 * the sum of exponentials. */
#define DECODE_RECORD(dim) ((dim) + 4)

/* Bytes of a head of k or v in shared memory, where it begins as far behind a multiple of 16 as in
 * device memory. An odd multiple of 16: then neither rows nor columns share banks. */
#define DECODE_ROW(type, dim)                                                              \
    ((type) == STORAGE_F32    ? (dim)*4                                                    \
     : (type) == STORAGE_Q8_0 ? (dim) / 32 * 34 + 15                                       \
                              : (dim)*2)
#define DECODE_PITCH(type, dim) (((DECODE_ROW(type, dim) + 15) / 16 | 1) * 16)

/* Warps of a group, and groups whose registers a multiprocessor has. */
#define DECODE_WARPS(type, dim)  (DECODE_ROW(type, dim) > 256 ? 4 : 8)
#define DECODE_GROUPS(type, dim) (8 / DECODE_WARPS(type, dim))

/* Steps in a warp's ring, of which multiprocessors of 9.0 have room for more, and bytes of one:
 * heads of k, then of v. `capability`: 80 to 90. */
#define DECODE_STAGES(type, dim, capability)                                               \
    (DECODE_ROW(type, dim) > ((capability) < 90 ? 160 : 256) ? 2 : 3)
#define DECODE_STEP(type, dim) (2 * DECODE_KEYS * DECODE_PITCH(type, dim))

/* Shared memory: q as operands of products; a row of zeros, a key and a value to be stored; the
 * rings. */
#define DECODE_Q(dim)          ((dim)*DECODE_ROWS * 8)
#define DECODE_RING(type, dim) (DECODE_Q(dim) + 3 * DECODE_PITCH(type, dim))
#define DECODE_SHARED(type, dim, capability)                                               \
    (DECODE_RING(type, dim) + DECODE_WARPS(type, dim) *                                    \
                                  DECODE_STAGES(type, dim, capability) *                   \
                                  DECODE_STEP(type, dim))

#endif
