/* SPDX-License-Identifier: MIT */
/* utf8.c - see utf8.h. */
#include "utf8.h"

int utf8_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The second byte tells overlong forms, surrogates and code points above U+10FFFF. */
bool utf8_continues(unsigned char lead, int index, unsigned char byte)
{
    unsigned char low = 0x80, high = 0xbf;
    if (index == 1) {
        low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    }
    return byte >= low && byte <= high;
}

size_t utf8_at(const char *text, size_t left)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const int length = utf8_length(bytes[0]);
    if (length == 0 || (size_t)length > left)
        return 0;
    for (int i = 1; i < length; i++)
        if (!utf8_continues(bytes[0], i, bytes[i]))
            return 0;
    return (size_t)length;
}

size_t utf8_printable_at(const char *text, size_t left)
{
    const unsigned char *c = (const unsigned char *)text;
    const size_t length = utf8_at(text, left);
    const bool control = *c < ' ' || *c == 0x7f ||
                         (length == 2 && *c == 0xc2 && c[1] < 0xa0);
    return control ? 0 : length;
}
