/* SPDX-License-Identifier: MIT */
/* libraries.c - whether the system would find a library, without loading it: see ld.so(8).
 */
#define _GNU_SOURCE
#include "object/libraries.h"

#include "base/platform.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct search {
    const char *name;
    const char *directory; /* $ORIGIN */
    bool undecided;
};

/* A file of another machine is passed over, as the system does. */
static bool loadable(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && elf_native(fd);
    if (fd >= 0)
        close(fd);
    return good;
}

static bool loaded(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    else
        dlerror(); /* clears the message, which nobody asked for */
    return library != NULL;
}

static bool in_directory(const char *directory, size_t length, const char *name)
{
    char path[PATH_MAX];
    int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, directory, name);
    return written > 0 && (size_t)written < sizeof path && loadable(path);
}

/* One directory of a list, with $ORIGIN replaced. The other words ($LIB, $PLATFORM) are
 * known to the system's loader alone. */
static bool in_element(struct search *search, const char *element, size_t length)
{
    static const char *const origins[] = { "$ORIGIN", "${ORIGIN}" };
    if (length == 0)
        return in_directory(".", 1, search->name);
    if (length >= PATH_MAX)
        return false;
    if (!memchr(element, '$', length))
        return in_directory(element, length, search->name);
    for (size_t i = 0; i < 2; i++) {
        size_t word = strlen(origins[i]);
        if (length < word || memcmp(element, origins[i], word) != 0 ||
            memchr(element + word, '$', length - word))
            continue;
        char path[2 * PATH_MAX];
        int written = snprintf(path, sizeof path, "%s%.*s", search->directory,
                               (int)(length - word), element + word);
        return in_directory(path, (size_t)written, search->name);
    }
    search->undecided = true;
    return false;
}

static bool in_list(struct search *search, const char *list)
{
    for (const char *element = list; element;) {
        size_t length = strcspn(element, ":;");
        if (in_element(search, element, length))
            return true;
        element = element[length] ? element + length + 1 : NULL;
    }
    return false;
}

/* ---- the cache that ldconfig writes ---- */

#define CACHE       "/etc/ld.so.cache"
#define CACHE_BYTES (16u << 20)

/* After the magic: entries, bytes of strings, flags, and room reserved. */
struct cache_header {
    char magic[20];
    uint32_t entries, string_bytes, reserved[5];
};

struct cache_entry {
    int32_t flags;
    uint32_t name, path; /* offsets from the header */
    uint32_t os;
    uint64_t hwcap;
};

static const char *cache_string(const char *cache, size_t bytes, uint32_t offset)
{
    return offset < bytes && memchr(cache + offset, '\0', bytes - offset) ? cache + offset
                                                                          : NULL;
}

static bool search_cache(const char *cache, size_t bytes, const char *name)
{
    static const char old[] = "ld.so-1.7.0", magic[] = "glibc-ld.so.cache1.1";
    struct cache_header header;
    uint32_t count;
    /* An older table may come first; its entries have 12 bytes. */
    if (bytes > 16 && memcmp(cache, old, sizeof old - 1) == 0) {
        memcpy(&count, cache + 12, sizeof count);
        uint64_t skip = (16 + (uint64_t)count * 12 + 7) / 8 * 8;
        if (skip >= bytes)
            return false;
        cache += skip;
        bytes -= (size_t)skip;
    }
    if (bytes < sizeof header)
        return false;
    memcpy(&header, cache, sizeof header);
    if (memcmp(header.magic, magic, sizeof header.magic) != 0 ||
        header.entries > (bytes - sizeof header) / sizeof(struct cache_entry))
        return false;
    for (uint32_t i = 0; i < header.entries; i++) {
        struct cache_entry entry;
        memcpy(&entry, cache + sizeof header + i * sizeof entry, sizeof entry);
        const char *key = cache_string(cache, bytes, entry.name);
        const char *path = cache_string(cache, bytes, entry.path);
        if (key && path && strcmp(key, name) == 0 && loadable(path))
            return true;
    }
    return false;
}

static bool in_cache(const char *name)
{
    struct stat info;
    int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool found = false;
    if (fstat(fd, &info) == 0 && info.st_size > 0 && info.st_size <= CACHE_BYTES) {
        size_t bytes = (size_t)info.st_size;
        char *cache = malloc(bytes);
        if (cache && pread(fd, cache, bytes, 0) == info.st_size)
            found = search_cache(cache, bytes, name);
        free(cache);
    }
    close(fd);
    return found;
}

/* ---- in the order of the system ---- */

static bool in_system(const char *name)
{
    static const char *const directories[] = { "/lib", "/usr/lib", "/lib64", "/usr/lib64",
                                               "/usr/local/lib" };
    char *libc = libc_directory();
    bool found = libc && in_directory(libc, strlen(libc), name);
    free(libc);
    for (size_t i = 0; i < sizeof directories / sizeof *directories && !found; i++)
        found = in_directory(directories[i], strlen(directories[i]), name);
    return found;
}

enum found library_find(const char *name, const struct object *object,
                        const char *directory, bool elevated)
{
    struct search search = { .name = name, .directory = directory };
    const char *variable = elevated ? NULL : getenv("LD_LIBRARY_PATH");
    if (strchr(name, '/'))
        return loadable(name) ? FOUND : strchr(name, '$') ? UNDECIDED : NOT_FOUND;
    if (loaded(name) ||
        (object->rpath && !object->runpath && in_list(&search, object->rpath)) ||
        (variable && *variable && in_list(&search, variable)) ||
        (object->runpath && in_list(&search, object->runpath)) || in_cache(name) ||
        in_system(name))
        return FOUND;
    return search.undecided ? UNDECIDED : NOT_FOUND;
}
