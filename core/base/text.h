/* SPDX-License-Identifier: MIT */
/* text.h - formatting, sizes for people to read, and the nearest name in a list. */
#ifndef HW_BASE_TEXT_H
#define HW_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "64 KiB", "1.50 GiB", "12 bytes"; whole numbers are exact. */
struct size_text {
    char text[32];
};
struct size_text size_text(uint64_t bytes);
/* The caller frees the result. NULL: out of memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The name in `list` nearest to `name`, or NULL if none is near. */
const char *nearest(const char *name, const char *const *list, size_t count);
/* The length of the UTF-8 sequence at `text`, or 0 if there is none: no overlong form, no
 * surrogate, nothing above U+10FFFF (RFC 3629). */
size_t utf8_length(const char *text);
/* Whether `text` has the form of HW_KERNEL: entries "portable", "<row>" or "<op>=<row>"
 * with commas between them. Only the device knows which rows exist. */
bool kernel_list_valid(const char *text);

#endif
