/* SPDX-License-Identifier: MIT */
/* write_size.h - sizes for people to read. It includes nothing of the library: the command uses it,
 * too. */
#ifndef HW_BASE_WRITE_SIZE_H
#define HW_BASE_WRITE_SIZE_H

#include <stdint.h>
#include <stdio.h>

/* "64 KiB", "1.50 GiB", "12 bytes"; whole numbers are exact. */
static inline void write_size(uint64_t bytes, char *text, size_t size)
{
    static const char units[][6] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB" };
    uint64_t unit = 1;
    int index = 0;

    while (bytes / unit >= 1024 && index < 5) {
        unit *= 1024;
        index++;
    }
    snprintf(text, size, "%.*f %.5s", bytes % unit ? 2 : 0, (double)bytes / (double)unit,
             units[index]);
}

#endif
