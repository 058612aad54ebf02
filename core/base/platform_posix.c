/* SPDX-License-Identifier: MIT */
/* platform_posix.c - what POSIX alone does not say about the process and the system. */
#define _GNU_SOURCE
#include "base/platform.h"

#include "base/text.h"

#include <hw/hw.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

bool process_elevated(void)
{
#if defined(__linux__)
    return getauxval(AT_SECURE) != 0;
#else
    return issetugid() != 0;
#endif
}

uint64_t microseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

char *libc_directory(void)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)&malloc, &info) || !info.dli_fname ||
        info.dli_fname[0] != '/')
        return NULL;
    return text_format("%.*s", (int)(strrchr(info.dli_fname, '/') - info.dli_fname),
                       info.dli_fname);
}

bool has_access_list(const char *path)
{
#if defined(__linux__)
    return lgetxattr(path, "system.posix_acl_access", NULL, 0) >= 0 ||
           (errno != ENODATA && errno != ENOTSUP);
#else
    (void)path;
    return true;
#endif
}

const char *libc_version(void)
{
#if defined(__GLIBC__)
    return gnu_get_libc_version();
#else
    return NULL;
#endif
}

/* hw/ in the directory of the running library, or NULL if that directory is not known. */
static char *beside_library(void)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)&hw_version, &info) || !info.dli_fname ||
        info.dli_fname[0] != '/')
        return NULL;
    int length = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);
    return text_format("%.*s/hw", length, info.dli_fname);
}

char *plugin_directory(bool elevated)
{
    char *path = elevated ? NULL : beside_library();
    char *real = path ? realpath(path, NULL) : NULL; /* fails if it does not exist */
    free(path);
    return real ? real : text_format("%s", HW_PLUGIN_DIR);
}
