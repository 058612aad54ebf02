/* SPDX-License-Identifier: MIT */
/* deadline.h - a thread that shows on the terminal how long a piece of work has taken, and that
 * acts if it takes too long. */
#ifndef HW_TOOL_DEADLINE_H
#define HW_TOOL_DEADLINE_H

struct deadline {
    const char *work; /* "trying ./hw_mine.so" */
    double seconds;   /* 0: no limit */
    /* Called on the thread when the time is over. It must end the process. */
    void (*late)(void *user);
    void *user;
};

/* Begins a piece of work, and ends the one before. From the first second on, a line on the terminal
 * shows the work and its seconds. */
void deadline_begin(const struct deadline *deadline);
/* Ends the work. Afterwards, its `late` is not called; if it has been called, this does not
 * return. */
void deadline_end(void);

#endif
