/* SPDX-License-Identifier: MIT */
/* libraries.c - finds a library as the system would, without loading it: see ld.so(8). */
#define _POSIX_C_SOURCE 200809L
#include "probe/libraries.h"

#include "base/platform.h"
#include "base/text.h"
#include "load/loaded.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct search {
    const struct library_search *about;
    const char *name;
    char *path; /* the file that was found */
    bool undecided;
};

/* Called after a system call failed. Notes that the search is undecided if the error says nothing
 * about the file. Returns false. */
static bool note_error(struct search *search)
{
    search->undecided |= errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return false;
}

/* The system skips files for another machine. */
static bool loadable(struct search *search, const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return note_error(search);
    errno = 0;
    bool good = (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && header_is_native(fd)) ||
                note_error(search);
    close(fd);
    return good;
}

/* Takes ownership of `path`; NULL means that memory ran out. */
static bool at_path(struct search *search, char *path)
{
    if (!path)
        return note_error(search);
    if (!loadable(search, path)) {
        if (search->about->missed)
            search->about->missed(search->about->user, path);
        free(path);
        return false;
    }
    search->path = path;
    return true;
}

/* Splits an element of a list into a directory for $ORIGIN and the rest. Returns false if the
 * element has another variable: only the system's loader knows $LIB and $PLATFORM. An empty element
 * is the current directory. */
static bool expand(const char *origin, const char **start, const char **rest,
                   size_t *length)
{
    static const char *const origins[] = { "$ORIGIN", "${ORIGIN}" };
    *start = *length ? "" : ".";
    if (!memchr(*rest, '$', *length))
        return true;
    for (size_t i = 0; i < 2; i++) {
        size_t word = strlen(origins[i]);
        if (*length >= word && memcmp(*rest, origins[i], word) == 0 &&
            !memchr(*rest + word, '$', *length - word)) {
            *start = origin;
            *rest += word;
            *length -= word;
            return true;
        }
    }
    return false;
}

/* The length of the first element of a list. Sets *next to the second element, or to NULL. */
static size_t first_element(const char *list, const char **next)
{
    size_t length = strcspn(list, ":;");
    *next = list[length] ? list + length + 1 : NULL;
    return length;
}

static bool in_list(struct search *search, const char *list)
{
    for (const char *element = list, *next; element; element = next) {
        const char *start;
        size_t length = first_element(element, &next);
        if (length >= PATH_MAX)
            continue;
        if (!expand(search->about->directory, &start, &element, &length))
            search->undecided = true;
        else if (at_path(search, text_format("%s%.*s/%s", start, (int)length, element,
                                             search->name)))
            return true;
    }
    return false;
}

bool library_directories(const struct object *object, const char *directory,
                         bool (*visit)(void *user, const char *path), void *user)
{
    const char *list = object->runpath ? object->runpath : object->rpath;
    for (const char *element = list, *next; element; element = next) {
        const char *start;
        size_t length = first_element(element, &next);
        if (length >= PATH_MAX || !expand(directory, &start, &element, &length))
            continue;
        char *path = text_format("%s%.*s", start, (int)length, element);
        bool go_on = visit(user, path);
        free(path);
        if (!go_on)
            return false;
    }
    return true;
}

/* ---- the cache that ldconfig writes ---- */

#define CACHE       "/etc/ld.so.cache"
#define CACHE_BYTES (16u << 20)

struct cache_header {
    char magic[20];
    uint32_t entries, string_bytes, reserved[5];
};

struct cache_entry {
    int32_t flags;
    uint32_t name, path; /* offsets from the start of the header */
    uint32_t os;
    uint64_t hwcap;
};

static const char *cache_string(const char *cache, size_t bytes, uint32_t offset)
{
    return offset < bytes && memchr(cache + offset, '\0', bytes - offset) ? cache + offset
                                                                          : NULL;
}

static bool search_cache(struct search *search, const char *cache, size_t bytes)
{
    static const char old[] = "ld.so-1.7.0", magic[] = "glibc-ld.so.cache1.1";
    struct cache_header header;
    uint32_t count;
    /* A table in an older format, with entries of 12 bytes, may come first. */
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
        if (key && path && strcmp(key, search->name) == 0 && at_path(search, strdup(path)))
            return true;
    }
    return false;
}

static bool in_cache(struct search *search)
{
    struct stat info;
    int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return note_error(search);
    bool found = false;
    if (fstat(fd, &info) == 0 && info.st_size > 0 && info.st_size <= CACHE_BYTES) {
        size_t bytes = (size_t)info.st_size;
        char *cache = malloc(bytes);
        if (!cache)
            note_error(search);
        else if (pread(fd, cache, bytes, 0) == info.st_size)
            found = search_cache(search, cache, bytes);
        free(cache);
    }
    close(fd);
    return found;
}

/* ---- in the system's order ---- */

static bool in_system(struct search *search)
{
    static const char *const directories[] = { "/lib", "/usr/lib", "/lib64", "/usr/lib64",
                                               "/usr/local/lib" };
    char *libc = libc_directory();
    bool found = libc && at_path(search, text_format("%s/%s", libc, search->name));
    free(libc);
    for (size_t i = 0; i < sizeof directories / sizeof *directories && !found; i++)
        found = at_path(search, text_format("%s/%s", directories[i], search->name));
    return found;
}

static bool by_variable(struct search *search, bool elevated)
{
    const char *list = elevated ? NULL : getenv("LD_LIBRARY_PATH");
    return list && *list && in_list(search, list);
}

struct library library_find(const struct library_search *about, const char *name)
{
    struct search search = { .about = about, .name = name };
    const struct object *object = about->object;
    const char *rpath = object->runpath ? NULL : object->rpath;
    bool own = true;
    if (strchr(name, '/')) {
        search.undecided = strchr(name, '$') != NULL;
        at_path(&search, strdup(name));
    } else if (loaded_find(name, &search.path)) {
        return (struct library){
            .found = FOUND, .path = search.path, .system = true, .loaded = true
        };
    } else if (!(rpath && in_list(&search, rpath))) {
        own = false;
        if (!by_variable(&search, about->elevated))
            own = object->runpath && in_list(&search, object->runpath);
        if (!search.path && (in_cache(&search) || in_system(&search)))
            return (struct library){ .found = FOUND, .path = search.path, .system = true };
    }
    if (search.path)
        return (struct library){ .found = FOUND, .path = search.path, .own = own };
    return (struct library){ .found = search.undecided ? UNDECIDED : NOT_FOUND };
}
