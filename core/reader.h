/* SPDX-License-Identifier: MIT */
/* reader.h - what the two halves of the ELF reader share: elf.c (what kind of file, its
 * segments) and elf_dynamic.c (what the dynamic section leads to). */
#ifndef HW_READER_H
#define HW_READER_H

#include "object.h"

#include <elf.h>
#include <link.h>

#define MAX_SEGMENTS 256
#define KNOWN_TAGS   (DT_RUNPATH + 1)

struct reader {
    const struct source *source;
    struct object *object;
    char *why;
    size_t why_size;
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[MAX_SEGMENTS];
    /* Of the dynamic section, by tag; 0: not there. */
    uint64_t tags[KNOWN_TAGS];
    uint64_t hash, gnu_hash, verneed, verneed_count, versym;
    uint64_t needed[MAX_NEEDED];
    bool pie;
};

/* Writes the words down and answers the reason. */
enum reason because(struct reader *reader, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum reason truncated(struct reader *reader, const char *what);
enum reason malformed(struct reader *reader, const char *what);

/* Copies bytes out of the file; false if it does not have them. */
bool source_read(const struct source *source, uint64_t offset, void *to, uint64_t bytes);
bool in_file(const struct source *source, uint64_t offset, uint64_t bytes);
/* The file offset of `bytes` bytes at `address`; false if no segment has them all in the
 * file. */
bool locate(const struct reader *reader, uint64_t address, uint64_t bytes,
            uint64_t *offset);
bool read_memory(const struct reader *reader, uint64_t address, void *to, uint64_t bytes);
/* Whether there is code at the address. */
bool executable(const struct reader *reader, uint64_t address);

/* elf_dynamic.c, in this order. */
enum reason read_dynamic(struct reader *reader);
enum reason check_tables(struct reader *reader);
enum reason read_strings(struct reader *reader);
enum reason find_entry(struct reader *reader);
enum reason read_notes(struct reader *reader);
enum reason read_versions(struct reader *reader);

#endif
