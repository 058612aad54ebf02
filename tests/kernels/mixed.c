/* SPDX-License-Identifier: MIT */
/* The kernels that take any mix of storage types at run time, in plain C. */
#include "dialect/c.h"
/**/
#include "args.h"
/**/
#include "prelude.h"
/**/
#include "attention.c"
#include "copy.c"
#include "get_rows.c"
#include "matmul.c"
#include "matmul_vec.c"
#include "set_rows.c"
