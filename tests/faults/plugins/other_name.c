/* SPDX-License-Identifier: MIT */
/* Its file is called otherwise. */
#define NAME "this_name"
#include "minimal.h"
