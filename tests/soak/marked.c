/* SPDX-License-Identifier: MIT */
/* A plugin that must never be loaded: other users may write to its file. It marks the process. */
#define _POSIX_C_SOURCE 200112L
#include <stdlib.h>

#define NAME "good"
#include "minimal.h"

__attribute__((constructor)) static void mark(void)
{
    setenv("SOAK_MARKED", "1", 1);
}
