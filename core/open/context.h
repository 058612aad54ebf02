/* SPDX-License-Identifier: MIT */
/* context.h - for programs that open a context by hand, as hw-probe does. */
#ifndef HW_OPEN_CONTEXT_H
#define HW_OPEN_CONTEXT_H

#include "core.h"

/* Whether this thread opens a context: hw_open() then refuses to be called by a plugin. */
void context_opening(bool on);

#endif
