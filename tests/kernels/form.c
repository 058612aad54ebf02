/* SPDX-License-Identifier: MIT */
/* One form of the portable kernels, in the dialect that the tests run them in. */
#ifdef IN_GROUPS
#define DIALECT "group.h"
#endif

#include "../../kernels/portable.c"
