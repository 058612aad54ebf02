/* SPDX-License-Identifier: MIT */
/* rogue.h - what the silu of rogue does if its first number is one of these. */
#ifndef ROGUE_H
#define ROGUE_H

enum act {
    ACT_CRASH = 101,
    ACT_LEAVE,
    ACT_ABORT,
    ACT_SCRIBBLE, /* without end, into all memory that is shared, and goes on */
    ACT_CLOSE,    /* all open files, and goes on */
    ACT_HANG,
    ACT_REFUSE,     /* is unsupported */
    ACT_NO_FILES,   /* no descriptor can be opened any more */
    ACT_BABBLE,     /* logs more than the connection has room for, and crashes */
    ACT_HANG_LATER, /* when its device is closed */
    ACT_LOSE        /* the device; a line of the log says that the queue was closed */
};

#endif
