/* SPDX-License-Identifier: MIT */
/* portable.h - the portable kernels as host code sees them: their numbers, their forms, their
 * arguments; and, where they are compiled as plain C, one form of them as a table of
 * functions (portable.c). Made from kernels.def. */
#ifndef KERNELS_PORTABLE_H
#define KERNELS_PORTABLE_H

#include "args.h"

#include <stdint.h>

/* Storage types by the words that ACT and WGT are. */
enum { STORAGE_f32 = STORAGE_F32, STORAGE_f16 = STORAGE_F16, STORAGE_bf16 = STORAGE_BF16 };

/* PORTABLE_matmul ... */
enum portable {
#define K(name, args, pointers) PORTABLE_##name,
#define MIXED                   K
#define PLAIN                   K
#define WEIGHTED                K
#include "kernels.def"
#undef K
    PORTABLE_COUNT
};
#define PORTABLE_POINTERS 8 /* the most that a kernel takes */

/* How a kernel was compiled: FORM_mixed once for all types, FORM_f16_f32 for ACT f16 and WGT
 * f32. */
enum portable_form {
    FORM_mixed,
#define VARIANT(act, wgt) FORM_##act##_##wgt,
#include "kernels.def"
    FORM_COUNT
};

union portable_args {
#define K(name, args, pointers) struct args name;
#define MIXED                   K
#define PLAIN                   K
#define WEIGHTED                K
#include "kernels.def"
#undef K
};

/* Computes groups first .. end - 1 of a kernel. `pointers` are in the kernel's order, `args`
 * is its struct. */
typedef void portable_fn(void *const *pointers, const void *args, int64_t first,
                         int64_t end);

/* The kernels of one form, by enum portable; NULL: the form does not have it. */
struct portable_kernels {
    portable_fn *kernel[PORTABLE_COUNT];
};

#endif
