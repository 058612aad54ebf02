/* SPDX-License-Identifier: MIT */
/* text.c - formatting into new memory, and the nearest name in a list. */
#include "base/text.h"

#include "base/write_size.h"

#include <hw/hw.h>

#include <hw/report.h>

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

struct size_text size_text(uint64_t bytes)
{
    struct size_text size;
    write_size(bytes, size.text, sizeof size.text);
    return size;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

#define NEAR_LENGTH 40

static unsigned char least(unsigned char a, unsigned char b)
{
    return a < b ? a : b;
}

/* The number of edits between two words: a character inserted, deleted or replaced, or two
 * neighbours swapped (Damerau, 1964, each character edited once). */
static size_t distance(const char *a, const char *b)
{
    const size_t rows = strlen(a), columns = strlen(b);
    unsigned char d[NEAR_LENGTH + 1][NEAR_LENGTH + 1];

    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j <= columns; j++) {
            if (!i || !j) {
                d[i][j] = (unsigned char)(i + j);
                continue;
            }
            const int differ = lower(a[i - 1]) != lower(b[j - 1]);
            unsigned char best = (unsigned char)(d[i - 1][j - 1] + differ);
            best = least(best, (unsigned char)(d[i - 1][j] + 1));
            best = least(best, (unsigned char)(d[i][j - 1] + 1));
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                best = least(best, (unsigned char)(d[i - 2][j - 2] + 1));
            d[i][j] = best;
        }
    return d[rows][columns];
}

const char *nearest(const char *name, const char *const *list, size_t count)
{
    /* If more than a quarter of the letters are wrong, it is a different word. */
    size_t length = strlen(name), best = length < 8 ? 1 : length / 4;
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

size_t utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

bool kernel_list_valid(const char *text)
{
    for (bool more = true; more;) {
        size_t length = strcspn(text, ","), equals = strcspn(text, "=,");
        bool known = equals == length;
        for (uint32_t op = 0; op < HW_OP_COUNT && !known; op++)
            known = strlen(hw_op_name(op)) == equals &&
                    memcmp(hw_op_name(op), text, equals) == 0;
        if (!known || length == 0 || equals + 1 == length)
            return false;
        more = text[length] == ',';
        text += length + more;
    }
    return true;
}
