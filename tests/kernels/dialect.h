/* SPDX-License-Identifier: MIT */
/* dialect.h - the dialect in which the tests compile kernels: plain C with one work-item per group
 * or, with IN_GROUPS, groups of many; then args.h and the prelude. */
#ifdef IN_GROUPS
#include "group.h"
#else
#include "dialect/c.h"
#endif

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "prelude/quantise.h"

#include "prelude/group.h"

#include "prelude/product.h"
