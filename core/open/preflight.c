/* SPDX-License-Identifier: MIT */
/* preflight.c - the stage preflight: what reading the file shows. Nothing of it runs, so a
 * plugin that is broken, alien, too new, or lacks its vendor's library stops here without a
 * trace. */
#define _POSIX_C_SOURCE 200809L
#include "open/preflight.h"

#include "base/platform.h"
#include "object/libraries.h"
#include "object/object.h"
#include "open/scan.h"
#include "open/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool check_manifest(struct candidate *candidate, const struct object *object)
{
    char why[256];
    if (!object->manifest)
        return stop(candidate, REASON_NO_MANIFEST, NULL);
    candidate->manifest = malloc(sizeof *candidate->manifest);
    if (!candidate->manifest)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    if (!manifest_parse(candidate->manifest, object->manifest, object->manifest_bytes, why,
                        sizeof why)) {
        free(candidate->manifest);
        candidate->manifest = NULL;
        return stop(candidate, REASON_BAD_MANIFEST, "its manifest is in error: %s", why);
    }
    return true;
}

/* A file that the settings name may be called anything; then the manifest says its name,
 * and the earlier stages' questions about names are asked now. */
static bool check_name(struct hw_context *context, struct candidate *candidate)
{
    const char *name = candidate->manifest->name;
    bool unnamed = candidate->name[0] == '\0';
    if (!unnamed && strcmp(candidate->name, name) != 0)
        return stop(candidate, REASON_NAME_MISMATCH,
                    "the file is called %s, but its manifest says \"%s\"", candidate->file,
                    name);
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
                "it serves ABI versions %u to %u, this library %u to %u",
                (unsigned)manifest->abi_min, (unsigned)manifest->abi_max, (unsigned)oldest,
                (unsigned)newest);
}

/* "2.38" as 2038; 0 for what is no such number. */
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

/* Where the plugin lies: what $ORIGIN means in it. */
static void directory_of(const struct candidate *candidate, char *directory, size_t size)
{
    int length = (int)(strrchr(candidate->real, '/') - candidate->real);
    snprintf(directory, size, "%.*s", length, candidate->real);
}

static bool missing(struct candidate *candidate, const char *library)
{
    const struct manifest *manifest = candidate->manifest;
    stop(candidate, REASON_NEEDS_LIBRARY, "needs %.200s%s%s%s: not found", library,
         *manifest->vendor ? " (" : "", manifest->vendor, *manifest->vendor ? ")" : "");
    set_remedy(candidate, "%s, or HW_DISABLE=%s to stop looking",
               *manifest->remedy ? manifest->remedy : "install it", candidate->name);
    return false;
}

/* "a|b": one of them is enough. */
static enum found find_any(const char *names, const struct object *object,
                           const char *directory, bool elevated)
{
    enum found best = NOT_FOUND;
    while (*names && best != FOUND) {
        char name[256];
        size_t length = strcspn(names, "|");
        if (length && length < sizeof name) {
            memcpy(name, names, length);
            name[length] = '\0';
            enum found found = library_find(name, object, directory, elevated);
            best = found == NOT_FOUND ? best : found;
        }
        names += length + (names[length] == '|');
    }
    return best;
}

static bool check_libraries(struct hw_context *context, struct candidate *candidate,
                            const struct object *object)
{
    const struct manifest *manifest = candidate->manifest;
    bool elevated = context->settings.elevated;
    char directory[4096];
    directory_of(candidate, directory, sizeof directory);
    for (uint32_t i = 0; i < object->needed_count; i++)
        if (library_find(object->needed[i], object, directory, elevated) == NOT_FOUND)
            return missing(candidate, object->needed[i]);
    for (uint32_t i = 0; i < manifest->need_count; i++)
        if (find_any(manifest->needs[i], object, directory, elevated) == NOT_FOUND)
            return missing(candidate, manifest->needs[i]);
    return true;
}

static const enum reason reasons[OBJECT_FAULT_COUNT] = {
    [OBJECT_EMPTY] = REASON_EMPTY,
    [OBJECT_UNREADABLE] = REASON_UNREADABLE,
    [OBJECT_NOT_AN_OBJECT] = REASON_NOT_AN_OBJECT,
    [OBJECT_WRONG_FORMAT] = REASON_WRONG_FORMAT,
    [OBJECT_WRONG_CLASS] = REASON_WRONG_CLASS,
    [OBJECT_WRONG_BYTE_ORDER] = REASON_WRONG_BYTE_ORDER,
    [OBJECT_WRONG_MACHINE] = REASON_WRONG_MACHINE,
    [OBJECT_NOT_SHARED] = REASON_NOT_SHARED,
    [OBJECT_TRUNCATED] = REASON_TRUNCATED,
    [OBJECT_MALFORMED] = REASON_MALFORMED,
    [OBJECT_EXECUTABLE_STACK] = REASON_EXECUTABLE_STACK,
    [OBJECT_NO_ENTRY] = REASON_NO_ENTRY,
    [OBJECT_BAD_ENTRY] = REASON_BAD_ENTRY,
    [OBJECT_BAD_MANIFEST] = REASON_BAD_MANIFEST,
    [OBJECT_NO_MEMORY] = REASON_NO_MEMORY,
};

bool preflight(struct hw_context *context, struct candidate *candidate)
{
    struct stat info;
    struct object object;
    char why[256] = "";
    if (fstat(candidate->fd, &info))
        return stop(candidate, REASON_UNREADABLE, NULL);
    struct source source = { .fd = candidate->fd, .size = (uint64_t)info.st_size };
    enum object_fault fault = elf_read(&source, &object, why, sizeof why);
    bool passed = fault ? stop(candidate, reasons[fault], "%s", why)
                        : check_manifest(candidate, &object) &&
                              check_name(context, candidate) && check_abi(candidate) &&
                              check_libc(candidate, &object) &&
                              check_libraries(context, candidate, &object);
    object_free(&object);
    return passed;
}
