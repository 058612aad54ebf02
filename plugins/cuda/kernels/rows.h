/* SPDX-License-Identifier: MIT */
/* rows.h - what rows.cu and the plans of its launches agree on. */
#ifndef ROWS_H
#define ROWS_H

enum {
    ROWS_QUADS = 4,     /* pieces of 16 bytes of a row that a thread has, at most */
    ROWS_THREADS = 512, /* of a group that has a row, at most */
    ROWS_SPAN = 256,    /* threads of a group of an elementwise kernel */
    ROWS_SHARES = 8,    /* groups that share a row of argmax */
    ROWS_CONSTANT = 2   /* has_weight of a norm whose weight no kernel writes */
};

#endif
