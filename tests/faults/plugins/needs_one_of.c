/* SPDX-License-Identifier: MIT */
/* One of the libraries that it could use is installed: it is used. */
#define NAME  "needs_one_of"
#define LINES "needs=libhw_nowhere.so.1|libc.so.6\n"
#include "minimal.h"
