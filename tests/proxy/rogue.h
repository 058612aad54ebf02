/* SPDX-License-Identifier: MIT */
/* rogue.h - the first numbers that make the silu of rogue misbehave, and their effects. */
#ifndef ROGUE_H
#define ROGUE_H

enum act {
    ACT_CRASH = 101,
    ACT_LEAVE,
    ACT_ABORT,
    ACT_SCRIBBLE, /* endlessly, into all shared memory, and continues */
    ACT_CLOSE,    /* all open files, and goes on */
    ACT_HANG,
    ACT_REFUSE,     /* is unsupported */
    ACT_NO_FILES,   /* no descriptor can be opened any more */
    ACT_BABBLE,     /* logs more than the connection can hold, and crashes */
    ACT_HANG_LATER, /* when its device is closed */
    ACT_LOSE        /* its device; the log reports that the queue was closed */
};

#endif
