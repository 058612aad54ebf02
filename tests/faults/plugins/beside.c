/* SPDX-License-Identifier: MIT */
/* It would dlopen a library that lies beside it: it is linked with the rpath $ORIGIN. */
#define NAME  "beside"
#define LINES "needs=libbeside.so.1\n"
#include "minimal.h"
