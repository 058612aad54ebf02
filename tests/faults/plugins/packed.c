/* SPDX-License-Identifier: MIT */
/* With packed relative relocations, where the linker makes them. */
#define NAME "packed"
#include "minimal.h"
