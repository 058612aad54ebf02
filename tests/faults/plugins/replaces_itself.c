/* SPDX-License-Identifier: MIT */
/* Its constructor replaces its file, so that the file on disk is not the one that was
 * checked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#define NAME "replaces_itself"
#include "minimal.h"

__attribute__((constructor)) static void replace(void)
{
    Dl_info info;
    char path[4096];
    if (!dladdr((void *)(uintptr_t)&hw_plugin_entry, &info))
        return;
    snprintf(path, sizeof path, "%s.new", info.dli_fname);
    FILE *file = fopen(path, "w");
    if (file && !fclose(file))
        rename(path, info.dli_fname);
}
