/* SPDX-License-Identifier: MIT */
/* Two titles. */
#define NAME  "manifest_title_twice"
#define LINES "title=One\ntitle=Two\n"
#include "minimal.h"
