/* SPDX-License-Identifier: MIT */
/* The row kernels in plain C for one pair of storage types X and W, their names ending in both. */
#define JOIN_(name, x, w) name##_##x##_##w
#define JOIN(name, x, w)  JOIN_(name, x, w)
#define KERNEL_NAME(name) JOIN(name, X, W)
#include "dialect/c.h"
/**/
#include "args.h"
/**/
#include "prelude.h"
/**/
#include "add.c"
#include "add_rmsnorm.c"
#include "argmax.c"
#include "mul.c"
#include "rmsnorm.c"
#include "rope.c"
#include "silu.c"
#include "softmax.c"
#include "swiglu.c"
