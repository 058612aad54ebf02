/* SPDX-License-Identifier: MIT */
/* text.h - bytes that grow at their end. */
#ifndef HW_MODEL_TEXT_H
#define HW_MODEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Start from zero; free(bytes) at the end. Terminated, besides, once anything was appended.
 */
struct text {
    char *bytes;
    size_t length, room;
};

/* False, with the text as it was, if memory runs out. */
bool text_append(struct text *text, const char *bytes, size_t count);

#endif
