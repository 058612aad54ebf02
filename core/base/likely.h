/* SPDX-License-Identifier: MIT */
/* likely.h - which way a branch on the path of every call usually goes. */
#ifndef HW_BASE_LIKELY_H
#define HW_BASE_LIKELY_H

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
