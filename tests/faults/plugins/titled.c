/* SPDX-License-Identifier: MIT */
/* A title of 31 bytes, as many as there may be; the last one is no UTF-8. */
#define NAME  "titled"
#define LINES "title=The plugin with the title Zo\u00eb\377\n"
#include "minimal.h"
