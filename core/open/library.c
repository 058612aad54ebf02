/* SPDX-License-Identifier: MIT */
/* library.c - gives the file that was checked to the system's loader.
 *
 * That loader takes a name and opens it by itself; if the name is the file's path, another file may
 * be there by then, whose constructors would run. So the name is one of the open descriptor. Right
 * afterwards the library gets its path as its name, for backtraces, debuggers and dladdr().
 *
 * The path is used where the library must know from the start where it lies, because it searches
 * for others beside it ($ORIGIN), and where /proc does not show the descriptor. In either case,
 * what was loaded is compared with the file before it is used (open/mapped.c). */
#define _GNU_SOURCE
#include "open/library.h"

#include "base/platform.h"
#include "base/text.h"
#include "object/object.h"
#include "open/mapped.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- which file is where ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The path must still lead to the file that was checked: only root and the user could have changed
 * it (trust.c), but these two install software. */
static bool is_still(struct candidate *candidate, const struct stat *checked)
{
    struct stat named;
    if (stat(candidate->real, &named))
        return stop(candidate, is_shortage(errno) ? REASON_NO_MEMORY : REASON_CHANGED_FILE,
                    "%s: %s", candidate->real, strerror(errno));
    return same_file(checked, &named) || stop(candidate, REASON_CHANGED_FILE, NULL);
}

/* ---- the libraries that were loaded, for good ---- */

struct loaded {
    struct loaded *next;
    void *library;
    struct stat file;
    char *name;       /* its path */
    char *first_name; /* what the system's loader called it before; NULL: the same */
};

static struct loaded *_Atomic all;

/* What was loaded from the file, whatever it contains by now, or else from its path; or NULL. */
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

static bool expands(const char *text)
{
    return text && strchr(text, '$');
}

/* Whether what it needs depends on where it lies. */
static bool depends_on_place(const struct object *object)
{
    bool depends = expands(object->rpath) || expands(object->runpath);
    for (uint32_t i = 0; i < object->needed_count && !depends; i++)
        depends = expands(object->needed[i]);
    return depends;
}

enum { NAME_BYTES = 480 }; /* three for each bit of device and inode, and the rest */

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

/* A name of the descriptor for this file alone: by a name that it knows, the system's loader
 * returns the library that it has. So the file's device and inode are spelled in slashes, which do
 * not matter. It is a name that debuggers can open, too, as /proc/self is not. */
static void name_descriptor(char *name, int fd, const struct stat *file)
{
    size_t length = (size_t)snprintf(name, NAME_BYTES, "/proc/%ld/fd/", (long)getpid());
    length += spell(name + length, (uint64_t)file->st_dev);
    length += spell(name + length, (uint64_t)file->st_ino);
    snprintf(name + length, NAME_BYTES - length, "%d", fd);
}

/* False if there is none that leads to the file. */
static bool has_name(const struct candidate *candidate, const struct stat *checked,
                     char *name)
{
    struct stat named;
    name_descriptor(name, candidate->fd, checked);
    return !depends_on_place(candidate->object) && !stat(name, &named) &&
           same_file(checked, &named);
}

/* Not if it has another name, because the process had it before. Other threads may read the name
 * meanwhile, of whatever the system's loader lists. */
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

static bool not_linked(struct candidate *candidate, const char *symbol, size_t length)
{
    stop(candidate, REASON_LOAD_FAILED, "no library that it is linked with defines %.*s",
         (int)length, symbol);
    set_remedy(candidate,
               "Link it with the library that defines %.*s (mathematical functions: -lm)",
               (int)length, symbol);
    return false;
}

/* A symbol that only this program happens to define makes the plugin fail in the next one.
 * Names that begin with two underscores belong to the compiler, whose runtime (of a
 * sanitizer, say) is part of the program. */
static bool check_linked(struct candidate *candidate, void *library)
{
    const struct object *object = candidate->object;
    for (size_t i = 0; i < object->undefined_count; i++) {
        const char *symbol = object->undefined[i];
        if (strncmp(symbol, "__", 2) != 0 && !dlsym(library, symbol))
            return not_linked(candidate, symbol, strlen(symbol));
    }
    return true;
}

/* The system's loader says why in words only. */
static bool is_shortage_text(const char *error)
{
    return strstr(error, strerror(ENOMEM)) || strstr(error, "out of memory") ||
           strstr(error, strerror(EMFILE)) || strstr(error, strerror(ENFILE));
}

/* What dlerror() says, which the caller frees, with the library's path for the name that the
 * system's loader had for it. NULL: memory ran out. */
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
        not_linked(candidate, symbol + sizeof undefined - 1,
                   strcspn(symbol + sizeof undefined - 1, ", ("));
    else if (!error || is_shortage_text(error))
        stop(candidate, REASON_NO_MEMORY, "the system could not load it: %s",
             error ? error : strerror(ENOMEM));
    else
        stop(candidate, REASON_LOAD_FAILED, "the system could not load it: %s", error);
    free(error);
    return false;
}

/* For good: the code stays. */
static bool is_another(struct candidate *candidate, const char *message)
{
    stop(candidate, REASON_CHANGED_FILE, "%s", message);
    set_remedy(candidate, "Restart the program");
    return false;
}

/* By its path, the system's loader may have found another file; and by any name, a library that the
 * process had before. */
static bool came_from(struct candidate *candidate, const struct loaded *entry)
{
    const void *function = dlsym(entry->library, "hw_plugin_entry");
    return (function && mapped_from(function, candidate->fd, &entry->file)) ||
           is_another(candidate, "the file changed while it was loaded, and the process "
                                 "has the code of the other one");
}

static bool load_entry(struct candidate *candidate, struct loaded *entry)
{
    char descriptor[NAME_BYTES];
    const bool named = has_name(candidate, &entry->file, descriptor);
    const char *name = named ? descriptor : candidate->real;
    entry->library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!entry->library)
        return load_failed(candidate, name);
    if (!came_from(candidate, entry))
        return false;
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
    keep(entry);
    return entry;
}

/* A plugin is in the process once, for good; a new version of it needs a new process. */
static const struct loaded *load_or_find(struct candidate *candidate,
                                         const struct stat *file)
{
    const struct loaded *before = find(candidate->real, file);
    if (!before)
        return load_new(candidate, file);
    if (same_file(&before->file, file))
        return before;
    is_another(candidate,
               "the process still has the code of an earlier version of the file");
    return NULL;
}

/* Afterwards, the code stays for good. */
static bool is_still_loaded(struct candidate *candidate, const struct stat *checked)
{
    if (is_still(candidate, checked))
        return true;
    if (candidate->reason == REASON_CHANGED_FILE)
        set_remedy(candidate, "Restart the program");
    return false;
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
    const bool good = entry && is_still_loaded(candidate, &checked) &&
                      check_linked(candidate, entry->library);
    return good ? entry->library : NULL;
}
