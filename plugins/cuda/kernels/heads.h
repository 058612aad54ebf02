/* SPDX-License-Identifier: MIT */
/* heads.h - what heads.cu and the plans of its launches agree on. Both include args.h first. */
#ifndef HEADS_H
#define HEADS_H

enum {
    HEADS_WARPS = 4, /* of a group */
    HEADS_JOBS = 4   /* of a launch, at most: rope of q and k, and storing k and v */
};

/* Rows of heads: y = rope(x), then table[rows[token]] = y. Without y, x is what is stored; without
 * a table, nothing is. Addresses are those of first elements: the offsets of `rope` and `store` do
 * not count. `rope` has the extents in any case. Warps first .. of the launch take `each` heads of
 * a token; `runs` of them share one. */
struct heads_job {
    struct rope_args rope;
    struct rows_args store;
    u64 x, y, positions, factors, table, rows;
    int type; /* of x and y */
    int first, runs, reserved;
};

struct heads_args {
    struct heads_job job[HEADS_JOBS];
    int jobs, each;
};

#endif
