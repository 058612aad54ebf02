/* SPDX-License-Identifier: MIT */
/* Of the libraries that it could use one is there: it is used. */
#define NAME  "needs_one_of"
#define LINES "needs=libhw_nowhere.so.1|libc.so.6\n"
#include "minimal.h"
