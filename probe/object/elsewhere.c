/* SPDX-License-Identifier: MIT */
/* elsewhere.c - where Windows and macOS look for a library.
 *
 * Windows: searches like LoadLibraryExW() with LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR and
 * LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, so neither PATH nor the current directory. See
 * "Dynamic-link library search order" in Microsoft's documentation. Redirections by a manifest or
 * a .local file are not supported.
 *
 * macOS: see dyld(1) and the PathOverrides of dyld's sources. Suffixes of images and versioned
 * paths are not supported, nor is the LC_RPATH of the program, which is not known here. */
#include "probe/object/elsewhere.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES 1024

struct search {
    const struct elsewhere *about;
    enum there best; /* the best result so far */
};

/* ---- places ---- */

/* Whether the search ends here. A file that does not fit ends it only on Windows. */
static bool look(struct search *search, enum base base, const char *path)
{
    const struct elsewhere *about = search->about;
    const enum there there = about->look(about->user, base, path + strspn(path, "/"));
    if (there > search->best || there == THERE_FIT)
        search->best = there;
    return there == THERE_FIT ||
           (there == THERE_UNFIT && about->object->format == OBJECT_PE);
}

/* `directory` has `length` characters. A path that is too long is skipped. */
static bool look_in(struct search *search, enum base base, const char *directory,
                    size_t length, const char *name)
{
    char path[PATH_BYTES];
    while (length && directory[length - 1] == '/')
        length--;
    const int bytes = snprintf(path, sizeof path, "%.*s/%s",
                               (int)(length < PATH_BYTES ? length : PATH_BYTES), directory,
                               name);
    return bytes > 0 && bytes < PATH_BYTES && look(search, base, path);
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* ---- macOS ---- */

/* "X.framework/Versions/A/X" in "/Library/X.framework/Versions/A/X"; NULL if the name is not the
 * path of a framework. */
static const char *framework_part(const char *name)
{
    static const char suffix[] = ".framework/";
    const char *dot = NULL;
    for (const char *next = strstr(name, suffix); next; next = strstr(next + 1, suffix))
        dot = next;
    const char *start = dot;
    while (start && start > name && start[-1] != '/')
        start--;
    const char *leaf = last_part(name);
    const size_t length = start ? (size_t)(dot - start) : 0;
    return length && strlen(leaf) == length && memcmp(leaf, start, length) == 0 ? start
                                                                                : NULL;
}

/* Only absolute directories of the list are searched, unlike on Linux. */
static bool in_list(struct search *search, const char *list, const char *name)
{
    while (list && *list) {
        const size_t length = strcspn(list, ":");
        if (*list == '/' && look_in(search, FROM_ROOT, list, length, name))
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

/* Looks at a path that names its start, such as "@loader_path/", with `rest` appended. A path that
 * starts in the current directory is skipped. */
static bool at_path(struct search *search, const char *path, const char *rest)
{
    static const struct {
        const char *prefix;
        enum base base;
    } rows[] = { { "@loader_path", FROM_OBJECT },
                 { "@executable_path", FROM_PROGRAM },
                 { "", FROM_ROOT } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t length = strlen(rows[i].prefix);
        const char *after = path + length;
        if (strncmp(path, rows[i].prefix, length) == 0 &&
            (*after == '/' || (length && !*after)))
            return look_in(search, rows[i].base, after, strlen(after), rest);
    }
    return false;
}

static bool by_rpath(struct search *search, const char *rest)
{
    const struct object *object = search->about->object;
    for (uint32_t i = 0; i < object->rpath_count; i++)
        if (at_path(search, object->rpaths[i], rest))
            return true;
    return false;
}

/* A name without a slash is treated like "@rpath/" and the name. */
static bool by_name(struct search *search, const char *name)
{
    static const char rpath[] = "@rpath/";
    if (strncmp(name, rpath, sizeof rpath - 1) == 0)
        return by_rpath(search, name + sizeof rpath - 1);
    const char *leaf = last_part(name);
    if (leaf == name)
        return by_rpath(search, name);
    char directory[PATH_BYTES];
    const int bytes = snprintf(directory, sizeof directory, "%.*s", (int)(leaf - name),
                               name);
    return bytes < PATH_BYTES && at_path(search, directory, leaf);
}

static bool ends(const char *name, const char *suffix)
{
    const size_t length = strlen(name), part = strlen(suffix);
    return length > part && strcmp(name + length - part, suffix) == 0;
}

static enum located find_macos(struct search *search, const char *name)
{
    const char *framework = framework_part(name);
    const char *part = framework ? framework : last_part(name);
    const char *const *variables = search->about->variables;
    const char *first = variables[framework ? DYLD_FRAMEWORK_PATH : DYLD_LIBRARY_PATH];
    const char *last =
        variables[framework ? DYLD_FALLBACK_FRAMEWORK_PATH : DYLD_FALLBACK_LIBRARY_PATH];
    if (!last || !*last)
        last = framework ? "/Library/Frameworks:/System/Library/Frameworks"
                         : "/usr/local/lib:/usr/lib";
    if (in_list(search, first, part) || by_name(search, name) ||
        in_list(search, last, part))
        return LIBRARY_FOUND;
    /* Since macOS 11, its own libraries are in the shared cache of dyld. */
    if (strncmp(name, "/usr/lib/", 9) == 0 || strncmp(name, "/System/", 8) == 0)
        return LIBRARY_OF_SYSTEM;
    return !strchr(name, '/') && ends(name, ".dylib") ? LIBRARY_PERHAPS : LIBRARY_MISSING;
}

/* ---- Windows ---- */

static bool begins(const char *name, const char *prefix)
{
    for (; *prefix; name++, prefix++)
        if (*name != *prefix &&
            !(*prefix >= 'a' && *prefix <= 'z' && *name == *prefix - 32))
            return false;
    return true;
}

/* An API set: Windows itself maps such a name to a file. */
static bool is_api_set(const char *name)
{
    return begins(name, "api-ms-win-") || begins(name, "ext-ms-");
}

/* Whether KnownDLLs in the registry lists the name: Windows then uses only its own directory. */
static bool is_known(const char *name)
{
    static const char *const known[] = {
        "advapi32", "clbcatq",  "combase", "comdlg32", "coml2",  "difxapi", "gdi32",
        "gdiplus",  "imagehlp", "imm32",   "kernel32", "msctf",  "msvcrt",  "normaliz",
        "nsi",      "ntdll",    "ole32",   "oleaut32", "psapi",  "rpcrt4",  "sechost",
        "setupapi", "shcore",   "shell32", "shlwapi",  "user32", "wldap32", "ws2_32",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t length = strlen(known[i]);
        if (begins(name, known[i]) && begins(name + length, ".dll") && !name[length + 4])
            return true;
    }
    return false;
}

static bool in_system_directory(struct search *search, const char *name)
{
    const char *directory = search->about->object->bits == 32 ? "Windows/SysWOW64"
                                                              : "Windows/System32";
    return look_in(search, FROM_ROOT, directory, strlen(directory), name);
}

/* Looks at a path on drive C; other drives are not known. */
static bool at_drive(struct search *search, const char *path)
{
    return begins(path, "c:/") ? look(search, FROM_ROOT, path + 2)
                               : *path == '/' && look(search, FROM_ROOT, path);
}

/* Adds the usual extension to a name that has none. */
static bool complete_name(char name[PATH_BYTES], const char *from)
{
    const int bytes = snprintf(name, PATH_BYTES, "%s%s", from,
                               strchr(from, '.') ? "" : ".dll");
    for (char *at = name; *at; at++)
        *at = *at == '\\' ? '/' : *at;
    return bytes < PATH_BYTES;
}

static enum located find_windows(struct search *search, const char *from)
{
    char name[PATH_BYTES];
    if (!complete_name(name, from))
        return LIBRARY_MISSING;
    if (is_api_set(name))
        return LIBRARY_OF_SYSTEM;
    const bool known = is_known(name);
    const bool ends = strchr(name, '/') ? at_drive(search, name)
                      : known           ? in_system_directory(search, name)
                                        : look(search, FROM_OBJECT, name) ||
                                    look(search, FROM_PROGRAM, name) ||
                                    in_system_directory(search, name);
    if (ends)
        return search->best == THERE_FIT ? LIBRARY_FOUND : LIBRARY_UNFIT;
    return known ? LIBRARY_OF_SYSTEM : LIBRARY_MISSING;
}

/* ---- either ---- */

enum located library_elsewhere(const struct elsewhere *elsewhere, const char *name)
{
    struct search search = { elsewhere, THERE_NOTHING };
    const enum located located = elsewhere->object->format == OBJECT_PE
                                     ? find_windows(&search, name)
                                     : find_macos(&search, name);
    if (located != LIBRARY_MISSING)
        return located;
    return search.best == THERE_UNSEEN  ? LIBRARY_UNKNOWN
           : search.best == THERE_UNFIT ? LIBRARY_UNFIT
                                        : LIBRARY_MISSING;
}
