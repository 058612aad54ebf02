/* SPDX-License-Identifier: MIT */
/* The portable kernels in plain C, one form of them. The build compiles this file several
 * times: -DTIER=base|v3|v4 with that tier's instructions, and -DFORM=mixed, or
 * FORM=f32|f16_f32|... with -DX and -DW as kernels/args.h asks. The compiler vectorises;
 * nothing here is for a processor. */
#include "portable.h"

#define JOIN_(a, b, c, d) a##_##b##_##c##_##d
#define JOIN(a, b, c, d)  JOIN_(a, b, c, d)
#define KERNEL_NAME(name) JOIN(group, name, FORM, TIER)

#include "dialect/c.h"

#include "args.h"

#include "prelude.h"

#define FORM_NAME_(form, tier) portable_##form##_##tier
#define FORM_NAME(form, tier)  FORM_NAME_(form, tier)

#define POINTERS_2 p[0], p[1]
#define POINTERS_3 POINTERS_2, p[2]
#define POINTERS_4 POINTERS_3, p[3]
#define POINTERS_6 POINTERS_4, p[4], p[5]

/* Groups of one kernel, which is compiled into this function. */
#define K(NAME, name, args_type, pointers)                                                 \
    static void run_##name(void *const *p, const void *args, int64_t first, int64_t end)   \
    {                                                                                      \
        const struct args_type a = *(const struct args_type *)args;                        \
        for (int64_t group = first; group < end; group++)                                  \
            KERNEL_NAME(name)(POINTERS_##pointers, a, (int)group);                         \
    }

#if defined(FORM_IS_MIXED)
#include "attention.c"
#include "copy.c"
#include "get_rows.c"
#include "matmul.c"
#include "matmul_vec.c"
#include "set_rows.c"
#define FORM_KERNELS(K) PORTABLE_MIXED(K)
#else
#include "add_rmsnorm.c"
#include "rmsnorm.c"
#include "softmax.c"
#if defined(FORM_IS_WEIGHTED)
#define FORM_KERNELS(K) PORTABLE_WEIGHTED(K)
#else
#include "add.c"
#include "argmax.c"
#include "mul.c"
#include "rope.c"
#include "silu.c"
#include "swiglu.c"
#define FORM_KERNELS(K) PORTABLE_WEIGHTED(K) PORTABLE_PLAIN(K)
#endif
#endif

FORM_KERNELS(K)
#undef K

const struct portable_form FORM_NAME(FORM, TIER) = { {
#define K(NAME, name, args_type, pointers) [PORTABLE_##NAME] = run_##name,
    FORM_KERNELS(K)
#undef K
} };
