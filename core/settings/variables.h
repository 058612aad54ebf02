/* SPDX-License-Identifier: MIT */
/* variables.h - the environment variables of the application while a plugin starts. */
#ifndef HW_SETTINGS_VARIABLES_H
#define HW_SETTINGS_VARIABLES_H

/* Keeps a copy of all variables. Returns NULL if memory runs out, or if the process has other
 * threads, which could use the environment at the same time. */
struct variables *variables_keep(void);
/* Restores the variables that have changed, and frees the copy. */
void variables_restore(struct variables *variables);

#endif
