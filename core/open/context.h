/* SPDX-License-Identifier: MIT */
/* context.h - for programs that open a context by hand, as hw-probe does. */
#ifndef HW_OPEN_CONTEXT_H
#define HW_OPEN_CONTEXT_H

#include "core.h"

/* Marks this thread as opening plugins, in the process of this generation (base/fork.h): hw_open()
 * and hw_rescan() then return HW_INVALID. NO_GENERATION removes the mark. Returns the earlier
 * mark. */
uint32_t context_opening(uint32_t generation);
bool context_is_opening(void);

#endif
