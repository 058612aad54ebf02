/* SPDX-License-Identifier: MIT */
/* portable.h - the portable kernels there are. Includes nothing: a plugin's host code, and
 * the kernels' own translation units, read it alike. */
#ifndef COMMON_PORTABLE_H
#define COMMON_PORTABLE_H

/* K(NAME, name, args, pointers): `pointers` operands, then the struct. By how often each is
 * compiled: MIXED ones once, for they take any mix of types at run time; PLAIN ones for
 * each type X of their activations; WEIGHTED ones for each X, with W the same and with W
 * f32. */
#define PORTABLE_MIXED(K)                                                                  \
    K(MATMUL, matmul, matmul_args, 4)                                                      \
    K(MATMUL_VEC, matmul_vec, matmul_args, 4)                                              \
    K(ATTENTION, attention, attention_args, 6)                                             \
    K(GET_ROWS, get_rows, rows_args, 3)                                                    \
    K(SET_ROWS, set_rows, rows_args, 3)                                                    \
    K(COPY, copy, copy_args, 2)
#define PORTABLE_PLAIN(K)                                                                  \
    K(SILU, silu, silu_args, 2)                                                            \
    K(ROPE, rope, rope_args, 4)                                                            \
    K(ADD, add, binary_args, 3)                                                            \
    K(MUL, mul, binary_args, 3)                                                            \
    K(SWIGLU, swiglu, swiglu_args, 3)                                                      \
    K(ARGMAX, argmax, argmax_args, 2)
#define PORTABLE_WEIGHTED(K)                                                               \
    K(RMSNORM, rmsnorm, rmsnorm_args, 3)                                                   \
    K(SOFTMAX, softmax, softmax_args, 3)                                                   \
    K(ADD_RMSNORM, add_rmsnorm, add_rmsnorm_args, 4)
#define PORTABLE_ALL(K) PORTABLE_MIXED(K) PORTABLE_PLAIN(K) PORTABLE_WEIGHTED(K)

enum portable {
#define K(NAME, name, args, pointers) PORTABLE_##NAME,
    PORTABLE_ALL(K)
#undef K
        PORTABLE_COUNT
};
#define PORTABLE_POINTERS 6 /* the most that a kernel takes */

#endif
