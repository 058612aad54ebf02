/* SPDX-License-Identifier: MIT */
/* fault.h - why something failed, in one sentence for the person who has to fix it: where,
 * what, remedy. */
#ifndef HW_MODEL_FAULT_H
#define HW_MODEL_FAULT_H

#include <stdbool.h>

struct fault {
    char text[4608]; /* room for the longest path and its sentence */
};

/* Writes the sentence, truncated to the size above, unless `why` is NULL. */
void fault_say(struct fault *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes the sentence and evaluates to false, so that a check reads `return fault(why,
 * ...)`. As a macro, it lets the compiler see the false, and so which variables a success
 * has set. */
#define fault(...) (fault_say(__VA_ARGS__), false)

#endif
