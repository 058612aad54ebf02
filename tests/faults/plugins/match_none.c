/* SPDX-License-Identifier: MIT */
/* No hardware of this machine matches its rules. */
#define NAME  "match_none"
#define LINES "match=node:/dev/hw-nothing\nmatch=node:/dev/null/nothing\n"
#include "minimal.h"
