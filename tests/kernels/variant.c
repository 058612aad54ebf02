/* SPDX-License-Identifier: MIT */
/* The row kernels in plain C for one pair of storage types X and W, their names ending
 * in both. */
#define JOIN_(name, x, w) name##_##x##_##w
#define JOIN(name, x, w)  JOIN_(name, x, w)
#define KERNEL_NAME(name) JOIN(name, X, W)
#include "dialect.h"

#include "add.c"
#include "add_rmsnorm.c"
#include "argmax.c"
#include "mul.c"
#include "rmsnorm.c"
#include "rope.c"
#include "silu.c"
#include "softmax.c"
#include "swiglu.c"

/* The functions of the prelude, in loops and under the flags that kernels are built
 * with. */
#define SWEEP(function)                                                                    \
    void KERNEL_NAME(sweep_##function)(float *y, const float *x, int n)                    \
    {                                                                                      \
        for (int i = 0; i < n; i++)                                                        \
            y[i] = function(x[i]);                                                         \
    }
SWEEP(exp_f32)
SWEEP(log_f32)
SWEEP(tanh_f32)
