/* SPDX-License-Identifier: MIT */
/* dialect.h - what the tests compile kernels with, and run them by: plain C, one work-item
 * per group, or with IN_GROUPS groups of many. KERNEL_NAME, X and W may be defined before. */
#ifdef IN_GROUPS
#include "group.h"
#else
#include "dialect/c.h"
#endif

#include "args.h"

#include "prelude.h"
