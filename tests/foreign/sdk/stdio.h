/* SPDX-License-Identifier: MIT */
/* stdio.h - the parts that <hw/plugin.h> uses, for systems whose headers are not here. */
#include <stdarg.h>
#include <stddef.h>
int vsnprintf(char *text, size_t size, const char *format, va_list arguments);
