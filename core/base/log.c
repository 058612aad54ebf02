/* SPDX-License-Identifier: MIT */
/* log.c - one line at a time, to the application's function or to standard error. */
#include "base/log.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local bool telling;

static const char *level_name(int32_t level)
{
    static const char names[][8] = { "", "error", "warning", "info", "debug" };
    return level >= HW_LOG_ERROR && level <= HW_LOG_DEBUG ? names[level] : "log";
}

/* Replaces control characters, which a plugin or a file name may contain: they would break the line
 * or control a terminal. U+0080 to U+009F are two bytes in UTF-8. */
static void one_line(char *text)
{
    while (*text) {
        const size_t length = utf8_length(text);
        const unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
        const bool control = first < 0x20 || first == 0x7f ||
                             (first == 0xc2 && second < 0xa0);
        if (length == 0)
            *text = '?';
        else if (control)
            memset(text, ' ', length);
        text += length ? length : 1;
    }
}

void log_line(struct log *log, int32_t level, const char *format, ...)
{
    if (level > log->level)
        return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    one_line(text);

    pthread_mutex_lock(&log->lock);
    telling = true;
    if (log->fn)
        log->fn(log->user, level, text);
    else
        fprintf(stderr, "hw: %s: %s\n", level_name(level), text);
    telling = false;
    pthread_mutex_unlock(&log->lock);
}

bool log_is_telling(void)
{
    return telling;
}
