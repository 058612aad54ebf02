/* SPDX-License-Identifier: MIT */
/* matmul_convert.h - what matmul_convert.cu and the plan of its launches agree on. Both have
 * args.h before. Device addresses are u64. */
#ifndef MATMUL_CONVERT_H
#define MATMUL_CONVERT_H

enum {
    CONVERT_GROUP = 256, /* threads of a group, at most */
    CONVERT_NUMBERS = 8, /* that a thread makes at a time: k is a multiple of it */
    ROUND_QUADS = 8,     /* four numbers each, of a row of convert_round, for a thread */
    ROUND_MOST = 1024    /* threads of a group of convert_round, at most */
};

/* to = the numbers of `from` in another type, row by row. A group: one row.
 *
 * convert_round_<type>: 16 bits from f32, f16 or bf16. For f16, each row is divided by a power of
 * two, so that it is in range; that goes to `scale`. k is a multiple of 4, and each thread has at
 * most ROUND_QUADS times 4 of a row.
 *
 * convert_round_mixed: convert_round_f16 in the order of block_halves.h; k is a multiple of 16.
 *
 * convert_<type>: from blocks, or from 16 bits in rows that begin at multiples of 16 bytes. */
struct convert_args {
    u64 to, from, scale;
    i64 to_stride, from_stride;
    int k, type; /* of `from` */
};

#endif
