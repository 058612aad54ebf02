/* SPDX-License-Identifier: MIT */
/* object.h - reads an object file without executing or mapping it: ELF, PE and Mach-O, of any
 * processor, on any system. Every offset, size and count is checked against the file's size
 * before it is used. The bytes are copied, so a file that shrinks meanwhile causes an error and
 * not a signal.
 *
 * What is read is what a person or a search needs to know, and whether the file is whole. Whether
 * the system's loader can work with the rest is for hw-probe to find out. */
#ifndef HW_OBJECT_OBJECT_H
#define HW_OBJECT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a process cannot load a file as a plugin: X(NAME, code), the code as `hw explain` has it. */
#define OBJECT_FAULTS(X)                                                                   \
    X(EMPTY, "empty")                                                                      \
    X(UNREADABLE, "unreadable")                                                            \
    X(SCRIPT, "script")                                                                    \
    X(STATIC_LIBRARY, "static-library")                                                    \
    X(LINKER_SCRIPT, "linker-script")                                                      \
    X(NOT_AN_OBJECT, "not-an-object")                                                      \
    X(WRONG_FORMAT, "wrong-format")                                                        \
    X(WRONG_CLASS, "wrong-class")                                                          \
    X(WRONG_BYTE_ORDER, "wrong-byte-order")                                                \
    X(WRONG_MACHINE, "wrong-machine")                                                      \
    X(NOT_SHARED, "not-shared")                                                            \
    X(TRUNCATED, "truncated")                                                              \
    X(MALFORMED, "malformed")                                                              \
    X(EXECUTABLE_STACK, "executable-stack")                                                \
    X(NO_ENTRY, "no-entry")                                                                \
    X(BAD_ENTRY, "bad-entry")                                                              \
    X(TWO_MANIFESTS, "two-manifests")                                                      \
    X(NO_MEMORY, "no-memory")
enum object_fault {
    OBJECT_GOOD,
#define X(NAME, code) OBJECT_##NAME,
    OBJECT_FAULTS(X)
#undef X
        OBJECT_FAULT_COUNT
};

/* The bytes to read: memory if `data` is set, otherwise a file. */
struct source {
    const uint8_t *data;
    int fd;
    uint64_t size;
    int error; /* errno of a read that failed */
};

enum object_format { OBJECT_NO_FORMAT, OBJECT_ELF, OBJECT_PE, OBJECT_MACHO };

#define MAX_NEEDED   256
#define MAX_VERSIONS 256
#define MAX_RPATHS   64
#define MAX_MACHINES 8 /* in one file: universal files of Mach-O have several */

/* What the file contains. All names point into `strings`. */
struct object {
    enum object_format format;
    const char *machines[MAX_MACHINES]; /* "x86-64"; the first is the one that is read */
    uint32_t machine_count;
    unsigned bits; /* of an address: 32 or 64 */
    bool big;      /* the byte order */
    char *strings;
    size_t strings_size;
    const char *needed[MAX_NEEDED]; /* names of libraries */
    uint32_t needed_count;
    char *manifest; /* the text of the note; NULL if there is none */
    size_t manifest_bytes;
    /* Of Mach-O alone: where it searches for libraries whose names begin with "@rpath/". */
    const char *rpaths[MAX_RPATHS];
    uint32_t rpath_count;
    /* Of ELF alone: symbol versions that it needs of other libraries, */
    const char *versions[MAX_VERSIONS];
    uint32_t version_count;
    /* undefined symbols without a version, which any library may define, */
    const char **undefined;
    size_t undefined_count;
    const char *rpath; /* and where it searches for libraries; or NULL */
    const char *runpath;
};

/* Returns OBJECT_GOOD if the file is a plugin of some system, as far as can be told without
 * running it, or a fault and its description in `why`. What was read before the fault stays in
 * `object`. In either case the caller calls object_free(). */
enum object_fault object_read(struct source *source, struct object *object, char *why,
                              size_t size);
void object_free(struct object *object);

/* Whether what object_read() has found is for this process: OBJECT_GOOD, or OBJECT_WRONG_... with
 * a description that names the system and the processor it is for. Of a file that does not say so,
 * OBJECT_GOOD. */
enum object_fault object_native(const struct object *object, char *why, size_t size);
/* The system that uses the format, such as "Windows"; "" if there is none. */
const char *object_system(const struct object *object);
/* "x86-64", "x86-64 and AArch64": into `text`, which it returns. */
const char *object_machines(const struct object *object, char *text, size_t size);

/* Checks only the header and the segments of a library for this process: whether it is whole. */
enum object_fault object_check_library(struct source *source, char *why, size_t size);

/* Whether the file begins like an object file for this machine. The system skips others
 * when it searches for a library. */
bool object_begins_native(int fd);

#endif
