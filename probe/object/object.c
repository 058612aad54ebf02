/* SPDX-License-Identifier: MIT */
/* object.c - detects the format of a file, and whether it is for this system. */
#include "probe/object/object.h"

#include "probe/object/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum object_fault not_an_object(struct reader *reader, const uint8_t *start,
                                       size_t bytes)
{
    enum object_fault fault;
    const char *words = describe_other(start, bytes, &fault);
    return because(reader, fault, "%s", words);
}

static enum object_fault read_format(struct reader *reader, bool whole)
{
    uint8_t start[16] = { 0 };
    const size_t bytes = reader->size < sizeof start ? (size_t)reader->size : sizeof start;
    if (bytes == 0)
        return because(reader, OBJECT_EMPTY, "the file is empty");
    if (!read_at(reader, 0, start, bytes))
        return truncated(reader, "header");
    reader->object->format = format_of(start, bytes, &reader->big);
    switch (reader->object->format) {
    case OBJECT_NO_FORMAT:
        return not_an_object(reader, start, bytes);
    case OBJECT_ELF:
        return whole ? elf_read(reader) : elf_check(reader);
    default:
        return foreign_read(reader, start);
    }
}

static enum object_fault read_source(struct source *source, struct object *object,
                                     char *why, size_t size, bool whole)
{
    struct reader reader = { .source = source,
                             .object = object,
                             .why = why,
                             .why_size = size,
                             .size = source->size };
    *object = (struct object){ .format = OBJECT_NO_FORMAT };
    enum object_fault fault = read_format(&reader, whole);
    if (fault && source->error)
        fault = because(&reader, OBJECT_UNREADABLE, "cannot be read: %s",
                        strerror(source->error));
    return fault;
}

enum object_fault object_read(struct source *source, struct object *object, char *why,
                              size_t size)
{
    return read_source(source, object, why, size, true);
}

void object_free(struct object *object)
{
    free(object->strings);
    free(object->manifest);
    free(object->undefined);
}

/* ---- systems and processors ---- */

const char *object_machines(const struct object *object, char *text, size_t size)
{
    size_t at = 0;
    snprintf(text, size, "%s", object->machine_count ? "" : "an unknown processor");
    for (uint32_t i = 0; i < object->machine_count && at < size; i++) {
        const char *between = i == 0 ? "" : i + 1 == object->machine_count ? " and " : ", ";
        int bytes = snprintf(text + at, size - at, "%s%s", between, object->machines[i]);
        at += bytes > 0 ? (size_t)bytes : 0;
    }
    return text;
}

static bool runs_here(const struct object *object)
{
    for (uint32_t i = 0; i < object->machine_count; i++)
        if (strcmp(object->machines[i], native_machine()) == 0)
            return true;
    return false;
}

enum object_fault object_native(const struct object *object, char *why, size_t size)
{
    char machines[128];
    const struct target target = { .format = object->format,
                                   .machines = object->machine_count ? machines : NULL,
                                   .here = runs_here(object),
                                   .several = object->machine_count > 1,
                                   .bits = object->bits,
                                   .big = object->big };
    object_machines(object, machines, sizeof machines);
    return target_check(&target, why, size);
}

enum object_fault object_check_library(struct source *source, char *why, size_t size)
{
    struct object object;
    enum object_fault fault = read_source(source, &object, why, size, false);
    enum object_fault native = object.format ? object_native(&object, why, size) : fault;
    object_free(&object);
    return native ? native : fault;
}
