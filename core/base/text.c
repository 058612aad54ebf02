/* SPDX-License-Identifier: MIT */
/* text.c - formatting into memory of its own, and the nearest of some names. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_format(const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

#define NEAR_LENGTH 40

/* Levenshtein's distance: the characters to insert, delete or replace. */
static size_t distance(const char *a, const char *b)
{
    size_t length = strlen(b), row[NEAR_LENGTH + 1];
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; *a; i++, a++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t best = diagonal + (lower(*a) != lower(b[j - 1]));
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[length];
}

const char *nearest(const char *name, const char *const *list, size_t count)
{
    /* More than a third of the letters wrong is another word. */
    size_t length = strlen(name), best = length / 3 + 1;
    const char *found = NULL;
    if (length > NEAR_LENGTH)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) > NEAR_LENGTH)
            continue;
        size_t far = distance(name, list[i]);
        if (far < best || (far == best && !found)) {
            best = far;
            found = list[i];
        }
    }
    return found;
}
