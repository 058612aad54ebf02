/* SPDX-License-Identifier: MIT */
/* hangs.h - what the silu of hangs does if its first number is one of these. */
#ifndef HANGS_H
#define HANGS_H

enum hangs {
    HANGS_OP = 101, /* at once; the others: when it is next asked for this */
    HANGS_WAIT,
    HANGS_EVENT,
    HANGS_QUEUE,
    HANGS_DEVICE,
    HANGS_CLOSE,
    TAKES_LONG,  /* MOMENT, but returns */
    TAKES_LONGER /* MOMENTS times that */
};

enum { MOMENT = 50000 /* microseconds */, MOMENTS = 20 };

#endif
