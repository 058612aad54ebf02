/* SPDX-License-Identifier: MIT */
/* The good one: it must be found and used, whatever lies beside it. */
#define NAME "good"
#include "minimal.h"
