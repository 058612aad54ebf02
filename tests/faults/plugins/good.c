/* SPDX-License-Identifier: MIT */
/* The good one: whatever lies beside it, it is found and used. */
#define NAME "good"
#include "minimal.h"
