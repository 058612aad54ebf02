/* SPDX-License-Identifier: MIT */
/* bar.c - see bar.h. */
#define _POSIX_C_SOURCE 200809L
#include "bar.h"
#include "output.h"
#include "util/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDEST = 30, FRAME = 9 /* " [", "] 100%", and the last column stays empty */ };

/* The cells of the bar behind `what`; 0 if the terminal has no room for one. */
static int cells_behind(const char *what)
{
    const int columns = columns_of(STDERR_FILENO);
    const int room = columns - (int)strlen(what) - FRAME;
    if (columns == 0 || room > WIDEST)
        return WIDEST;
    return room > 0 ? room : 0;
}

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
    const int cells = cells_behind(what);
    if (cells == 0 || (done > 0 && now() - drawn < 0.05))
        return;
    const double part = (double)done / (double)total;
    fprintf(stderr, "\r%s [%-*.*s] %3d%%", what, cells, (int)(part * cells), full,
            (int)(100 * part));
    fflush(stderr);
    drawn = now();
}
