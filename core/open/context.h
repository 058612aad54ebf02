/* SPDX-License-Identifier: MIT */
/* context.h - for programs that open a context by hand, as hw-probe does. */
#ifndef HW_OPEN_CONTEXT_H
#define HW_OPEN_CONTEXT_H

#include "core.h"

/* Whether this thread runs a plugin that is being opened: hw_open() then refuses to be called.
 * Returns what was said before. */
bool context_opening(bool on);

#endif
