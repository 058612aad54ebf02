/* SPDX-License-Identifier: MIT */
/* text.c - see text.h. The room doubles when it is full. */
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool text_append(struct text *text, const char *bytes, size_t count)
{
    size_t needed, room;
    if (__builtin_add_overflow(text->length, count, &needed) ||
        __builtin_add_overflow(needed, (size_t)1, &needed) ||
        __builtin_mul_overflow(needed, (size_t)2, &room))
        return false;
    if (needed > text->room) {
        char *bigger = realloc(text->bytes, room);
        if (!bigger)
            return false;
        text->bytes = bigger;
        text->room = room;
    }
    if (count)
        memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
    return true;
}
