/* SPDX-License-Identifier: MIT */
/* The portable kernels in plain C, one form of them, as a table of functions. The build
 * compiles this file once for each form, with kernel_forms of kernels/meson.build and
 *   -DTABLE=...    the name of the struct portable_kernels that is made
 *   -DDIALECT=...  the dialect; "dialect/c.h" if absent */
#define JOIN_(a, b)       a##_##b
#define JOIN(a, b)        JOIN_(a, b)
#define KERNEL_NAME(name) JOIN(name, TABLE)

#ifndef DIALECT
#define DIALECT "dialect/c.h"
#endif
#include DIALECT

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "prelude/quantise.h"

#include "prelude/group.h"

#include "prelude/product.h"

#include "portable.h"

#define POINTERS_2 p[0], p[1]
#define POINTERS_3 POINTERS_2, p[2]
#define POINTERS_4 POINTERS_3, p[3]
#define POINTERS_5 POINTERS_4, p[4]
#define POINTERS_6 POINTERS_5, p[5]
#define POINTERS_7 POINTERS_6, p[6]
#define POINTERS_8 POINTERS_7, p[7]

/* Groups of one kernel, which is compiled into this function. */
#define RUN(name, args_type, pointers)                                                     \
    static void run_##name(void *const *p, const void *args, int64_t first, int64_t end)   \
    {                                                                                      \
        const struct args_type a = *(const struct args_type *)args;                        \
        for (int64_t group = first; group < end; group++)                                  \
            KERNEL_NAME(name)(POINTERS_##pointers, a, (int)group);                         \
    }
#define ENTRY(name, args_type, pointers) [PORTABLE_##name] = run_##name,

#if defined(FORM_MIXED)
#include "text_mixed.h"
#define MIXED RUN
#include "kernels.def"
#else
#include "text_weighted.h"
#define WEIGHTED RUN
#if defined(FORM_PLAIN)
#include "text_plain.h"
#define PLAIN RUN
#endif
#include "kernels.def"
#endif

extern const struct portable_kernels TABLE;
const struct portable_kernels TABLE = { {
#if defined(FORM_MIXED)
#define MIXED ENTRY
#else
#define WEIGHTED ENTRY
#if defined(FORM_PLAIN)
#define PLAIN ENTRY
#endif
#endif
#include "kernels.def"
} };
