/* SPDX-License-Identifier: MIT */
/* elf.h - shared by the parts of the ELF reader: elf.c (the kind of file, segments, the dynamic
 * section), elf_symbols.c (symbols and their versions) and elf_places.c (relocations). */
#ifndef HW_PROBE_OBJECT_ELF_H
#define HW_PROBE_OBJECT_ELF_H

#include "probe/object/reader.h"

/* The entries of the dynamic section that are read. */
#define ELF_TAGS(X)                                                                        \
    X(NULL, 0)                                                                             \
    X(NEEDED, 1)                                                                           \
    X(PLTRELSZ, 2)                                                                         \
    X(HASH, 4)                                                                             \
    X(STRTAB, 5)                                                                           \
    X(SYMTAB, 6)                                                                           \
    X(RELA, 7)                                                                             \
    X(RELASZ, 8)                                                                           \
    X(STRSZ, 10)                                                                           \
    X(SYMENT, 11)                                                                          \
    X(SONAME, 14)                                                                          \
    X(RPATH, 15)                                                                           \
    X(REL, 17)                                                                             \
    X(RELSZ, 18)                                                                           \
    X(PLTREL, 20)                                                                          \
    X(TEXTREL, 22)                                                                         \
    X(JMPREL, 23)                                                                          \
    X(RUNPATH, 29)                                                                         \
    X(RELRSZ, 35)                                                                          \
    X(RELR, 36)                                                                            \
    X(GNU_HASH, 0x6ffffef5)                                                                \
    X(VERSYM, 0x6ffffff0)                                                                  \
    X(FLAGS_1, 0x6ffffffb)                                                                 \
    X(VERDEF, 0x6ffffffc)                                                                  \
    X(VERNEED, 0x6ffffffe)                                                                 \
    X(AUXILIARY, 0x7ffffffd)                                                               \
    X(FILTER, 0x7fffffff)
enum elf_tag {
#define X(name, value) TAG_##name,
    ELF_TAGS(X)
#undef X
        TAGS
};

enum { PF_X = 1, PF_W = 2, PF_R = 4 };

struct segment {
    uint64_t type, flags, offset, address, in_file, in_memory, align;
};

/* Sizes that depend on the class. */
struct elf_layout {
    uint8_t word, header, segment, section, symbol;
};

#define MAX_SEGMENTS 64

struct elf {
    struct reader *reader;
    const struct elf_layout *layout;
    struct segment segments[MAX_SEGMENTS];
    unsigned segment_count;
    uint64_t segment_table; /* offset in the file */
    uint64_t tags[TAGS];    /* values of the dynamic section; `has` has a bit for each */
    uint32_t has;
    uint64_t needed[MAX_NEEDED]; /* offsets of names in the string table */
    uint32_t needed_count;
    uint8_t *symbols;
    uint64_t symbol_count;
    unsigned version_rows, highest_version;
};

static inline bool elf_has(const struct elf *elf, enum elf_tag tag)
{
    return elf->has >> tag & 1;
}

/* Copies bytes at an address. All of them must be in the file, in one readable segment. */
bool elf_memory(const struct elf *elf, uint64_t address, void *to, uint64_t bytes);
/* Whether the bytes lie in one segment with these rights, in the file or not. */
bool elf_has_room(const struct elf *elf, uint64_t address, uint64_t bytes, uint64_t rights);
/* Read a number of two or of four bytes at an address. */
bool elf_half(const struct elf *elf, uint64_t address, uint32_t *value);
bool elf_word(const struct elf *elf, uint64_t address, uint32_t *value);
/* Whether the address lies in code that is in the file. */
bool elf_executable(const struct elf *elf, uint64_t address);
/* NULL if the offset lies outside the string table. */
const char *elf_string(const struct elf *elf, uint64_t offset);

/* Called in this order, after the dynamic section and the strings have been read. */
enum object_fault elf_read_symbols(struct elf *elf);
enum object_fault elf_find_entry(struct elf *elf);
enum object_fault elf_read_versions(struct elf *elf);
enum object_fault elf_check_places(struct elf *elf);

#endif
