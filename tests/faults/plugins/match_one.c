/* SPDX-License-Identifier: MIT */
/* One of its rules holds. */
#define NAME  "match_one"
#define LINES "match=node:/dev/hw-nothing\nmatch=node:/dev/null\n"
#include "minimal.h"
