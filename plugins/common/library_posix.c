/* SPDX-License-Identifier: MIT */
/* library_posix.c - see library.h. */
#define _GNU_SOURCE /* dladdr() */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>

void *library_open(const char *file, char *why, size_t why_size)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *text = library ? "" : dlerror();
    snprintf(why, why_size, "%s", text ? text : "no reason given");
    return library;
}

void *library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

void library_path(void *symbol, char *path, size_t path_size)
{
    Dl_info info;
    const char *file = dladdr(symbol, &info) ? info.dli_fname : NULL;
    snprintf(path, path_size, "%s", file ? file : "");
}
