/* SPDX-License-Identifier: MIT */
/* attention_prefill.h - what attention_prefill.cu and the plan of its launches agree on. Both
 * include args.h and declare struct tensor_map first. */
#ifndef ATTENTION_PREFILL_H
#define ATTENTION_PREFILL_H

enum {
    PREFILL_ROWS = 128, /* of a group: `pack` heads of PREFILL_ROWS / pack queries */
    PREFILL_KEYS = 128, /* of a tile of k or v */
    PREFILL_STAGES = 2,
    PREFILL_THREADS = 384, /* a warpgroup that loads, two that compute 64 rows each */
    PREFILL_ROUND = 256    /* work-items of a group of prefill_round */
};

/* Bytes of a tile of q, k or v in shared memory: panels of 64 numbers, which are 128 bytes. */
#define PREFILL_PANEL     (PREFILL_KEYS * 128)
#define PREFILL_TILE(dim) ((dim) / 64 * PREFILL_PANEL)

/* Shared memory: q, the tiles of k and of v, the barriers; it begins at a multiple of 1024. */
#define PREFILL_SHARED(dim) ((1 + 2 * PREFILL_STAGES) * PREFILL_TILE(dim) + 128 + 1024)

/* The maps are of [batch, token, head, number]. Addresses are those of first elements; the offsets
 * of `a` do not count. */
struct prefill_args {
    struct tensor_map q, k, v;
    struct attention_args a;
    u64 y, sinks, lengths;
    int heads_each, pack; /* heads that read one of k and v; of these, in a group */
};

/* to = q times the scale, f16 without gaps. `place`: strides of batch, token, head, without the
 * offset; count: all numbers. */
struct prefill_round_args {
    struct place place;
    u64 to, q;
    i64 count, queries, heads;
    int dim;
    float scale;
};

#endif
