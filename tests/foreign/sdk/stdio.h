/* SPDX-License-Identifier: MIT */
/* stdio.h - what <hw/plugin.h> uses of it, for systems whose headers are not here. */
#include <stdarg.h>
#include <stddef.h>
int vsnprintf(char *text, size_t size, const char *format, va_list arguments);
