/* SPDX-License-Identifier: MIT */
/* A rule of a kind that a later version may know. */
#define NAME  "match_later"
#define LINES "match=later:thing\n"
#include "minimal.h"
