/* SPDX-License-Identifier: MIT */
/* reader.h - what the parts of the ELF reader share: elf.c (the kind of file, segments),
 * elf_dynamic.c (dynamic section, symbols, versions, notes) and elf_relocate.c
 * (relocations, constructors and destructors). */
#ifndef HW_OBJECT_READER_H
#define HW_OBJECT_READER_H

#include "object/object.h"

#include <elf.h>
#include <link.h>

#if UINTPTR_MAX == UINT64_MAX
#define NATIVE_CLASS ELFCLASS64
#else
#define NATIVE_CLASS ELFCLASS32
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_ORDER ELFDATA2LSB
#else
#define NATIVE_ORDER ELFDATA2MSB
#endif

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#elif defined(__riscv)
#define NATIVE_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define NATIVE_MACHINE EM_PPC64
#elif defined(__s390x__)
#define NATIVE_MACHINE EM_S390
#elif defined(__i386__)
#define NATIVE_MACHINE EM_386
#elif defined(__arm__)
#define NATIVE_MACHINE EM_ARM
#endif

#define MAX_SEGMENTS 64
#define WORD         sizeof(ElfW(Addr))

/* Since glibc 2.36. */
#ifndef DT_RELR
#define DT_RELRSZ  35
#define DT_RELR    36
#define DT_RELRENT 37
#endif

/* Tags of the dynamic section that are not in the range of the others. */
#define FAR_TAGS(X)                                                                        \
    X(GNU_HASH)                                                                            \
    X(VERSYM) X(VERNEED) X(VERDEF) X(RELACOUNT) X(FLAGS_1) X(AUXILIARY) X(FILTER)
enum {
    NEAR_TAGS = DT_RELRENT + 1,
    TAG_BEFORE = NEAR_TAGS - 1,
#define X(name) TAG_##name,
    FAR_TAGS(X)
#undef X
        TAGS
};

struct reader {
    struct source *source;
    struct object *object;
    char *why;
    size_t why_size;
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[MAX_SEGMENTS];
    const ElfW(Phdr) * dynamic, *tls; /* tls may be NULL */
    /* Values of the dynamic section, by tag. `present` has a bit for each: 0 is a value,
     * too. */
    uint64_t tags[TAGS];
    uint64_t present;
    uint64_t needed[MAX_NEEDED];
    ElfW(Sym) * symbols;
    uint64_t symbol_count;
    uint8_t *called; /* for each constructor and destructor: 1 if it is known to be code */
    uint64_t places; /* how many places the relocations write to, at most */
    char block[4096];
};

/* Whether the object defines the symbol in one of its sections. */
static inline bool is_defined(const ElfW(Sym) * symbol)
{
    return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;
}

static inline bool has(const struct reader *reader, int tag)
{
    return reader->present >> tag & 1;
}

/* Formats the description; returns `fault`. */
enum object_fault because(struct reader *reader, enum object_fault fault,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));
enum object_fault truncated(struct reader *reader, const char *what);
enum object_fault malformed(struct reader *reader, const char *what);
enum object_fault no_memory(struct reader *reader);

/* Copies bytes of the file; false if the file does not have them. */
bool source_read(struct source *source, uint64_t offset, void *to, uint64_t bytes);
bool in_file(struct source *source, uint64_t offset, uint64_t bytes);
/* Finds the file offset of `bytes` bytes at `address`; false unless one readable segment
 * has all of them in the file. */
bool locate(const struct reader *reader, uint64_t address, uint64_t bytes,
            uint64_t *offset);
bool read_memory(const struct reader *reader, uint64_t address, void *to, uint64_t bytes);
/* The loaded segment with these rights (PF_R ...) that contains all of these bytes; or
 * NULL. */
const ElfW(Phdr) * segment_of(const struct reader *reader, uint64_t address, uint64_t bytes,
                              uint32_t rights);
/* Whether the address lies in code. */
bool executable(const struct reader *reader, uint64_t address);

#endif
