/* SPDX-License-Identifier: MIT */
/* A title of 31 bytes, the limit; the last byte is not UTF-8. */
#define NAME  "titled"
#define LINES "title=The plugin with the title Zo\u00eb\377\n"
#include "minimal.h"
