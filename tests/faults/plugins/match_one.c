/* SPDX-License-Identifier: MIT */
/* One of its rules matches. */
#define NAME  "match_one"
#define LINES "match=node:/dev/hw-nothing\nmatch=node:/dev/null\n"
#include "minimal.h"
