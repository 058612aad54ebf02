/* SPDX-License-Identifier: MIT */
/* sloppy.c - a working plugin that exports a second function besides its entry, and has unknown
 * keys in its manifest. */
#define NAME "sloppy"
#define LINES                                                                              \
    "maker=Nobody\ntitle=Sloppy\ncolor=red\ndriver=/sys/nothing\nvariable=SLOPPY_*\n"
#include "minimal.h"

#define SLOPPY_EXPORT __attribute__((visibility("default")))
SLOPPY_EXPORT float sloppy_helper(float x);

float sloppy_helper(float x)
{
    return 1 + x;
}
