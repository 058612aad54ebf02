/* SPDX-License-Identifier: MIT */
/* Names a library that lies beside it: it is linked with the rpath $ORIGIN:$ORIGIN/more. */
#define NAME  "beside"
#define LINES "needs=libbeside.so.1\n"
#include "minimal.h"
