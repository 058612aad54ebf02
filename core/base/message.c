/* SPDX-License-Identifier: MIT */
/* message.c - the thread's message, and the names of what the library counts in. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[sizeof(struct words)];
static _Thread_local char said[1024]; /* by a plugin */

enum hw_status fail(enum hw_status status, const char *format, ...)
{
    /* Formatted aside: an argument may be the message itself. */
    char text[sizeof message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(message, text, sizeof message);
    return status;
}

enum hw_status fail_in(enum hw_status status, const char *format, ...)
{
    char text[sizeof message];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = written > 0 ? (size_t)written : 0;
    if (length < sizeof text)
        snprintf(text + length, sizeof text - length, "%s", message);
    memcpy(message, text, sizeof message);
    return status;
}

void plugin_asked(void)
{
    said[0] = '\0';
}

int32_t plugin_says(int32_t status, const char *text)
{
    snprintf(said, sizeof said, "%s", text ? text : "");
    return status;
}

const char *plugin_words(void)
{
    return said[0] ? said : "no reason given";
}

enum hw_status plugin_failed(int32_t status)
{
    fail((enum hw_status)status, "%s", plugin_words());
    plugin_asked();
    return (enum hw_status)status;
}

struct words words_keep(void)
{
    struct words words;
    memcpy(words.text, message, sizeof words.text);
    return words;
}

void words_restore(const struct words *words)
{
    memcpy(message, words->text, sizeof message);
}

const char *hw_message(void)
{
    return message;
}

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
