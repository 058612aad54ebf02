/* SPDX-License-Identifier: MIT */
/* message.c - the thread's message, and the message of a plugin. */
#include "base/message.h"

#include <hw/report.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[sizeof(struct saved_message)];
static _Thread_local char said[1024]; /* the plugin's message */

enum hw_status fail(enum hw_status status, const char *format, ...)
{
    /* Formatted separately: an argument may be the message itself. */
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

void plugin_message_clear(void)
{
    said[0] = '\0';
}

int32_t plugin_message_set(int32_t status, const char *text)
{
    snprintf(said, sizeof said, "%s", text ? text : "");
    return status;
}

const char *plugin_message(void)
{
    return said[0] ? said : "no reason given";
}

enum hw_status plugin_failed(int32_t status)
{
    if (said[0])
        fail((enum hw_status)status, "%s", said);
    else
        fail((enum hw_status)status, "the plugin returned %s without a message",
             hw_status_name(status));
    plugin_message_clear();
    return (enum hw_status)status;
}

struct saved_message message_save(void)
{
    struct saved_message saved;
    memcpy(saved.text, message, sizeof saved.text);
    return saved;
}

void message_restore(const struct saved_message *saved)
{
    memcpy(message, saved->text, sizeof message);
}

const char *hw_message(void)
{
    return message;
}
