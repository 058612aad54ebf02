/* SPDX-License-Identifier: MIT */
/* object.h - what reading an object file shows, without executing or mapping it. Every
 * offset, size and count of the file is held against the file's size before it is used; the
 * bytes are copied, so a file that shrinks meanwhile is an error and no signal. */
#ifndef HW_OBJECT_H
#define HW_OBJECT_H

#include "open/ladder.h"

/* Bytes to read: of a descriptor, or, with data set, of memory. */
struct source {
    const uint8_t *data;
    int fd;
    uint64_t size;
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
    const char *rpath; /* or NULL */
    const char *runpath;
    char *manifest; /* the text of the note; NULL: it has none */
    size_t manifest_bytes;
};

/* REASON_NONE, or the reason and, in `why`, the words. The object is to be freed in any
 * case. */
enum reason elf_read(const struct source *source, struct object *object, char *why,
                     size_t size);
void object_free(struct object *object);

/* Whether the file starts as an object file of this machine does: what the system looks for
 * when it searches for a library. */
bool elf_native(int fd);

/* libraries.c */
enum found { FOUND, NOT_FOUND, UNDECIDED };
/* Searches for a library as the system would: loaded already, rpath, LD_LIBRARY_PATH,
 * runpath, the system's cache, its directories. `directory` is that of the object
 * ($ORIGIN). UNDECIDED: a path has a word in it that only the system's own loader can
 * replace. */
enum found library_find(const char *name, const struct object *object,
                        const char *directory, bool elevated);

#endif
