/* SPDX-License-Identifier: MIT */
/* Its file name states another plugin name. */
#define NAME "this_name"
#include "minimal.h"
