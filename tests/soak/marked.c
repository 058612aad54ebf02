/* SPDX-License-Identifier: MIT */
/* A plugin that must not be used, because other users may write to its file. Its constructor and
 * its entry each append a letter to the file named in SOAK_MARKS. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME "good"
#define CHANGES
#include "minimal.h"

static void leave(const char *letter)
{
    const char *path = getenv("SOAK_MARKS");
    const int file = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (file < 0 || write(file, letter, 1) != 1)
        abort();
    close(file);
}

__attribute__((constructor)) static void construct(void)
{
    leave("c");
}

static void change(struct hw_plugin *table)
{
    (void)table;
    leave("e");
}
