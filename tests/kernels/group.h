/* SPDX-License-Identifier: MIT */
/* The dialect in plain C with groups of many work-items, as on a GPU: coroutines that alternate at
 * every barrier (group.c). It runs the paths that GROUP == 1 never takes. */
#ifndef KERNELS_TEST_GROUP_H
#define KERNELS_TEST_GROUP_H

#define VEC 1
typedef float vec;
#define load_vec(p)     (*(p))
#define store_vec(p, v) (*(p) = (v))
#define vec_zero        0.0f
#define vec_sum(v)      (v)

#include "dialect/c.h"

#undef SHARED
#undef BARRIER
#undef local_id
#undef GROUP
#define SHARED     static
#define BARRIER()  group_barrier(__LINE__)
#define local_id() group_item
#define GROUP      64

/* The work-item whose turn it is. */
extern int group_item;
/* Returns once all other work-items have reached this line's barrier, too. */
void group_barrier(int line);

#endif
