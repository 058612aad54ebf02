/* SPDX-License-Identifier: MIT */
/* alone.h - ALONE: whether the process is known to have a single thread. */
#ifndef HW_BASE_ALONE_H
#define HW_BASE_ALONE_H

#include <stdbool.h>

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define ALONE (__libc_single_threaded != 0)
#endif
#endif
#ifndef ALONE
#define ALONE false
#endif

#endif
