/* SPDX-License-Identifier: MIT */
/* run.h - shared by the files run_*.c: arrays of any storage type, comparison with a definition in
 * double precision, and running the groups of a kernel. Each of these files is one family of tests;
 * test_kernels.c runs them all. */
#ifndef KERNELS_TEST_RUN_H
#define KERNELS_TEST_RUN_H

#include "dialect.h"

#include "portable.h"

#include <hw/types.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

struct family {
    const struct CMUnitTest *tests;
    size_t count;
};
extern const struct family values_family, rows_family, products_family, moves_family;

/* ---- launches ---- */

/* The forms of the kernels: portable_mixed_base, portable_f16_f32_base ... */
extern const struct portable_kernels portable_mixed_base;
#define VARIANT(act, wgt)                                                                  \
    extern const struct portable_kernels portable_##act##_##wgt##_base;
#include "kernels.def"

/* LAUNCH(&portable_mixed_base, copy, groups, &args, dst, src): runs all groups of a kernel. */
#define LAUNCH(form, name, groups, args, ...)                                              \
    launch((form)->kernel[PORTABLE_##name], groups, args,                                  \
           (const void *const[]){ __VA_ARGS__ })
void launch(portable_fn *kernel, i64 groups, const void *args, const void *const *pointers);
/* group.c: runs one group, whose work-items alternate. */
void group_run(portable_fn *kernel, i64 group, const void *args, void *const *pointers);

/* The number of pieces of `size` in n; the last piece may be smaller. */
static inline i64 pieces(i64 n, i64 size)
{
    return (n + size - 1) / size;
}

/* ---- arrays.c ---- */

/* Arrays are allocated with their exact size, so that a sanitizer detects every overrun. */
struct array {
    int type; /* enum storage */
    i64 n;
    u8 *at;
};

i64 bytes_of(int type, i64 n);
/* Filled with a byte that is not a valid result. */
struct array new_array(int type, i64 n);
/* Uniform in -size .. size; blocks of any codes. */
struct array random_array(int type, i64 n, double size);
/* n zeros. */
double *numbers(i64 n);
/* Memory for other purposes. release() frees it and all arrays above. */
void *hold(size_t bytes);
void release(void);

/* By the oracle's definitions of the types. */
double get(struct array a, i64 i);
/* For f32, f16 and bf16. */
void put(struct array a, i64 i, double v);
/* The next number of the sequence that all tests share, uniform in -1 .. 1. */
double random_unit(void);
/* Converts by the definition of f16, and shares no code with the conversions under test. */
double half_value(unsigned h);

/* The positions of the elements of a contiguous operand [.., n1, n2, cols]. */
struct place packed(int type, i64 n1, i64 n2, i64 cols);

/* Fails unless the array equals the numbers. The norm of the difference must be within the
 * precision of the storage type, or within `bound` if that is larger. */
void check(const char *what, struct array got, const double *want, double bound);

#endif
