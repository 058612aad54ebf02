/* SPDX-License-Identifier: MIT */
/* fault.c - formats the one sentence that explains a failure. */
#include "fault.h"

#include <stdarg.h>
#include <stdio.h>

void fault_say(struct fault *why, const char *format, ...)
{
    if (!why)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
}
