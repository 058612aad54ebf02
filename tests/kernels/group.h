/* SPDX-License-Identifier: MIT */
/* The dialect in plain C with groups of many work-items, as on a GPU: OpenMP threads that
 * meet at every barrier. It runs the paths that GROUP == 1 never takes. */
#ifndef KERNELS_TEST_GROUP_H
#define KERNELS_TEST_GROUP_H

#include <omp.h>

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
#define BARRIER()  _Pragma("omp barrier")
#define local_id() omp_get_thread_num()
#define GROUP      64

#endif
