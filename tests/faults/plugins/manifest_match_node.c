/* SPDX-License-Identifier: MIT */
/* The file of its device has a relative path. */
#define NAME  "manifest_match_node"
#define LINES "match=node:dev/null\n"
#include "minimal.h"
