/* SPDX-License-Identifier: MIT */
/* driver_version.c - see driver_version.h. */
#define _GNU_SOURCE
#include "driver_version.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first word of a small file. */
static bool read_word(const char *path, char *word, size_t size)
{
    char line[256] = "";
    FILE *file = fopen(path, "r");
    const bool got = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    const size_t length = strcspn(line, " \t\n");
    if (!got || length == 0 || length >= size)
        return false;
    memcpy(word, line, length);
    word[length] = '\0';
    return true;
}

/* ".../libcuda.so.580.159.04" has version "580.159.04": at least two numbers, so "1" is none. */
static bool version_in_name(const char *path, const char *stem, char *version, size_t size)
{
    const char *name = strrchr(path, '/');
    const size_t length = strlen(stem);
    if (!name || strncmp(name + 1, stem, length) != 0)
        return false;
    const char *numbers = name + 1 + length;
    if (strspn(numbers, "0123456789.") != strlen(numbers) || !strchr(numbers, '.') ||
        strlen(numbers) >= size)
        return false;
    memcpy(version, numbers, strlen(numbers) + 1);
    return true;
}

/* The first library that matches the pattern and has its version in its name. */
static bool find_library(const char *root, const char *pattern, const char *stem,
                         struct driver_version *version)
{
    char place[PATH_MAX];
    glob_t found;
    bool good = false;
    const int length = snprintf(place, sizeof place, "%s%s", root, pattern);
    if (length < 0 || (size_t)length >= sizeof place || glob(place, 0, NULL, &found))
        return false;
    for (size_t i = 0; i < found.gl_pathc && !good; i++)
        good = realpath(found.gl_pathv[i], version->path) &&
               version_in_name(version->path, stem, version->user, sizeof version->user);
    globfree(&found);
    return good;
}

enum driver_state driver_version_nvidia(const char *root, struct driver_version *version)
{
    static const char *const places[] = {
        "/usr/lib/*-linux-gnu/libcuda.so.1",
        "/usr/lib/*-linux-gnu/nvidia/current/libcuda.so.1", "/usr/lib64/libcuda.so.1",
        "/usr/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"
    };
    char path[PATH_MAX];
    bool found = false;
    *version = (struct driver_version){ .kernel = "" };
    const int length = snprintf(path, sizeof path, "%s/sys/module/nvidia/version", root);
    if (length < 0 || (size_t)length >= sizeof path ||
        !read_word(path, version->kernel, sizeof version->kernel))
        return DRIVER_UNKNOWN;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !found; i++)
        found = find_library(root, places[i], "libcuda.so.", version);
    if (!found)
        return DRIVER_UNKNOWN;
    return strcmp(version->kernel, version->user) ? DRIVER_MIXED : DRIVER_WHOLE;
}
