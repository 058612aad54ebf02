/* SPDX-License-Identifier: MIT */
/* object.h - shared by fuzz_elf.c, fuzz_pe.c and fuzz_macho.c: the readers of object files on
 * arbitrary bytes. They return, read no byte out of bounds, and give a reason when they reject a
 * file. */
#ifndef FUZZ_OBJECT_H
#define FUZZ_OBJECT_H

#include "object/manifest.h"
#include "probe/object/elsewhere.h"
#include "probe/object/object.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t fuzz_sum;

/* A place must be relative to its base, and terminated. */
static inline enum there fuzz_look(void *user, enum base base, const char *path)
{
    if (*path == '/' || strlen(path) > 4096)
        abort();
    *(size_t *)user += strlen(path) + (size_t)base;
    return THERE_NOTHING;
}

/* Searches for the libraries as Windows and macOS would. */
static inline size_t fuzz_places(const struct object *object)
{
    size_t sum = 0;
    const struct elsewhere elsewhere = { .object = object,
                                         .variables = { "/a:b::/c", ":", "/f", "" },
                                         .look = fuzz_look,
                                         .user = &sum };
    const bool elf = object->format != OBJECT_PE && object->format != OBJECT_MACHO;
    for (uint32_t i = 0; i < object->needed_count && !elf; i++)
        if (library_elsewhere(&elsewhere, object->needed[i]) == LIBRARY_FOUND)
            abort();
    for (uint32_t i = 0; i < object->rpath_count; i++)
        sum += strlen(object->rpaths[i]);
    return sum;
}

/* Reads everything that the reader has returned. */
static inline void fuzz_use(const struct object *object, enum object_fault fault)
{
    struct manifest manifest;
    char text[64];
    size_t sum = fuzz_places(object);
    for (uint32_t i = 0; i < object->needed_count; i++)
        sum += strlen(object->needed[i]);
    for (uint32_t i = 0; i < object->version_count; i++)
        sum += strlen(object->versions[i]);
    for (size_t i = 0; i < object->undefined_count; i++)
        sum += strlen(object->undefined[i]);
    sum += object->rpath ? strlen(object->rpath) : 0;
    sum += object->runpath ? strlen(object->runpath) : 0;
    if (object->manifest)
        (void)manifest_parse(&manifest, object->manifest, object->manifest_bytes, text,
                             sizeof text);
    if (!fault && (!object->format || !object->machine_count || !object->bits))
        abort();
    fuzz_sum = sum;
}

static inline void fuzz_object(const uint8_t *data, size_t size)
{
    /* An empty input may be NULL, which the reader would take for a descriptor. */
    struct source source = { .data = size ? data : (const uint8_t *)"",
                             .fd = -1,
                             .size = size };
    struct object object;
    char why[256] = "", here[256] = "", machines[32];
    const enum object_fault fault = object_read(&source, &object, why, sizeof why);
    if (fault >= OBJECT_FAULT_COUNT || !fault != !why[0] || !memchr(why, '\0', sizeof why))
        abort();
    if (!object_native(&object, here, sizeof here) != !here[0])
        abort();
    if (!*object_machines(&object, machines, sizeof machines) && object.machine_count)
        abort();
    fuzz_use(&object, fault);
    object_free(&object);
    if (!object_check_library(&source, why, sizeof why) && (!object.format || here[0]))
        abort();
}

/* Once unchanged, once with the magic number of the target's format. */
static inline int fuzz_as(const uint8_t *data, size_t size, const char *magic, size_t bytes)
{
    fuzz_object(data, size);
    if (size < bytes || memcmp(data, magic, bytes) == 0)
        return 0;
    uint8_t *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    memcpy(copy, magic, bytes);
    fuzz_object(copy, size);
    free(copy);
    return 0;
}

#endif
