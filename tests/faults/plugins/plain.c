/* SPDX-License-Identifier: MIT */
/* A correct plugin, which tests/faults/files.c damages byte by byte. */
#define NAME "plain"
#include "minimal.h"
