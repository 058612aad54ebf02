/* SPDX-License-Identifier: MIT */
/* fault.h - what went wrong, in one sentence for the person who has to fix it: where, what,
 * remedy. */
#ifndef HW_MODEL_FAULT_H
#define HW_MODEL_FAULT_H

#include <stdbool.h>

struct fault {
    char text[4608]; /* a longest path and its sentence */
};

/* Writes the sentence, cut at the size above. `why` may be NULL: then it is not wanted. */
void fault_say(struct fault *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says it and is false, so that a check reads `return fault(why, ...)`. A macro, because
 * then the compiler sees the false too, and knows what was set when a function succeeded.
 */
#define fault(...) (fault_say(__VA_ARGS__), false)

#endif
