/* SPDX-License-Identifier: MIT */
/* platform_posix.c - platform.h for POSIX systems, with the calls of each that POSIX lacks. */
#define _GNU_SOURCE
#include "base/platform.h"

#include "base/text.h"

#include <hw/hw.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/xattr.h>
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

/* Tries as many as checking and loading a plugin has open at a time. */
bool descriptors_left(void)
{
    int fds[4], count = 0, error = 0;
    while (count < (int)(sizeof fds / sizeof *fds) &&
           (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    if (count < (int)(sizeof fds / sizeof *fds))
        error = errno;
    while (count > 0)
        close(fds[--count]);
    return !is_shortage(error);
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

bool system_start(char *text, size_t size)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool good = file && fgets(text, (int)size, file);
    if (file)
        fclose(file);
    if (good)
        text[strcspn(text, "\n")] = '\0';
    return good;
}

const char *libc_version(void)
{
#if defined(__GLIBC__)
    return gnu_get_libc_version();
#else
    return NULL;
#endif
}

/* The path of the file that is mapped at the address. Returns NULL and sets errno if the system
 * does not say. */
static char *mapped_file(const void *address)
{
    char *line = NULL, *path = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    int error = file ? ENOENT : errno;
    while (file && !path && getline(&line, &room, file) > 0) {
        uintptr_t start, end;
        const char *name = strchr(line, '/');
        if (name && sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2 &&
            (uintptr_t)address >= start && (uintptr_t)address < end &&
            !(path = strndup(name, strcspn(name, "\n"))))
            error = ENOMEM;
    }
    if (file && !path && errno == ENOMEM)
        error = ENOMEM;
    free(line);
    if (file)
        fclose(file);
    errno = error;
    return path;
}

/* The file of the running library. The system's loader may know it by a relative path, as from
 * LD_LIBRARY_PATH=lib. Such a path is useless if the working directory has changed. */
static char *library_file(void)
{
    const void *inside = (void *)(uintptr_t)&hw_version;
    Dl_info info;
    errno = ENOENT;
    if (!dladdr(inside, &info) || !info.dli_fname)
        return NULL;
    return *info.dli_fname == '/' ? strdup(info.dli_fname) : mapped_file(inside);
}

/* Resolves a path relative to the directory of the running library. Returns NULL and sets errno if
 * the path does not exist, or if the directory is not known. */
static char *beside_library(const char *rest)
{
    char *library = library_file();
    if (!library)
        return NULL;
    int length = (int)(strrchr(library, '/') - library);
    char *path = text_format("%.*s/%s", length, library, rest);
    free(library);
    char *real = path ? realpath(path, NULL) : NULL;
    const int error = path ? errno : ENOMEM;
    free(path);
    errno = error;
    return real;
}

/* Whether the file certainly does not exist there. After any other error, the installed path must
 * not be used instead: another file may be there. */
static bool is_not_beside(void)
{
    return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
}

char *plugin_directory(bool elevated)
{
    char *path = elevated ? NULL : beside_library("hw");
    return path || (!elevated && !is_not_beside()) ? path
                                                   : text_format("%s", HW_PLUGIN_DIR);
}

/* Looks where the program is installed relative to the library, then where it is built. */
char *helper_program(const char *name, bool elevated)
{
    static const char *const places[] = { HW_HELPER_BESIDE, "." };
    for (size_t i = 0; i < sizeof places / sizeof *places && !elevated; i++) {
        if (!*places[i])
            continue;
        char *rest = text_format("%s/%s", places[i], name);
        if (!rest)
            return NULL;
        char *path = beside_library(rest);
        const int error = errno;
        free(rest);
        errno = error;
        if (path || !is_not_beside())
            return path;
    }
    return text_format("%s/%s", HW_HELPER_DIR, name);
}
