/* SPDX-License-Identifier: MIT */
/* library.c - makes the system's loader load the very file that was checked.
 *
 * The loader takes a name and opens the file itself. With the file's path, it could open another
 * file that has replaced it, and run its constructors. So it gets a name of the open descriptor.
 * Right afterwards the library gets its path as its name, for backtraces, debuggers and dladdr().
 *
 * The path is used if the library searches for libraries beside itself ($ORIGIN), and so needs its
 * path from the start, or if /proc does not show the descriptor. Either way, the path must lead to
 * the checked file before and after. */
#define _GNU_SOURCE
#include "load/library.h"

#include "base/platform.h"
#include "base/text.h"
#include "load/loaded.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- identity of files ---- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Whether it is the same file with the same contents. */
static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           same_time(&a->st_mtim, &b->st_mtim);
}

/* Checks that the path still leads to the checked file. Only root and the user can have changed the
 * path (trust.c), but they do so when they install software. A file that was moved away and back
 * has another time of change. */
static bool is_still(struct candidate *candidate, const struct stat *checked)
{
    struct stat named;
    if (stat(candidate->real, &named))
        return stop(candidate, is_shortage(errno) ? REASON_NO_MEMORY : REASON_CHANGED_FILE,
                    "%s: %s", candidate->real, strerror(errno));
    return (same_file(checked, &named) && same_time(&checked->st_ctim, &named.st_ctim)) ||
           stop(candidate, REASON_CHANGED_FILE, NULL);
}

/* ---- loaded libraries, which are never unloaded ---- */

struct loaded {
    struct loaded *next;
    void *library;
    struct stat file;
    char *name;       /* its path */
    char *first_name; /* its first name in the system's loader; NULL: the path */
    bool other;       /* it may be the code of another file that was at the path */
};

static struct loaded *_Atomic all;

/* The library that was loaded from this file, even if its contents have changed, or else from this
 * path; or NULL. */
static const struct loaded *find(const char *path, const struct stat *file)
{
    const struct loaded *first = atomic_load(&all), *at = first;
    while (at && (at->file.st_dev != file->st_dev || at->file.st_ino != file->st_ino))
        at = at->next;
    if (at)
        return at;
    for (at = first; at && strcmp(at->name, path) != 0;)
        at = at->next;
    return at;
}

static void keep(struct loaded *entry)
{
    entry->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &entry->next, entry))
        ;
}

static struct loaded *loaded_new(struct candidate *candidate, const struct stat *file)
{
    struct loaded *entry = calloc(1, sizeof *entry);
    if (!entry || !(entry->name = strdup(candidate->real))) {
        free(entry);
        stop(candidate, REASON_NO_MEMORY, NULL);
        return NULL;
    }
    entry->file = *file;
    return entry;
}

static void loaded_free(struct loaded *entry)
{
    free(entry->name);
    free(entry);
}

/* ---- the name for the system's loader ---- */

enum { NAME_BYTES = 480 }; /* three for each bit of device and inode, plus the rest */

static size_t spell(char *text, uint64_t number)
{
    size_t length = 0;
    for (int bit = 0; bit < 64; bit++) {
        text[length++] = '.';
        text[length++] = '/';
        if (number >> bit & 1)
            text[length++] = '/';
    }
    return length;
}

/* Writes a name of the descriptor that no other file ever gets, because the system's loader returns
 * its old library for a name that it knows. Redundant slashes and dots spell the file's device and
 * inode. Unlike /proc/self, this name also works for debuggers. */
static void name_descriptor(char *name, int fd, const struct stat *file)
{
    size_t length = (size_t)snprintf(name, NAME_BYTES, "/proc/%ld/fd/", (long)getpid());
    length += spell(name + length, (uint64_t)file->st_dev);
    length += spell(name + length, (uint64_t)file->st_ino);
    snprintf(name + length, NAME_BYTES - length, "%d", fd);
}

/* Whether the file can be loaded by a name of its descriptor. */
static bool has_name(const struct candidate *candidate, const struct stat *checked,
                     char *name)
{
    struct stat named;
    name_descriptor(name, candidate->fd, checked);
    return !candidate->beside && !stat(name, &named) && same_file(checked, &named);
}

/* Replaces the library's name by its path, unless the process had the library before and so by
 * another name. Other threads may read the name at the same time. */
static void rename_library(struct loaded *entry, const char *name)
{
    struct link_map *map;
    if (dlinfo(entry->library, RTLD_DI_LINKMAP, &map))
        return;
    char *now = __atomic_load_n(&map->l_name, __ATOMIC_ACQUIRE);
    if (strcmp(now, name) != 0)
        return;
    entry->first_name = now;
    __atomic_store_n(&map->l_name, entry->name, __ATOMIC_RELEASE);
}

/* ---- loading ---- */

bool library_not_linked(struct candidate *candidate, const char *symbol, size_t length)
{
    stop(candidate, REASON_LOAD_FAILED, "no library that it is linked with defines %.*s",
         (int)length, symbol);
    set_remedy(candidate,
               "Link it with the library that defines %.*s (mathematical functions: -lm)",
               (int)length, symbol);
    return false;
}

bool loader_lacks_memory(const char *error)
{
    return strstr(error, strerror(ENOMEM)) || strstr(error, "out of memory") ||
           strstr(error, strerror(EMFILE)) || strstr(error, strerror(ENFILE));
}

/* The text of dlerror(), with the library's path instead of the name that the system's loader had.
 * The caller frees it. NULL: memory ran out. */
static char *loaders_words(const char *name, const char *path)
{
    const char *error = dlerror(), *at;
    char *text = strdup(error ? error : "no reason given");
    while (text && strcmp(name, path) != 0 && (at = strstr(text, name))) {
        char *better = text_format("%.*s%s%s", (int)(at - text), text, path,
                                   at + strlen(name));
        free(text);
        text = better;
    }
    return text;
}

static bool load_failed(struct candidate *candidate, const char *name)
{
    static const char undefined[] = "undefined symbol: ";
    char *error = loaders_words(name, candidate->real);
    const char *symbol = error ? strstr(error, undefined) : NULL;
    if (symbol)
        library_not_linked(candidate, symbol + sizeof undefined - 1,
                           strcspn(symbol + sizeof undefined - 1, ", ("));
    else if (!error || loader_lacks_memory(error))
        stop(candidate, REASON_NO_MEMORY, "the system could not load it: %s",
             error ? error : strerror(ENOMEM));
    else
        stop(candidate, REASON_LOAD_FAILED, "the system could not load it: %s", error);
    free(error);
    return false;
}

/* Stops the candidate for good: the other code stays in the process. */
static bool is_another(struct candidate *candidate, const char *message)
{
    stop(candidate, REASON_CHANGED_FILE, "%s", message);
    set_remedy(candidate, "Restart the program");
    return false;
}

/* Like is_still(), after loading: the code now stays in the process. */
static bool is_still_loaded(struct candidate *candidate, const struct stat *checked)
{
    if (is_still(candidate, checked))
        return true;
    if (candidate->reason == REASON_CHANGED_FILE)
        set_remedy(candidate, "Restart the program");
    return false;
}

static bool load_entry(struct candidate *candidate, struct loaded *entry)
{
    char descriptor[NAME_BYTES];
    const bool named = has_name(candidate, &entry->file, descriptor);
    const char *name = named ? descriptor : candidate->real;
    entry->library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!entry->library)
        return load_failed(candidate, name);
    if (named)
        rename_library(entry, name);
    return true;
}

static const struct loaded *load_new(struct candidate *candidate, const struct stat *file)
{
    struct loaded *entry = loaded_new(candidate, file);
    if (!entry)
        return NULL;
    if (!load_entry(candidate, entry)) {
        loaded_free(entry);
        return NULL;
    }
    const bool still = is_still_loaded(candidate, file);
    entry->other = candidate->reason == REASON_CHANGED_FILE && !entry->first_name;
    keep(entry);
    return still ? entry : NULL;
}

/* A plugin is loaded once and stays loaded: a new version of it needs a new process. */
static const struct loaded *load_or_find(struct candidate *candidate,
                                         const struct stat *file)
{
    const struct loaded *before = find(candidate->real, file);
    if (!before)
        return load_new(candidate, file);
    if (same_file(&before->file, file) && !before->other)
        return before;
    is_another(candidate,
               "the process still has the code of an earlier version of the file");
    return NULL;
}

void *library_load(struct candidate *candidate)
{
    struct stat checked;
    if (fstat(candidate->fd, &checked)) {
        stop(candidate, is_shortage(errno) ? REASON_NO_MEMORY : REASON_UNREADABLE, "%s: %s",
             candidate->real, strerror(errno));
        return NULL;
    }
    if (!is_still(candidate, &checked))
        return NULL;
    const struct loaded *entry = load_or_find(candidate, &checked);
    return entry ? entry->library : NULL;
}

static int has_code(struct dl_phdr_info *info, size_t size, void *address)
{
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
            (uintptr_t)address - begin < segment->p_memsz)
            return 1;
    }
    return 0;
}

bool library_is_code(void *address)
{
    return loaded_each(has_code, address) != 0;
}
