/* SPDX-License-Identifier: MIT */
/* text.h - a growing array of bytes. */
#ifndef HW_MODEL_TEXT_H
#define HW_MODEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Initialise with zeros; free(bytes) at the end. After the first append, a NUL terminates it. */
struct text {
    char *bytes;
    size_t length, room;
};

/* Returns false, and leaves the text as it was, if out of memory. */
bool text_append(struct text *text, const char *bytes, size_t count);

#endif
