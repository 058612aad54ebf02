/* SPDX-License-Identifier: MIT */
/* A title of blanks. */
#define NAME  "manifest_title_blank"
#define LINES "title= \n"
#include "minimal.h"
