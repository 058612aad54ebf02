/* SPDX-License-Identifier: MIT */
/* Needs a library in its own directory: it is linked with the rpath $ORIGIN:$ORIGIN/more. */
#define NAME  "beside"
#define LINES "needs=libbeside.so.1\n"
#include "minimal.h"
