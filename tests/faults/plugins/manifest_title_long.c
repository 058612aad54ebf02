/* SPDX-License-Identifier: MIT */
/* A title of 32 bytes, one more than the limit. */
#define NAME  "manifest_title_long"
#define LINES "title=0123456789abcdef0123456789abcdef\n"
#include "minimal.h"
