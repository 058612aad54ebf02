/* SPDX-License-Identifier: MIT */
/* dtype.h - the tensor types of model files as those of the library. */
#ifndef HW_MODEL_DTYPE_H
#define HW_MODEL_DTYPE_H

#include "gguf.h"

/* The library's dtype of a type in a file; HW_NONE if the library has none that weights can
 * have: a float or a block type. */
int32_t dtype_of(uint32_t type);

/* The names of all types that rows of `cols` elements can have: "F32, F16 or BF16". */
struct dtype_list {
    char text[128];
};
struct dtype_list dtypes_for(uint64_t cols);

#endif
