/* SPDX-License-Identifier: MIT */
/* With the older hash table alone, which chains in lists. */
#define NAME "hashed"
#include "minimal.h"
