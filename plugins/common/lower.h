/* SPDX-License-Identifier: MIT */
/* lower.h - from an op to the launch of a portable kernel.
 *
 * One function for all ops and all vendors. It returns the kernel and its form, the argument
 * struct, the operands in order, and the number of groups. The plugin then only turns operands into
 * addresses and launches.
 *
 * It allocates nothing and does not read operands; any thread may call it. */
#ifndef COMMON_LOWER_H
#define COMMON_LOWER_H

#include <hw/plugin.h>

#include "../../kernels/portable.h"

struct lowered {
    const char *why; /* NULL, or the reason why no portable kernel computes it */
    enum portable kernel;
    enum portable_form form; /* the compiled form of the kernel for these types */
    uint32_t pointers;
    /* In the kernel's order, see kernels.def; NULL: absent, and never read. The args count
     * offsets from hw_buffer.impl, or from a host tensor's `data`. */
    const struct hw_tensor *operand[PORTABLE_POINTERS];
    int64_t groups; /* at most 2^31 - 1; 0: nothing to do, launch nothing */
    double work;    /* about as many multiply-adds as all groups take */
    uint32_t args_bytes;
    union portable_args args;
};

/* Lowers op (enum hw_op) with its checked struct. Returns NULL, or the reason why no portable
 * kernel computes the op. The operands point into `args`. */
const char *lower(uint32_t op, const void *args, struct lowered *out);

/* Like lower(), but operands may be packed (hw_tensor.layout): they are lowered as if they had
 * layout 0 and no strides. Only for rows that know the layout; no portable kernel does. */
const char *lower_packed(uint32_t op, const void *args, struct lowered *out);

/* The name of the kernel's entry point in a program that holds all forms of the kernels:
 * "matmul_vec", "rmsnorm_f16_f32". */
void lowered_name(const struct lowered *l, char *text, size_t size);

#endif
