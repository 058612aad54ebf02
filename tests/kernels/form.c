/* SPDX-License-Identifier: MIT */
/* One form of the portable kernels, in the tests' dialect. */
#ifdef IN_GROUPS
#define DIALECT "group.h"
#endif

#include "../../kernels/portable.c"
