/* SPDX-License-Identifier: MIT */
/* A title that shows nothing. */
#define NAME  "manifest_title_blank"
#define LINES "title= \n"
#include "minimal.h"
