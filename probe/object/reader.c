/* SPDX-License-Identifier: MIT */
/* reader.c - see reader.h. */
#define _DEFAULT_SOURCE
#include "probe/object/reader.h"

#include <hw/plugin.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum object_fault because(struct reader *reader, enum object_fault fault,
                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->why, reader->why_size, format, arguments);
    va_end(arguments);
    return fault;
}

enum object_fault truncated(struct reader *reader, const char *what)
{
    return because(reader, OBJECT_TRUNCATED, "the file is truncated: it ends before its %s",
                   what);
}

enum object_fault malformed(struct reader *reader, const char *what)
{
    return because(reader, OBJECT_MALFORMED, "the object file is damaged: %s", what);
}

enum object_fault no_memory(struct reader *reader)
{
    return because(reader, OBJECT_NO_MEMORY, "out of memory");
}

/* ---- bytes ---- */

bool has_bytes(const struct reader *reader, uint64_t offset, uint64_t bytes)
{
    return offset <= reader->size && bytes <= reader->size - offset;
}

static bool source_read(struct source *source, uint64_t offset, char *to, uint64_t bytes)
{
    if (offset > source->size || bytes > source->size - offset)
        return false;
    if (source->data) {
        memcpy(to, source->data + offset, (size_t)bytes);
        return true;
    }
    while (bytes) {
        ssize_t got = pread(source->fd, to, (size_t)bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            source->error = errno;
        if (got <= 0)
            return false; /* 0: the file has shrunk */
        to += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return true;
}

bool read_at(const struct reader *reader, uint64_t offset, void *to, uint64_t bytes)
{
    return has_bytes(reader, offset, bytes) &&
           source_read(reader->source, reader->start + offset, to, bytes);
}

uint64_t number(const struct reader *reader, const uint8_t *bytes, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value = value << 8 | bytes[reader->big ? i : width - 1 - i];
    return value;
}

bool read_number(const struct reader *reader, uint64_t offset, unsigned width,
                 uint64_t *value)
{
    uint8_t bytes[8];
    if (!read_at(reader, offset, bytes, width))
        return false;
    *value = number(reader, bytes, width);
    return true;
}

/* ---- processors and needed libraries ---- */

const char *find_machine(const struct machine *rows, size_t count, uint64_t number)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].number == number)
            return rows[i].name;
    return NULL;
}

void add_machine(struct reader *reader, const char *name)
{
    struct object *object = reader->object;
    if (object->machine_count < MAX_MACHINES)
        object->machines[object->machine_count++] = name ? name : "another processor";
}

/* Allocates room for all strings: the names of libraries, then the paths. */
static enum object_fault make_room(struct reader *reader)
{
    struct object *object = reader->object;
    if (object->strings)
        return OBJECT_GOOD;
    object->strings_size = MAX_NEEDED * NAME_BYTES + MAX_RPATHS * RPATH_BYTES;
    object->strings = malloc(object->strings_size);
    return object->strings ? OBJECT_GOOD : no_memory(reader);
}

/* Copies the text at the offset to `to`. Its NUL must be within `most` bytes and within `size`. */
static bool take_text(const struct reader *reader, uint64_t offset, uint64_t most, char *to,
                      size_t size)
{
    if (offset < reader->size && most > reader->size - offset)
        most = reader->size - offset;
    most = most < size ? most : size;
    return read_at(reader, offset, to, most) && memchr(to, '\0', (size_t)most) && *to;
}

enum object_fault add_needed(struct reader *reader, uint64_t offset, uint64_t most)
{
    struct object *object = reader->object;
    if (object->needed_count == MAX_NEEDED)
        return malformed(reader, "it needs too many libraries");
    if (make_room(reader))
        return OBJECT_NO_MEMORY;
    char *name = object->strings + object->needed_count * NAME_BYTES;
    if (!take_text(reader, offset, most, name, NAME_BYTES))
        return malformed(reader, "the name of a needed library is invalid");
    object->needed[object->needed_count++] = name;
    return OBJECT_GOOD;
}

enum object_fault add_rpath(struct reader *reader, uint64_t offset, uint64_t most)
{
    struct object *object = reader->object;
    if (object->rpath_count == MAX_RPATHS)
        return malformed(reader, "it has too many paths for libraries");
    if (make_room(reader))
        return OBJECT_NO_MEMORY;
    char *path = object->strings + MAX_NEEDED * NAME_BYTES +
                 object->rpath_count * RPATH_BYTES;
    if (!take_text(reader, offset, most, path, RPATH_BYTES))
        return malformed(reader, "a path for libraries is invalid");
    object->rpaths[object->rpath_count++] = path;
    return OBJECT_GOOD;
}

/* ---- the manifest ---- */

static uint64_t round_up(uint64_t value, unsigned align)
{
    return (value + align - 1) / align * align;
}

enum object_fault take_manifest(struct reader *reader, const uint8_t *notes, uint64_t bytes,
                                unsigned align)
{
    enum { HEAD = 12 }; /* bytes of the name, bytes of the text, type */
    struct object *object = reader->object;
    for (uint64_t at = 0; at <= bytes && bytes - at >= HEAD;) {
        const uint64_t name = at + HEAD, name_bytes = number(reader, notes + at, 4);
        const uint64_t text = round_up(name + name_bytes, align);
        const uint64_t text_bytes = number(reader, notes + at + 4, 4);
        const uint64_t type = number(reader, notes + at + 8, 4);
        if (text > bytes || text_bytes > bytes - text)
            return malformed(reader, "a note reaches past the end of its segment");
        at = round_up(text + text_bytes, align);
        if (type != HW_NOTE_TYPE || name_bytes < 3 || name_bytes > 4 ||
            memcmp(notes + name, "hw", 3) != 0)
            continue;
        if (object->manifest)
            return because(reader, OBJECT_TWO_MANIFESTS, "it has two manifests");
        object->manifest = malloc(text_bytes ? (size_t)text_bytes : 1);
        if (!object->manifest)
            return no_memory(reader);
        memcpy(object->manifest, notes + text, (size_t)text_bytes);
        object->manifest_bytes = (size_t)text_bytes;
    }
    return OBJECT_GOOD;
}

enum object_fault read_manifest(struct reader *reader, uint64_t offset, uint64_t bytes,
                                unsigned align)
{
    if (!has_bytes(reader, offset, bytes))
        return truncated(reader, "notes");
    if (bytes > MAX_NOTES)
        return OBJECT_GOOD;
    uint8_t *notes = malloc(bytes ? (size_t)bytes : 1);
    if (!notes)
        return no_memory(reader);
    enum object_fault fault = read_at(reader, offset, notes, bytes)
                                  ? take_manifest(reader, notes, bytes, align)
                                  : truncated(reader, "notes");
    free(notes);
    return fault;
}
