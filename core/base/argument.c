/* SPDX-License-Identifier: MIT */
/* argument.c - checks of arguments that public functions share. */
#include "base/argument.h"

#include "base/message.h"

#include <hw/plugin.h>

#include <string.h>

enum hw_status fail_null(const char *function, const char *argument)
{
    return fail(HW_INVALID, "%s: %s must not be NULL", function, argument);
}

enum hw_status check_size(const char *function, const char *argument, const void *given,
                          size_t least)
{
    const uint32_t size = given ? *(const uint32_t *)given : 0;
    if (!given || size >= least)
        return HW_OK;
    return fail(HW_INVALID, "%s: %s->size is %u; set it to sizeof *%s", function, argument,
                (unsigned)size, argument);
}

enum hw_status answer_struct(void *to, const void *from, size_t size)
{
    uint32_t bytes;
    memcpy(&bytes, to, sizeof bytes);
    if (bytes > size)
        bytes = (uint32_t)size;
    memcpy(to, from, bytes);
    memcpy(to, &bytes, sizeof bytes);
    return HW_OK;
}

enum hw_status check_fields(const char *function, const char *argument, const void *given,
                            size_t least, size_t known)
{
    const enum hw_status status = check_size(function, argument, given, least);
    if (status || !given || hw_knows(given, known))
        return status;
    return fail(
        HW_UNSUPPORTED,
        "%s: %s sets a field that this library version does not know; leave it zero, "
        "or update the library",
        function, argument);
}
