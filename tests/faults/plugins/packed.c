/* SPDX-License-Identifier: MIT */
/* Has packed relative relocations, if the linker makes them. */
#define NAME "packed"
#include "minimal.h"
