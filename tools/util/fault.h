/* SPDX-License-Identifier: MIT */
/* fault.h - the reason of a failure, in one sentence for the person who has to fix it: where, what,
 * remedy. */
#ifndef HW_MODEL_FAULT_H
#define HW_MODEL_FAULT_H

#include <stdbool.h>

struct fault {
    char text[4608]; /* room for the longest path and its sentence */
};

/* Writes the sentence, truncated to the size above, unless `why` is NULL. */
void fault_say(struct fault *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes the sentence and evaluates to false, so that a check reads `return fault(why, ...)`. It is
 * a macro so that the compiler sees the false, and with it which variables are set on success. */
#define fault(...) (fault_say(__VA_ARGS__), false)

#endif
