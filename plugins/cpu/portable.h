/* SPDX-License-Identifier: MIT */
/* portable.h - the portable kernels as this plugin has them: compiled once for each tier of
 * processors and each form, that is, storage of activations and weights. */
#ifndef CPU_PORTABLE_H
#define CPU_PORTABLE_H

#include "common/portable.h"

#include <stdint.h>

/* Groups first .. end - 1 of a kernel, on pointers in the kernel's order and its args
 * struct. */
typedef void portable_fn(void *const *pointers, const void *args, int64_t first,
                         int64_t end);

/* A form's kernels; NULL those that have no such form. */
struct portable_form {
    portable_fn *kernel[PORTABLE_COUNT];
};

/* mixed: kernels that take any types; the others name X, and W where it is another. */
#define PORTABLE_FORMS(F, tier)                                                            \
    F(mixed, tier)                                                                         \
    F(f32, tier) F(f16, tier) F(bf16, tier) F(f16_f32, tier) F(bf16_f32, tier)
#if defined(__x86_64__)
#define PORTABLE_TIERS(T) T(base) T(v3) T(v4)
#else
#define PORTABLE_TIERS(T) T(base)
#endif

enum portable_form_index {
#define F(form, tier) FORM_##form,
    PORTABLE_FORMS(F, )
#undef F
        FORM_COUNT
};
enum portable_tier {
#define T(tier) TIER_##tier,
    PORTABLE_TIERS(T)
#undef T
        TIER_COUNT
};

#define F(form, tier) extern const struct portable_form portable_##form##_##tier;
#define T(tier)       PORTABLE_FORMS(F, tier)
PORTABLE_TIERS(T)
#undef T
#undef F

#endif
