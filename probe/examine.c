/* SPDX-License-Identifier: MIT */
/* examine.c - see examine.h. */
#define _GNU_SOURCE
#include "probe/examine.h"

#include "base/platform.h"
#include "base/text.h"
#include "cache/depends.h"
#include "load/library.h"
#include "load/trust.h"
#include "probe/depends_write.h"
#include "probe/libraries.h"
#include "probe/lock.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const enum reason reasons[OBJECT_FAULT_COUNT] = {
#define X(NAME, code) [OBJECT_##NAME] = REASON_##NAME,
    OBJECT_FAULTS(X)
#undef X
};

static bool examine_object(struct candidate *candidate, struct object *object)
{
    struct stat info;
    char why[256] = "";
    if (fstat(candidate->fd, &info))
        return stop(candidate, is_shortage(errno) ? REASON_NO_MEMORY : REASON_UNREADABLE,
                    "cannot be read: %s", strerror(errno));
    struct source source = { .fd = candidate->fd, .size = (uint64_t)info.st_size };
    const enum object_fault fault = object_read(&source, object, why, sizeof why);
    if (fault)
        stop(candidate, reasons[fault], "%s", why);
    if (fault && object->remedy)
        set_remedy(candidate, "%s", object->remedy);
    return !fault;
}

/* ---- the C library ---- */

/* "2.38" is 2038; 0 if the text is not such a version. */
static unsigned version_number(const char *text)
{
    unsigned major, minor;
    char rest;
    int fields = sscanf(text, "%3u.%3u%c", &major, &minor, &rest);
    return fields == 2 || (fields == 3 && rest == '.') ? major * 1000 + minor : 0;
}

static bool check_libc(struct candidate *candidate, const struct object *object)
{
    static const char prefix[] = "GLIBC_";
    const char *have = libc_version();
    for (uint32_t i = 0; have && i < object->version_count; i++) {
        const char *version = object->versions[i];
        if (strncmp(version, prefix, sizeof prefix - 1) == 0 &&
            version_number(version + sizeof prefix - 1) > version_number(have))
            return stop(candidate, REASON_NEEDS_LIBC,
                        "it needs %.64s; this system has %s%s", version, prefix, have);
    }
    return true;
}

/* ---- needed libraries ---- */

struct needs {
    const struct application *application;
    struct candidate *candidate;
    struct examined *examined;
    struct library_search search;
};

static bool missing(struct candidate *candidate, const char *library)
{
    const struct manifest *manifest = candidate->manifest;
    stop(candidate, REASON_NEEDS_LIBRARY, "it needs %.200s%s%s%s, which was not found",
         library, *manifest->vendor ? " (" : "", manifest->vendor,
         *manifest->vendor ? ")" : "");
    set_remedy(candidate, "%s, or HW_DISABLE=%s to stop looking",
               *manifest->remedy ? manifest->remedy : "Install it", candidate->name);
    return false;
}

/* The path from which the application has loaded the library of this name; or NULL. */
static const char *in_application(const struct application *application, const char *name)
{
    const size_t length = strlen(name);
    for (uint32_t i = 0; i < application->count; i++) {
        const char *library = application->libraries[i], *path = strchr(library, '/');
        if (!path)
            continue;
        if ((size_t)(path - library) == length && memcmp(library, name, length) == 0)
            return path;
        if (strcmp(strrchr(path, '/') + 1, name) == 0)
            return path;
    }
    return NULL;
}

/* Loads the application's library, so that the plugin finds it by name, wherever it is. */
static bool load_for_plugin(const struct application *application, const char *path)
{
    struct distrust distrust;
    const int fd = trust_open(path, application->trust, NULL, &distrust);
    if (fd < 0)
        return false;
    close(fd);
    const bool loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL;
    if (!loaded)
        dlerror(); /* discards the message */
    return loaded;
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(identity_at(a).text, identity_at(b).text) == 0;
}

/* Searches the library as the application would, and lists what the result depends on. */
static struct library find_one(const struct needs *needs, const char *name)
{
    const struct application *application = needs->application;
    const char *there = in_application(application, name);
    struct library library = library_find(&needs->search, name);
    if (!there || (library.path && is_same(library.path, there))) {
        depends_add_library(&needs->examined->depends, name, library.path, library.path);
        return library;
    }
    /* Other processes do not find it. */
    depends_add_library(&needs->examined->depends, name, there, NULL);
    if (load_for_plugin(application, there)) {
        free(library.path);
        library = library_find(&needs->search, name);
    }
    if (library.found == NOT_FOUND) {
        missing(needs->candidate, name);
        set_remedy(needs->candidate, "Only this process has it: add its directory to "
                                     "LD_LIBRARY_PATH, or set HW_PROBE=inproc");
    }
    return library;
}

/* "a|b" means that either one is enough. */
static struct library find_any(const struct needs *needs, const char *names)
{
    struct library best = { .found = NOT_FOUND };
    while (*names && best.found != FOUND) {
        size_t length = strcspn(names, "|");
        char *name = strndup(names, length);
        struct library library = { .found = UNDECIDED };
        if (name)
            library = find_one(needs, name);
        free(name);
        if (library.found != NOT_FOUND)
            best = library;
        names += length + (names[length] == '|');
    }
    return best;
}

/* A truncated library would kill the process. If the plugin's own path led to the library, other
 * users must not be able to put one there. LD_LIBRARY_PATH is not checked, because it applies to
 * the whole process. */
static bool check_library(const struct needs *needs, const struct library *library)
{
    struct candidate *candidate = needs->candidate;
    struct distrust distrust;
    struct stat info;
    char why[256];
    bool checked = library->own && needs->application->trust;
    if (checked && *library->path != '/')
        return stop(candidate, REASON_UNTRUSTED_PATH,
                    "it searches the current directory for its library %s", library->path);
    int fd = trust_open(library->path, checked, NULL, &distrust);
    if (fd < 0)
        return stop(candidate, distrust.reason, "its library %s: %s", library->path,
                    distrust.message);
    struct source source = { .fd = fd };
    enum object_fault fault = OBJECT_UNREADABLE;
    if (fstat(fd, &info)) {
        snprintf(why, sizeof why, "cannot be read: %s", strerror(errno));
    } else {
        source.size = (uint64_t)info.st_size;
        fault = object_check_library(&source, why, sizeof why);
    }
    close(fd);
    return !fault ||
           stop(candidate, reasons[fault], "its library %s: %s", library->path, why);
}

static bool check_need(const struct needs *needs, const char *names)
{
    struct candidate *candidate = needs->candidate;
    struct library library = find_any(needs, names);
    bool good = library.found != NOT_FOUND;
    if (good)
        candidate_clear(candidate); /* for an alternative that is missing */
    else if (!candidate->reason)
        missing(candidate, names);
    if (library.path && !library.system)
        good = check_library(needs, &library);
    free(library.path);
    return good;
}

/* The directory, and those above it: the verdict depends on who can write to them. */
static void add_directories(char **depends, const char *path)
{
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *above = text_format("%.*s", (int)(slash - path), path);
        if (above)
            depends_add_file(depends, above);
        free(above);
    }
    depends_add_file(depends, path);
}

/* Other users must not be able to add a library to a directory in the plugin's own path, now or
 * between this check and the loading. */
static bool check_own_directory(void *user, const char *path)
{
    const struct needs *needs = user;
    struct candidate *candidate = needs->candidate;
    struct distrust distrust;
    if (!path)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    add_directories(&needs->examined->depends, path);
    if (!needs->application->trust || (*path == '/' && trust_directory(path, &distrust)))
        return true;
    stop(candidate, *path == '/' ? distrust.reason : REASON_UNTRUSTED_PATH,
         "its rpath names the directory %s: %s", path,
         *path == '/' ? distrust.message : "relative to the current directory");
    set_remedy(candidate,
               "Build it without this rpath (patchelf --remove-rpath removes it), "
               "or set HW_TRUST=off");
    return false;
}

static void missed(void *user, const char *path)
{
    const struct needs *needs = user;
    depends_add_file(&needs->examined->depends, path);
}

static bool check_libraries(struct needs *needs)
{
    struct candidate *candidate = needs->candidate;
    const struct object *object = needs->search.object;
    const struct manifest *manifest = candidate->manifest;
    const size_t length = (size_t)(strrchr(candidate->real, '/') - candidate->real);
    char *directory = strndup(candidate->real, length);
    bool good = directory || stop(candidate, REASON_NO_MEMORY, NULL);
    needs->search.directory = directory;
    if (good)
        good = library_directories(object, directory, check_own_directory, needs);
    for (uint32_t i = 0; i < object->needed_count && good; i++)
        good = check_need(needs, object->needed[i]);
    for (uint32_t i = 0; i < manifest->need_count && good; i++)
        good = check_need(needs, manifest->needs[i]);
    free(directory);
    return good;
}

/* ---- all of it ---- */

bool examine(const struct application *application, struct candidate *candidate,
             struct examined *examined)
{
    struct needs needs = { .application = application,
                           .candidate = candidate,
                           .examined = examined,
                           .search = { .object = &examined->object,
                                       .elevated = application->elevated,
                                       .missed = missed,
                                       .user = &needs } };
    *examined = (struct examined){ .depends = strdup("") };
    if (!lock_check(application, candidate, examined) ||
        !examine_object(candidate, &examined->object))
        return false;
    return check_libc(candidate, &examined->object) && check_libraries(&needs);
}

void examined_free(struct examined *examined)
{
    object_free(&examined->object);
    free(examined->depends);
    *examined = (struct examined){ 0 };
}

/* A plugin that uses a symbol of this program would fail in other programs. Names that begin with
 * two underscores belong to the compiler, whose runtime (such as a sanitizer's) is part of the
 * program. */
bool examine_linked(const struct examined *examined, struct candidate *candidate)
{
    const struct object *object = &examined->object;
    for (size_t i = 0; i < object->undefined_count; i++) {
        const char *symbol = object->undefined[i];
        if (strncmp(symbol, "__", 2) != 0 && !dlsym(candidate->plugin->library, symbol))
            return library_not_linked(candidate, symbol, strlen(symbol));
    }
    return true;
}
