/* SPDX-License-Identifier: MIT */
/* preflight.c - the stage preflight: reads the file without running it. A plugin stops here if it
 * is damaged, built for another system or too new, or if its vendor's library is missing. */
#define _POSIX_C_SOURCE 200809L
#include "open/preflight.h"

#include "base/platform.h"
#include "object/libraries.h"
#include "object/object.h"
#include "open/key.h"
#include "open/scan.h"
#include "open/select.h"
#include "open/trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool check_manifest(struct candidate *candidate, const struct object *object)
{
    char why[256];
    if (!object->manifest)
        return stop(candidate, REASON_NO_MANIFEST, NULL);
    candidate->manifest = malloc(sizeof *candidate->manifest);
    if (!candidate->manifest)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    if (manifest_parse(candidate->manifest, object->manifest, object->manifest_bytes, why,
                       sizeof why))
        return true;
    free(candidate->manifest);
    candidate->manifest = NULL;
    return stop(candidate, REASON_BAD_MANIFEST, "its manifest is invalid: %s", why);
}

/* If the file's name does not name the plugin, the manifest does. The checks of names in the
 * earlier stages then follow here. */
static bool check_name(struct hw_context *context, struct candidate *candidate)
{
    const char *name = candidate->manifest->name;
    bool unnamed = candidate->name[0] == '\0';
    if (!unnamed && strcmp(candidate->name, name) != 0)
        return stop(candidate, REASON_NAME_MISMATCH,
                    "the file is named %s, but its manifest has the name \"%s\"",
                    candidate->file, name);
    memcpy(candidate->name, name, sizeof candidate->name);
    return !unnamed || (first_of_name(context, candidate) && filter(context, candidate));
}

static bool check_abi(struct candidate *candidate)
{
    const struct manifest *manifest = candidate->manifest;
    uint32_t oldest = HW_ABI_OLDEST, newest = HW_ABI_VERSION;
    if (manifest->abi_max >= oldest && manifest->abi_min <= newest)
        return true;
    return stop(candidate, REASON_ABI_RANGE,
                "it supports ABI versions %u to %u, this library %u to %u",
                (unsigned)manifest->abi_min, (unsigned)manifest->abi_max, (unsigned)oldest,
                (unsigned)newest);
}

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

static const enum reason reasons[OBJECT_FAULT_COUNT] = {
#define X(NAME, code) [OBJECT_##NAME] = REASON_##NAME,
    OBJECT_FAULTS(X)
#undef X
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

struct needs {
    struct hw_context *context;
    struct candidate *candidate;
    const struct object *object;
    char *directory; /* the plugin's directory, for $ORIGIN */
};

/* "a|b" means that either one is enough. */
static struct library find_any(const struct needs *needs, const char *names)
{
    struct library best = { .found = NOT_FOUND };
    while (*names && best.found != FOUND) {
        size_t length = strcspn(names, "|");
        char *name = strndup(names, length);
        struct library library = { .found = UNDECIDED };
        if (name)
            library = library_find(name, needs->object, needs->directory,
                                   needs->context->settings.elevated);
        free(name);
        best = library.found == NOT_FOUND ? best : library;
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
    bool checked = library->own && needs->context->settings.trust;
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
    bool good = library.found != NOT_FOUND || missing(candidate, names);
    if (library.path && !library.system)
        good = check_library(needs, &library);
    key_add_library(candidate, names, library.path);
    if (library.loaded && library.path && candidate->loaded_count < LOADED_MAX)
        candidate->loaded[candidate->loaded_count++] = library.path;
    else
        free(library.path);
    return good;
}

/* Other users must not be able to add a library to a directory in the plugin's own path, now or
 * between this check and the loading. */
static bool check_own_directory(void *user, const char *path)
{
    struct candidate *candidate = user;
    struct distrust distrust;
    if (!path)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    if (*path == '/' && trust_directory(path, &distrust))
        return true;
    stop(candidate, *path == '/' ? distrust.reason : REASON_UNTRUSTED_PATH,
         "its rpath names the directory %s: %s", path,
         *path == '/' ? distrust.message : "relative to the current directory");
    set_remedy(candidate,
               "Build it without this rpath (patchelf --remove-rpath removes it), "
               "or set HW_TRUST=off");
    return false;
}

static bool check_libraries(struct hw_context *context, struct candidate *candidate,
                            const struct object *object)
{
    const struct manifest *manifest = candidate->manifest;
    const size_t length = (size_t)(strrchr(candidate->real, '/') - candidate->real);
    struct needs needs = { context, candidate, object, strndup(candidate->real, length) };
    bool good = needs.directory || stop(candidate, REASON_NO_MEMORY, NULL);
    if (good && context->settings.trust)
        good = library_directories(object, needs.directory, check_own_directory, candidate);
    for (uint32_t i = 0; i < object->needed_count && good; i++)
        good = check_need(&needs, object->needed[i]);
    for (uint32_t i = 0; i < manifest->need_count && good; i++)
        good = check_need(&needs, manifest->needs[i]);
    free(needs.directory);
    return good;
}

bool preflight(struct hw_context *context, struct candidate *candidate)
{
    struct stat info;
    char why[256] = "";
    struct object *object = candidate->object = calloc(1, sizeof *object);
    if (!object)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    if (fstat(candidate->fd, &info))
        return stop(candidate, is_shortage(errno) ? REASON_NO_MEMORY : REASON_UNREADABLE,
                    "cannot be read: %s", strerror(errno));
    if (context->settings.probe_child)
        key_begin(candidate);
    struct source source = { .fd = candidate->fd, .size = (uint64_t)info.st_size };
    enum object_fault fault = object_read(&source, object, why, sizeof why);
    const enum object_fault foreign = object_native(object, why, sizeof why);
    if (foreign || fault)
        return stop(candidate, reasons[foreign ? foreign : fault], "%s", why);
    return check_manifest(candidate, object) && check_name(context, candidate) &&
           check_abi(candidate) && check_libc(candidate, object);
}

bool preflight_libraries(struct hw_context *context, struct candidate *candidate)
{
    if (!check_libraries(context, candidate, candidate->object))
        return false;
    key_end(context, candidate);
    return true;
}
