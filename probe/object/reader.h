/* SPDX-License-Identifier: MIT */
/* reader.h - shared by the readers of ELF (elf.c, elf_symbols.c), PE (pe.c) and Mach-O (macho.c):
 * bytes within bounds, numbers of either byte order, faults, the manifest. The readers use no
 * headers of their systems, so each compiles on all systems. */
#ifndef HW_PROBE_OBJECT_READER_H
#define HW_PROBE_OBJECT_READER_H

#include "probe/object/object.h"

#define ENTRY     "hw_plugin_entry"
#define MAX_NOTES (64u << 10) /* bytes, of one section or segment */
/* With the NUL, in PE and Mach-O: */
#define NAME_BYTES  256  /* of a library's name */
#define RPATH_BYTES 1024 /* of a path: PATH_MAX of macOS */

struct reader {
    struct source *source;
    struct object *object;
    char *why;
    size_t why_size;
    uint64_t start, size; /* of the object in the file */
    bool big;             /* the byte order of numbers */
};

/* The parts of the readers. */
enum object_fault elf_read(struct reader *reader);
enum object_fault elf_check(struct reader *reader); /* header and segments alone */
/* For an object in another format than ELF, with its first 16 bytes: foreign.c reads it, for the
 * command; no_foreign.c refuses it, for hw-probe. */
enum object_fault foreign_read(struct reader *reader, const uint8_t *start);
enum object_fault pe_read(struct reader *reader);
enum object_fault macho_read(struct reader *reader);
enum object_fault universal_read(struct reader *reader);

/* Formats the description; returns `fault`. */
enum object_fault because(struct reader *reader, enum object_fault fault,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));
enum object_fault truncated(struct reader *reader, const char *what);
enum object_fault malformed(struct reader *reader, const char *what);
enum object_fault no_memory(struct reader *reader);

/* Whether the object has these bytes; read_at() copies them. */
bool has_bytes(const struct reader *reader, uint64_t offset, uint64_t bytes);
bool read_at(const struct reader *reader, uint64_t offset, void *to, uint64_t bytes);
/* The number in `width` bytes; `width` is 1, 2, 4 or 8. */
uint64_t number(const struct reader *reader, const uint8_t *bytes, unsigned width);
/* The number at an offset; false if the object does not have the bytes. */
bool read_number(const struct reader *reader, uint64_t offset, unsigned width,
                 uint64_t *value);

/* A processor and its number in PE or Mach-O. */
struct machine {
    uint32_t number;
    const char *name;
};
/* NULL if it is not listed. */
const char *find_machine(const struct machine *rows, size_t count, uint64_t number);
/* Adds a processor to the object; NULL: "another processor". */
void add_machine(struct reader *reader, const char *name);

/* Add the name of a needed library, or a path where libraries are searched. The text must end
 * within `most` bytes from the offset. The first call allocates room for all texts. */
enum object_fault add_needed(struct reader *reader, uint64_t offset, uint64_t most);
enum object_fault add_rpath(struct reader *reader, uint64_t offset, uint64_t most);

/* Takes the manifest from notes, if one of them is a manifest as HW_PLUGIN() writes it. Each name
 * and text begins at a multiple of `align` bytes. */
enum object_fault take_manifest(struct reader *reader, const uint8_t *notes, uint64_t bytes,
                                unsigned align);
/* Like take_manifest(), but reads the bytes first. More than MAX_NOTES bytes are ignored. */
enum object_fault read_manifest(struct reader *reader, uint64_t offset, uint64_t bytes,
                                unsigned align);

#endif
