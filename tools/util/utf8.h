/* SPDX-License-Identifier: MIT */
/* utf8.h - the characters of UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing
 * above U+10FFFF. */
#ifndef HW_MODEL_UTF8_H
#define HW_MODEL_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of a character that starts with `lead`; 0 if none does. */
int utf8_length(unsigned char lead);

/* Whether `byte` may be byte number `index`, 1 to 3, of a character that starts with
 * `lead`. */
bool utf8_continues(unsigned char lead, int index, unsigned char byte);

/* The length of the character at `text`, of which `left` bytes, at least one, may be read; 0
 * if there is no valid one. */
size_t utf8_at(const char *text, size_t left);

/* Like utf8_at(), but returns 0 for control characters as well (ASCII, and U+0080 to U+009F): a
 * terminal obeys them, so they must not be printed. */
size_t utf8_printable_at(const char *text, size_t left);

#endif
