/* SPDX-License-Identifier: MIT */
/* object.c - detects the format of a file, and whether it is for this system. */
#define _DEFAULT_SOURCE
#include "object/object.h"

#include "object/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- this process ---- */

#if defined(_WIN32)
#define NATIVE_FORMAT OBJECT_PE
#elif defined(__MACH__)
#define NATIVE_FORMAT OBJECT_MACHO
#else
#define NATIVE_FORMAT OBJECT_ELF
#endif

#define NATIVE_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* The name of this processor, and its number in ELF. */
#if defined(__x86_64__)
#define NATIVE_MACHINE "x86-64"
#define NATIVE_NUMBER  62
#elif defined(__aarch64__)
#define NATIVE_MACHINE "AArch64"
#define NATIVE_NUMBER  183
#elif defined(__riscv)
#define NATIVE_MACHINE "RISC-V"
#define NATIVE_NUMBER  243
#elif defined(__powerpc64__)
#define NATIVE_MACHINE "POWER"
#define NATIVE_NUMBER  21
#elif defined(__s390x__)
#define NATIVE_MACHINE "IBM Z"
#define NATIVE_NUMBER  22
#elif defined(__loongarch__)
#define NATIVE_MACHINE "LoongArch"
#define NATIVE_NUMBER  258
#elif defined(__i386__)
#define NATIVE_MACHINE "i386"
#define NATIVE_NUMBER  3
#elif defined(__arm__)
#define NATIVE_MACHINE "ARM"
#define NATIVE_NUMBER  40
#endif

/* ---- the kind of file ---- */

typedef enum object_fault read_fn(struct reader *reader);

static const struct format {
    const char *magic;
    size_t bytes;
    enum object_format format;
    read_fn *read;
    bool big;
} formats[] = {
    { "\x7f"
      "ELF",
      4, OBJECT_ELF, elf_read, false },
    { "MZ", 2, OBJECT_PE, pe_read, false },
    { "\xcf\xfa\xed\xfe", 4, OBJECT_MACHO, macho_read, false },
    { "\xce\xfa\xed\xfe", 4, OBJECT_MACHO, macho_read, false },
    { "\xfe\xed\xfa\xcf", 4, OBJECT_MACHO, macho_read, true },
    { "\xfe\xed\xfa\xce", 4, OBJECT_MACHO, macho_read, true },
    { "\xca\xfe\xba\xbe", 4, OBJECT_MACHO, universal_read, true },
    { "\xca\xfe\xba\xbf", 4, OBJECT_MACHO, universal_read, true },
};

/* Files that people mistake for plugins. */
static enum object_fault not_an_object(struct reader *reader, const uint8_t *start,
                                       size_t bytes)
{
    static const struct {
        const char *magic;
        const char *what;
        enum object_fault fault;
    } rows[] = {
        { "#!", "a script, not an object file", OBJECT_SCRIPT },
        { "!<arch>\n", "a static library, not a shared object", OBJECT_STATIC_LIBRARY },
        { "/* GNU ld script", "a linker script, not a shared object",
          OBJECT_LINKER_SCRIPT },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (bytes >= strlen(rows[i].magic) &&
            memcmp(start, rows[i].magic, strlen(rows[i].magic)) == 0)
            return because(reader, rows[i].fault, "%s", rows[i].what);
    return because(reader, OBJECT_NOT_AN_OBJECT, "not an object file");
}

/* A file that ends within its magic is truncated, too. */
static const struct format *find_format(const uint8_t *start, size_t bytes)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (memcmp(start, formats[i].magic,
                   bytes < formats[i].bytes ? bytes : formats[i].bytes) == 0)
            return &formats[i];
    return NULL;
}

static enum object_fault read_format(struct reader *reader, bool whole)
{
    uint8_t start[16] = { 0 };
    const size_t bytes = reader->size < sizeof start ? (size_t)reader->size : sizeof start;
    if (bytes == 0)
        return because(reader, OBJECT_EMPTY, "the file is empty");
    if (!read_at(reader, 0, start, bytes))
        return truncated(reader, "header");
    const struct format *format = find_format(start, bytes);
    if (!format)
        return not_an_object(reader, start, bytes);
    reader->object->format = format->format;
    reader->big = format->big;
    return whole || format->format != OBJECT_ELF ? format->read(reader) : elf_check(reader);
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

const char *object_system(const struct object *object)
{
    static const char *const names[] = { [OBJECT_NO_FORMAT] = "",
                                         [OBJECT_ELF] = "Linux",
                                         [OBJECT_PE] = "Windows",
                                         [OBJECT_MACHO] = "macOS" };
    return names[object->format];
}

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
        if (strcmp(object->machines[i], NATIVE_MACHINE) == 0)
            return true;
    return false;
}

enum object_fault object_native(const struct object *object, char *why, size_t size)
{
    const struct object here = { .format = NATIVE_FORMAT };
    char machines[128];
    object_machines(object, machines, sizeof machines);
    if (!object->format)
        return OBJECT_GOOD; /* its format is not known */
    if (object->format != NATIVE_FORMAT) {
        snprintf(why, size, "built for %s on %s, not for %s on " NATIVE_MACHINE,
                 object_system(object), machines, object_system(&here));
        return OBJECT_WRONG_FORMAT;
    }
    if (!object->machine_count)
        return OBJECT_GOOD; /* its processor is not known: the file ends or is damaged before */
    if (object->bits != 8 * sizeof(void *) && object->machine_count < 2) {
        snprintf(why, size, "built for %u bits (%s), not %u", object->bits, machines,
                 (unsigned)(8 * sizeof(void *)));
        return OBJECT_WRONG_CLASS;
    }
    if (object->big != NATIVE_BIG) {
        snprintf(why, size, "built for another byte order (%s)", machines);
        return OBJECT_WRONG_BYTE_ORDER;
    }
    if (!runs_here(object)) {
        snprintf(why, size, "built for %s, not " NATIVE_MACHINE, machines);
        return OBJECT_WRONG_MACHINE;
    }
    return OBJECT_GOOD;
}

enum object_fault object_check_library(struct source *source, char *why, size_t size)
{
    struct object object;
    enum object_fault fault = read_source(source, &object, why, size, false);
    enum object_fault native = object.format ? object_native(&object, why, size) : fault;
    object_free(&object);
    return native ? native : fault;
}

bool object_begins_native(int fd)
{
    uint8_t start[20];
    uint16_t machine;
    if (pread(fd, start, sizeof start, 0) != (ssize_t)sizeof start)
        return false;
    memcpy(&machine, start + 18, sizeof machine);
    return memcmp(start,
                  "\x7f"
                  "ELF",
                  4) == 0 &&
           start[4] == (sizeof(void *) == 8 ? 2 : 1) && start[5] == (NATIVE_BIG ? 2 : 1) &&
           machine == NATIVE_NUMBER;
}
