/* SPDX-License-Identifier: MIT */
/* bar.c - see bar.h. */
#define _POSIX_C_SOURCE 200809L
#include "bar.h"
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bar_draw(const char *what, uint64_t done, uint64_t total)
{
    static const char full[] = "##############################";
    static double drawn;
    const char *term = getenv("TERM");
    if (!isatty(STDERR_FILENO) || !term || !strcmp(term, "dumb"))
        return;
    if (done >= total) {
        fputs("\r\033[K", stderr);
        return;
    }
    if (done > 0 && now() - drawn < 0.05)
        return;
    const double part = (double)done / (double)total;
    const int cells = (int)(part * (double)(sizeof full - 1));
    fprintf(stderr, "\r%s [%-*.*s] %3d%%", what, (int)sizeof full - 1, cells, full,
            (int)(100 * part));
    fflush(stderr);
    drawn = now();
}
