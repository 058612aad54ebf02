/* SPDX-License-Identifier: MIT */
/* bar.h - a progress bar on the terminal. */
#ifndef HW_TOOL_BAR_H
#define HW_TOOL_BAR_H

#include <stdint.h>

/* Draws "what [#### ] 42%" on standard error if that is a terminal, at most every 50 ms,
 * and removes it when `done` has reached `total`. */
void bar_draw(const char *what, uint64_t done, uint64_t total);

#endif
