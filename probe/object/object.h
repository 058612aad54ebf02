/* SPDX-License-Identifier: MIT */
/* object.h - reads an object file without executing or mapping it: ELF, PE and Mach-O, of any
 * processor, on any system. Every offset, size and count is checked against the file's size
 * before it is used. The bytes are copied, so a file that shrinks meanwhile causes an error and
 * not a signal.
 *
 * The readers find facts that people and searches need, and check that the file is complete.
 * Whether the system's loader can use the rest shows when hw-probe loads the file. */
#ifndef HW_PROBE_OBJECT_OBJECT_H
#define HW_PROBE_OBJECT_OBJECT_H

#include "object/header.h"

/* The bytes to read: memory if `data` is set, otherwise a file. */
struct source {
    const uint8_t *data;
    int fd;
    uint64_t size;
    int error; /* errno of a read that failed */
};

#define MAX_NEEDED   256
#define MAX_VERSIONS 256
#define MAX_RPATHS   64
#define MAX_MACHINES 8 /* in one file: universal files of Mach-O have several */

/* The contents of a file. All names point into `strings`. */
struct object {
    enum object_format format;
    /* "x86-64"; the other fields describe the object for the first machine. */
    const char *machines[MAX_MACHINES];
    uint32_t machine_count;
    unsigned bits; /* of an address: 32 or 64 */
    bool big;      /* the byte order */
    char *strings;
    size_t strings_size;
    const char *needed[MAX_NEEDED]; /* names of libraries */
    uint32_t needed_count;
    char *manifest; /* the text of the note, or NULL */
    size_t manifest_bytes;
    /* Mach-O only: the directories for libraries whose names begin with "@rpath/". */
    const char *rpaths[MAX_RPATHS];
    uint32_t rpath_count;
    /* ELF only: versions of symbols that it needs from other libraries. */
    const char *versions[MAX_VERSIONS];
    uint32_t version_count;
    /* ELF only: undefined symbols without a version, which any library may define. */
    const char **undefined;
    size_t undefined_count;
    const char *remedy; /* of a fault, if that of its kind does not help; or NULL */
    const char *rpath;  /* ELF only: paths for libraries; this and runpath may be NULL */
    const char *runpath;
};

/* Returns OBJECT_GOOD if the file seems to be a plugin for any system, or a fault and its
 * description in `why`. Nothing of the file runs. Facts that were read before a fault stay in
 * `object`. In either case the caller calls object_free(). */
enum object_fault object_read(struct source *source, struct object *object, char *why,
                              size_t size);
void object_free(struct object *object);

/* Whether an object from object_read() is for this process. Returns OBJECT_GOOD, also if the file
 * does not say what it is for; or OBJECT_WRONG_..., with a description that names the system or the
 * processor that it is for. */
enum object_fault object_native(const struct object *object, char *why, size_t size);
/* Writes "x86-64" or "x86-64 and AArch64" to `text`, and returns `text`. */
const char *object_machines(const struct object *object, char *text, size_t size);

/* Checks that a library is for this process and complete, by its header and segments only. */
enum object_fault object_check_library(struct source *source, char *why, size_t size);

#endif
