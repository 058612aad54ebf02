/* SPDX-License-Identifier: MIT */
/* object.h - what reading an object file shows, without executing or mapping it. Every
 * offset, size and count of the file is held against the file's size before it is used; the
 * bytes are copied, so a file that shrinks meanwhile is an error and no signal. */
#ifndef HW_OBJECT_OBJECT_H
#define HW_OBJECT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a file is not a plugin that this process could load. */
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

/* Bytes to read: of a descriptor, or, with data set, of memory. */
struct source {
    const uint8_t *data;
    int fd;
    uint64_t size;
    int error; /* errno of a read that failed */
};

#define MAX_NEEDED   256
#define MAX_VERSIONS 256

/* What the file says. The strings lie in `strings`. */
struct object {
    char *strings; /* the dynamic string table; its last byte is a NUL */
    size_t strings_size;
    const char *needed[MAX_NEEDED]; /* libraries, as the file names them */
    uint32_t needed_count;
    /* symbol versions that it asks other libraries for */
    const char *versions[MAX_VERSIONS];
    uint32_t version_count;
    /* functions and variables that it needs, and that no version ties to a library */
    const char **undefined;
    size_t undefined_count;
    const char *rpath; /* or NULL */
    const char *runpath;
    char *manifest; /* the text of the note; NULL: it has none */
    size_t manifest_bytes;
};

/* OBJECT_GOOD, or a fault with its description in `why`. The caller frees the object in either
 * case. */
enum object_fault elf_read(struct source *source, struct object *object, char *why,
                           size_t size);
void object_free(struct object *object);
/* Whether a library is whole: its header and segments alone, as elf_read() checks them. */
enum object_fault elf_check_library(struct source *source, char *why, size_t size);

/* Whether the file starts as an object file of this machine does: what the system looks for
 * when it searches for a library. */
bool elf_native(int fd);

#endif
