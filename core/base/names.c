/* SPDX-License-Identifier: MIT */
/* names.c - the names of statuses, dtypes and ops, and the version of the library. */
#include <hw/hw.h>

uint32_t hw_version(void)
{
    return HW_VERSION;
}

const char *hw_version_string(void)
{
    return HW_BUILD_STAMP;
}

const char *hw_status_name(int32_t status)
{
    switch (status) {
#define X(NAME, value, text)                                                               \
    case value:                                                                            \
        return "HW_" #NAME;
        HW_STATUSES(X)
#undef X
    default:
        return "?";
    }
}

const char *hw_dtype_name(int32_t dtype)
{
    switch (dtype) {
#define X(NAME, value, name, elements, bytes)                                              \
    case value:                                                                            \
        return name;
        HW_DTYPES(X)
#undef X
    default:
        return "?";
    }
}

const char *hw_op_name(uint32_t op)
{
    static const char *const names[] = {
#define X(NAME, name) #name,
        HW_OPS(X)
#undef X
    };
    return op < HW_OP_COUNT ? names[op] : "?";
}
