/* SPDX-License-Identifier: MIT */
/* object.h - reads an object file without executing or mapping it. Every offset, size and
 * count is checked against the file's size before it is used. The bytes are copied, so a
 * file that shrinks meanwhile causes an error and not a signal. */
#ifndef HW_OBJECT_OBJECT_H
#define HW_OBJECT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why this process cannot load a file as a plugin. */
enum object_fault {
    OBJECT_GOOD,
    OBJECT_EMPTY,
    OBJECT_UNREADABLE,
    OBJECT_NOT_AN_OBJECT,
    OBJECT_WRONG_FORMAT,
    OBJECT_WRONG_CLASS,
    OBJECT_WRONG_BYTE_ORDER,
    OBJECT_WRONG_MACHINE,
    OBJECT_NOT_SHARED,
    OBJECT_TRUNCATED,
    OBJECT_MALFORMED,
    OBJECT_EXECUTABLE_STACK,
    OBJECT_NO_ENTRY,
    OBJECT_BAD_ENTRY,
    OBJECT_BAD_MANIFEST,
    OBJECT_NO_MEMORY,
    OBJECT_FAULT_COUNT
};

/* The bytes to read: memory if `data` is set, otherwise a file. */
struct source {
    const uint8_t *data;
    int fd;
    uint64_t size;
    int error; /* errno of a read that failed */
};

#define MAX_NEEDED   256
#define MAX_VERSIONS 256

/* What the file contains. All names point into `strings`. */
struct object {
    char *strings; /* the dynamic string table; its last byte is a NUL */
    size_t strings_size;
    const char *needed[MAX_NEEDED]; /* names of libraries */
    uint32_t needed_count;
    /* symbol versions that it needs of other libraries */
    const char *versions[MAX_VERSIONS];
    uint32_t version_count;
    /* undefined symbols without a version, which any library may define */
    const char **undefined;
    size_t undefined_count;
    const char *rpath; /* or NULL */
    const char *runpath;
    char *manifest; /* the text of the note; NULL if there is none */
    size_t manifest_bytes;
};

/* Returns OBJECT_GOOD, or a fault and its description in `why`. In either case the caller
 * calls object_free(). */
enum object_fault elf_read(struct source *source, struct object *object, char *why,
                           size_t size);
void object_free(struct object *object);
/* Checks only the header and the segments of a library: whether it is whole. */
enum object_fault elf_check_library(struct source *source, char *why, size_t size);

/* Whether the file begins like an object file for this machine. The system skips others
 * when it searches for a library. */
bool elf_native(int fd);

#endif
