/* SPDX-License-Identifier: MIT */
/* Has only the older hash table, which chains symbols in lists. */
#define NAME "hashed"
#include "minimal.h"
