/* SPDX-License-Identifier: MIT */
/* hangs.h - the first numbers that make the silu of hangs misbehave, and their effects. */
#ifndef HANGS_H
#define HANGS_H

enum hangs {
    HANGS_OP = 101, /* hangs immediately; the others: in the next call of this function */
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
