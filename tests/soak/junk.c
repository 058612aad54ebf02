/* SPDX-License-Identifier: MIT */
/* junk.c - files in one directory that have plugin names and nothing else. */
#include "soak.h"

#include <stdio.h>
#include <string.h>

void soak_junk(long count)
{
    static const char *const texts[] = { "", "text\n", "\177ELF", "#!/bin/sh\n", "MZ\x90" };
    put_good("plugins");
    for (long i = 0; i < count; i++) {
        const char *text = texts[i % (long)(sizeof texts / sizeof *texts)];
        write_file(below("plugins/%s%ld%s", i % 2 ? "hw_z" : "junk", i, i % 2 ? ".so" : ""),
                   text, strlen(text), 0644);
    }
    const double start = seconds();
    open_once(below("plugins"));
    printf("junk: %ld files beside the good one, opened in %.3f s\n", count,
           seconds() - start);
}
