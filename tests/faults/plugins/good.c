/* SPDX-License-Identifier: MIT */
/* The good plugin: it must be found and used, whatever else is in its directory. */
#define NAME "good"
#include "minimal.h"
