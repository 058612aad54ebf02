/* SPDX-License-Identifier: MIT */
/* A title without a letter. */
#define NAME  "manifest_title_empty"
#define LINES "title=\n"
#include "minimal.h"
