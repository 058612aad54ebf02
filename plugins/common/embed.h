/* SPDX-License-Identifier: MIT */
/* embed.h - files that are part of the plugin: kernel text and images.
 *
 * kernels/embed.c writes them at build time as a C source with one list: the name (without a
 * directory) and the bytes of each file. A NULL name ends the list. */
#ifndef COMMON_EMBED_H
#define COMMON_EMBED_H

#include <stddef.h>

struct embedded {
    const char *name;          /* "rmsnorm.c" */
    const unsigned char *data; /* aligned to 64; a zero follows, so text is a C string */
    size_t bytes;              /* without that zero */
};

#endif
