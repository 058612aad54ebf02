/* SPDX-License-Identifier: MIT */
/* dtype.c - see dtype.h. Files and library give the same formats the same names, "Q4_K"
 * and "q4_K", and the same blocks. */
#define _POSIX_C_SOURCE 200809L
#include "dtype.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <stdio.h>
#include <strings.h>

static bool is_integer(int32_t dtype)
{
    return dtype == HW_I8 || dtype == HW_I32 || dtype == HW_I64;
}

int32_t dtype_of(uint32_t type)
{
    for (int32_t dtype = HW_NONE + 1; dtype < HW_DTYPE_END; dtype++)
        if (!is_integer(dtype) &&
            strcasecmp(hw_dtype_name(dtype), gguf_type_name(type)) == 0 &&
            hw_dtype_block(dtype) == gguf_type_block(type) &&
            hw_dtype_bytes(dtype) == gguf_type_bytes(type))
            return dtype;
    return HW_NONE;
}

struct dtype_list dtypes_for(uint64_t cols)
{
    struct dtype_list list = { "" };
    const char *last = NULL;
    size_t at = 0;
    for (uint32_t type = 0; type < GGUF_TYPE_END; type++) {
        if (!dtype_of(type) || cols % gguf_type_block(type))
            continue;
        if (last)
            at += (size_t)snprintf(list.text + at, sizeof list.text - at, "%s%s",
                                   at ? ", " : "", last);
        last = gguf_type_name(type);
    }
    snprintf(list.text + at, sizeof list.text - at, " or %s", last);
    return list;
}
