/* SPDX-License-Identifier: MIT */
/* log.c - one line at a time, to the application's function or to standard error. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *level_name(int32_t level)
{
    static const char *const names[] = { "", "error", "warning", "info", "debug" };
    return level >= HW_LOG_ERROR && level <= HW_LOG_DEBUG ? names[level] : "log";
}

/* Text of a plugin, or a file name, must not break the line. */
static void one_line(char *text)
{
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte == 0x7f)
            *text = ' ';
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
    if (log->fn)
        log->fn(log->user, level, text);
    else
        fprintf(stderr, "hw: %s: %s\n", level_name(level), text);
    pthread_mutex_unlock(&log->lock);
}
