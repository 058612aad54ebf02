/* SPDX-License-Identifier: MIT */
/* names.c - the names of statuses, dtypes and ops, and the version of the library. */
#include "base/argument.h"
#include "base/message.h"

#include <build_stamp.h>
#include <hw/hw.h>
#include <hw/report.h>

#include <stdio.h>
#include <string.h>

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

static const char op_names[][16] = {
#define X(NAME, name) #name,
    HW_OPS(X)
#undef X
};

const char *hw_op_name(uint32_t op)
{
    return op < HW_OP_COUNT ? op_names[op] : "?";
}

enum hw_status hw_op_find(const char *name, uint32_t *op)
{
    char names[HW_OP_COUNT * sizeof op_names[0]];
    size_t used = 0;
    REQUIRE(name);
    REQUIRE(op);
    *op = 0;
    for (uint32_t i = 0; i < HW_OP_COUNT; i++)
        if (!strcmp(name, op_names[i]))
            return *op = i, HW_OK;
    for (uint32_t i = 0; i < HW_OP_COUNT; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, " %s", op_names[i]);
    return fail(HW_UNSUPPORTED, "hw_op_find: this library has no op '%s'; it has%s", name,
                names);
}
