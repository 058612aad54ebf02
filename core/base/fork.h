/* SPDX-License-Identifier: MIT */
/* fork.h - detects that fork() was called since a context was opened. Drivers do not
 * survive that. */
#ifndef HW_BASE_FORK_H
#define HW_BASE_FORK_H

#include <hw/hw.h>

#include <stdatomic.h>
#include <stdbool.h>

/* A number that fork() changes in the child. */
extern __attribute__((visibility("hidden"))) _Atomic uint32_t process_generation;
#define NO_GENERATION UINT32_MAX /* no process forks that often */

/* Starts to detect fork(). Returns the generation of this process. */
uint32_t watch_forks(void);

/* Whether the process has forked since it had this generation. */
static inline bool forked(uint32_t generation)
{
    return generation != atomic_load_explicit(&process_generation, memory_order_relaxed);
}
/* HW_OK, or HW_FORKED with its message: the first line of every function that uses a
 * context. */
enum hw_status guard(uint32_t generation);

#endif
