/* SPDX-License-Identifier: MIT */
/* The number of the vendor has three digits. */
#define NAME  "manifest_match"
#define LINES "match=pci:10d:*\n"
#include "minimal.h"
