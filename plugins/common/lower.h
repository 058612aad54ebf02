/* SPDX-License-Identifier: MIT */
/* lower.h - from an op to the launch of a portable kernel.
 *
 * One function for all ops and all vendors: it names the kernel, the storage types that
 * select its compiled form, its argument struct, its operands in order, and the number of
 * groups. What is left to a plugin is to turn operands into addresses of its own and to
 * launch.
 *
 * Pure: no allocation, no memory of the device read; any thread. */
#ifndef COMMON_LOWER_H
#define COMMON_LOWER_H

#include <hw/plugin.h>

#include "../../kernels/args.h"
#include "portable.h"

struct lowered {
    enum portable kernel;
    /* -DX and -DW, enum hw_dtype; HW_NONE where there is no such choice */
    int32_t x_type, w_type;
    uint32_t pointers;
    /* In the kernel's order, outputs first; NULL: absent, and never read. The args count
     * their offsets from hw_buffer.impl, or from a host tensor's `data`. */
    const struct hw_tensor *operand[PORTABLE_POINTERS];
    int64_t groups; /* at most 2^31 - 1; 0: nothing to do, launch nothing */
    /* about as many multiply-adds as this takes, to weigh the cost of threads */
    double work;
    uint32_t args_bytes;
    union {
        struct matmul_args matmul;
        struct attention_args attention;
        struct rows_args rows;
        struct copy_args copy;
        struct silu_args silu;
        struct rope_args rope;
        struct binary_args binary;
        struct swiglu_args swiglu;
        struct argmax_args argmax;
        struct rmsnorm_args rmsnorm;
        struct softmax_args softmax;
        struct add_rmsnorm_args add_rmsnorm;
    } args;
};

/* Lowers op (enum hw_op) with its checked struct. Answers NULL, or in words why no portable
 * kernel computes it. The operands point into `args`. */
const char *lower(uint32_t op, const void *args, struct lowered *out);

/* "matmul_vec". */
const char *portable_name(enum portable kernel);

#endif
