/* SPDX-License-Identifier: MIT */
/* A library that it would dlopen is not installed. */
#define NAME  "needs_missing"
#define LINES "needs=libhw_nowhere.so.1\nremedy=Install nowhere\n"
#include "minimal.h"
