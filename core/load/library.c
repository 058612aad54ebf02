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
#include "cache/depends.h"
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

/* Checks that the path still leads to the checked file. Only root and the user can have changed the
 * path (trust.c), but they do so when they install software. A file that was moved away and back
 * has another time of change. */
static bool is_still(struct candidate *candidate, const struct stat *checked)
{
    struct stat named;
    if (stat(candidate->real, &named))
        return stop(candidate, is_shortage(errno) ? REASON_NO_MEMORY : REASON_CHANGED_FILE,
                    "%s: %s", candidate->real, strerror(errno));
    return strcmp(identity_of(checked).text, identity_of(&named).text) == 0 ||
           stop(candidate, REASON_CHANGED_FILE, NULL);
}

/* ---- loaded libraries, which are never unloaded ---- */

struct code {
    struct code *next;
    void *handle; /* from dlopen() */
    struct stat file;
    char *path;
    /* If it was loaded by a name of its descriptor: that name, which the system's loader has
     * allocated and nobody frees. Kept, so that it is not lost for a leak checker. */
    char *first_name;
    bool other; /* it may be the code of another file that was at the path */
};

static struct code *_Atomic all_code;

/* The library that was loaded from this file, even if its contents have changed, or else from this
 * path; or NULL. */
static const struct code *code_find(const char *path, const struct stat *file)
{
    const struct code *by_path = NULL;
    for (const struct code *at = atomic_load(&all_code); at; at = at->next) {
        if (same_inode(&at->file, file))
            return at;
        if (!by_path && strcmp(at->path, path) == 0)
            by_path = at;
    }
    return by_path;
}

/* ---- the name for the system's loader ---- */

enum { NAME_BYTES = 480 }; /* three for each bit of device and inode, plus the rest */

static size_t spell_number(char *text, uint64_t number)
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
    length += spell_number(name + length, (uint64_t)file->st_dev);
    length += spell_number(name + length, (uint64_t)file->st_ino);
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
static void code_rename(struct code *code, const char *name)
{
    struct link_map *map;
    if (dlinfo(code->handle, RTLD_DI_LINKMAP, &map))
        return;
    char *now = __atomic_load_n(&map->l_name, __ATOMIC_ACQUIRE);
    if (strcmp(now, name) != 0)
        return;
    __atomic_store_n(&map->l_name, code->path, __ATOMIC_RELEASE);
    code->first_name = now;
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

static bool code_open(struct candidate *candidate, struct code *code)
{
    char descriptor[NAME_BYTES];
    const bool named = has_name(candidate, &code->file, descriptor);
    const char *name = named ? descriptor : candidate->real;
    code->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!code->handle)
        return load_failed(candidate, name);
    if (named)
        code_rename(code, name);
    return true;
}

/* If the path leads to another file by now, the code stays in the process all the same. */
static void *code_load(struct candidate *candidate, const struct stat *file)
{
    struct code *code = calloc(1, sizeof *code);
    if (!code || !(code->path = strdup(candidate->real)))
        stop(candidate, REASON_NO_MEMORY, NULL);
    else
        code->file = *file;
    if (candidate->reason || !code_open(candidate, code)) {
        free(code ? code->path : NULL);
        free(code);
        return NULL;
    }
    const bool still = is_still(candidate, file);
    if (candidate->reason == REASON_CHANGED_FILE) {
        set_remedy(candidate, "Restart the program");
        code->other = !code->first_name;
    }
    code->next = atomic_load(&all_code);
    while (!atomic_compare_exchange_weak(&all_code, &code->next, code))
        ;
    return still ? code->handle : NULL;
}

/* A plugin is loaded once and stays loaded: a new version of it needs a new process. */
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
    const struct code *before = code_find(candidate->real, &checked);
    if (!before)
        return code_load(candidate, &checked);
    if (same_file(&before->file, &checked) && !before->other)
        return before->handle;
    stop(candidate, REASON_CHANGED_FILE,
         "the process still has the code of an earlier version of the file");
    set_remedy(candidate, "Restart the program");
    return NULL;
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
