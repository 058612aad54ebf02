/* SPDX-License-Identifier: MIT */
/* fork.h - whether this process is a child, by fork(), of the one that opened a context:
 * drivers do not survive that. */
#ifndef HW_BASE_FORK_H
#define HW_BASE_FORK_H

#include <hw/hw.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Of this process; fork() gives the child another one. */
extern _Atomic uint32_t process_generation;

/* From here on fork() is seen. Returns the generation of this process. */
uint32_t watch_forks(void);

/* Whether the process has forked since its generation was this one. */
static inline bool forked(uint32_t generation)
{
    return generation != atomic_load_explicit(&process_generation, memory_order_relaxed);
}
/* HW_OK, or HW_FORKED with its message: the first line of every entry that has a context. */
enum hw_status guard(uint32_t generation);

#endif
