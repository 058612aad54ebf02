/* SPDX-License-Identifier: MIT */
/* Its constructor replaces its file, so that the file on disk is not the one that was
 * checked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#define NAME "replaces_itself"
#include "minimal.h"

__attribute__((constructor)) static void replace(void)
{
    Dl_info info;
    char path[PATH_MAX], new_path[PATH_MAX + 4];
    if (!dladdr((void *)(uintptr_t)&hw_plugin_entry, &info) ||
        !realpath(info.dli_fname, path))
        return;
    snprintf(new_path, sizeof new_path, "%s.new", path);
    FILE *file = fopen(new_path, "w");
    if (file && !fclose(file))
        rename(new_path, path);
}
