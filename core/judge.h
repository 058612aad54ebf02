/* SPDX-License-Identifier: MIT */
/* judge.h - the contract between the library and hw_shadow.so, which judges results for
 * HW_SHADOW: it has the tolerances of conformance. It is of the library's build and is installed
 * beside hw-probe. route/shadow.c loads it, verify/shadow.c implements it. */
#ifndef HW_JUDGE_H
#define HW_JUDGE_H

#include <hw/plugin.h>

enum { SHADOW_OPERANDS = 8 };

/* A call that a device has computed. Operands are in the order of the op's struct, as contiguous
 * elements, in which no extent is repeated; NULL: absent, or not of this kind. */
struct shadow_call {
    const char *stamp; /* the build of the library, to be compared first */
    uint32_t op;
    uint32_t precision;                    /* enum hw_precision */
    const void *args;                      /* the op's struct: its buffers are not used */
    const void *before[SHADOW_OPERANDS];   /* operands that the op reads */
    void *after[SHADOW_OPERANDS];          /* operands that the op writes; may be changed */
    const void *expected[SHADOW_OPERANDS]; /* the same, by the CPU plugin */
};

enum shadow_verdict {
    SHADOW_RIGHT,
    SHADOW_WRONG,  /* `why` says which element: "y[0,3] is 2, should be 11" */
    SHADOW_UNKNOWN /* memory ran out */
};

/* Judges the call. `why` has `size` bytes. Any thread may call it. If call->stamp
 * is of another build, the result is SHADOW_UNKNOWN. Otherwise an op that does not exist is
 * SHADOW_RIGHT: so the library can compare the builds. */
typedef int32_t shadow_judge(const struct shadow_call *call, char *why, size_t size);
HW_EXPORT shadow_judge hw_shadow_judge;

#endif
