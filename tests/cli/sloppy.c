/* SPDX-License-Identifier: MIT */
/* sloppy.c - a plugin that works, and exports a function besides its entry. */
#define NAME "sloppy"
#include "minimal.h"

#define SLOPPY_EXPORT __attribute__((visibility("default")))
SLOPPY_EXPORT float sloppy_helper(float x);

float sloppy_helper(float x)
{
    return 1 + x;
}
