/* SPDX-License-Identifier: MIT */
/* context.h - for programs that open a context by hand, as hw-probe does. */
#ifndef HW_OPEN_CONTEXT_H
#define HW_OPEN_CONTEXT_H

#include "core.h"

/* Says that from here on this thread opens plugins, in the process of this generation, which is of
 * base/fork.h: hw_open() and hw_rescan() then refuse to be called. NO_GENERATION: not any more.
 * Returns what was said before. */
uint32_t context_opening(uint32_t generation);
bool context_is_opening(void);

#endif
