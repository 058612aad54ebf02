/* SPDX-License-Identifier: MIT */
/* elf.c - reads ELF shared objects: the kind of file, whether this machine can use it, its
 * segments. The System V gABI, chapters 4 and 5, defines the format. */
#define _DEFAULT_SOURCE
#include "object/object.h"

#include "object/elf_dynamic.h"
#include "object/elf_relocate.h"
#include "object/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Machines where an object without PT_GNU_STACK gets an executable stack. */
#define STACK_BY_DEFAULT (NATIVE_MACHINE == EM_X86_64 || NATIVE_MACHINE == EM_386)

/* ---- the kind of file ---- */

/* Other formats begin with a fixed sequence of bytes. */
static enum object_fault foreign(struct reader *reader, const uint8_t *start, size_t bytes)
{
    static const struct {
        const char *magic;
        size_t bytes;
        enum object_fault fault;
        const char *what;
    } rows[] = {
        { "MZ", 2, OBJECT_WRONG_FORMAT, "a Windows library (PE)" },
        { "\xcf\xfa\xed\xfe", 4, OBJECT_WRONG_FORMAT, "a macOS library (Mach-O)" },
        { "\xce\xfa\xed\xfe", 4, OBJECT_WRONG_FORMAT, "a macOS library (Mach-O)" },
        { "\xfe\xed\xfa\xcf", 4, OBJECT_WRONG_FORMAT, "a macOS library (Mach-O)" },
        { "\xfe\xed\xfa\xce", 4, OBJECT_WRONG_FORMAT, "a macOS library (Mach-O)" },
        { "\xca\xfe\xba\xbe", 4, OBJECT_WRONG_FORMAT,
          "a universal macOS library (Mach-O)" },
        { "\xbe\xba\xfe\xca", 4, OBJECT_WRONG_FORMAT,
          "a universal macOS library (Mach-O)" },
        { "#!", 2, OBJECT_NOT_AN_OBJECT, "a script, not an object file" },
        { "!<arch>\n", 8, OBJECT_NOT_AN_OBJECT, "a static library, not a shared object" },
        { "/* GNU ld script", 16, OBJECT_NOT_AN_OBJECT,
          "a linker script, not a shared object" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (bytes >= rows[i].bytes && memcmp(start, rows[i].magic, rows[i].bytes) == 0)
            return because(reader, rows[i].fault, "%s", rows[i].what);
    return because(reader, OBJECT_NOT_AN_OBJECT, "not an object file");
}

static const char *machine_name(unsigned machine)
{
    static const struct {
        unsigned machine;
        const char *name;
    } rows[] = {
        { EM_386, "x86 (32 bits)" }, { EM_ARM, "ARM (32 bits)" }, { EM_X86_64, "x86-64" },
        { EM_AARCH64, "AArch64" },   { EM_RISCV, "RISC-V" },      { EM_PPC64, "POWER" },
        { EM_S390, "IBM Z" },        { 258, "LoongArch" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].machine == machine)
            return rows[i].name;
    return "another processor";
}

static enum object_fault check_type(struct reader *reader)
{
    static const char *const what[] = { [ET_NONE] = "an object file without a type",
                                        [ET_REL] = "an object file that was not linked",
                                        [ET_EXEC] = "a program",
                                        [ET_DYN] = "",
                                        [ET_CORE] = "a core dump" };
    unsigned type = reader->header.e_type;
    if (type == ET_DYN)
        return OBJECT_GOOD;
    return because(reader, OBJECT_NOT_SHARED, "%s, not a shared object",
                   type <= ET_CORE ? what[type] : "an object file of unknown type");
}

static enum object_fault check_header(struct reader *reader)
{
    ElfW(Ehdr) *header = &reader->header;
    size_t have = reader->source->size < sizeof *header ? (size_t)reader->source->size
                                                        : sizeof *header;
    if (have == 0)
        return because(reader, OBJECT_EMPTY, "the file is empty");
    if (!source_read(reader->source, 0, header, have))
        return truncated(reader, "header");
    size_t magic = have < SELFMAG ? have : SELFMAG;
    if (memcmp(header->e_ident, ELFMAG, magic) != 0)
        return foreign(reader, header->e_ident, have);
    if (have < sizeof *header)
        return because(reader, OBJECT_TRUNCATED,
                       "the file is truncated: it ends within its header");
    if (header->e_ident[EI_CLASS] != NATIVE_CLASS)
        return because(reader, OBJECT_WRONG_CLASS, "built for %s bits, not %d",
                       header->e_ident[EI_CLASS] == ELFCLASS32   ? "32"
                       : header->e_ident[EI_CLASS] == ELFCLASS64 ? "64"
                                                                 : "unknown",
                       (int)(8 * sizeof(void *)));
    if (header->e_ident[EI_DATA] != NATIVE_ORDER)
        return because(reader, OBJECT_WRONG_BYTE_ORDER, "built for another byte order");
    if (header->e_ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT)
        return because(reader, OBJECT_MALFORMED, "its ELF version is unknown");
    if (header->e_machine != NATIVE_MACHINE)
        return because(reader, OBJECT_WRONG_MACHINE, "built for %s, not %s",
                       machine_name(header->e_machine), machine_name(NATIVE_MACHINE));
    return check_type(reader);
}

bool elf_native(int fd)
{
    unsigned char start[20];
    uint16_t machine;
    if (pread(fd, start, sizeof start, 0) != (ssize_t)sizeof start)
        return false;
    memcpy(&machine, start + 18, sizeof machine);
    return memcmp(start, ELFMAG, SELFMAG) == 0 && start[EI_CLASS] == NATIVE_CLASS &&
           start[EI_DATA] == NATIVE_ORDER && machine == NATIVE_MACHINE;
}

/* ---- segments ---- */

static enum object_fault check_load(struct reader *reader, const ElfW(Phdr) * segment,
                                    uint64_t *end, uint64_t *file_end)
{
    uint64_t memory_end, align = segment->p_align ? segment->p_align : 1;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!in_file(reader->source, segment->p_offset, segment->p_filesz))
        return truncated(reader, "segments");
    if (segment->p_filesz > segment->p_memsz)
        return malformed(reader, "a segment is larger in the file than in memory");
    if (__builtin_add_overflow((uint64_t)segment->p_vaddr, (uint64_t)segment->p_memsz,
                               &memory_end) ||
        memory_end > UINT64_C(1) << (8 * sizeof(void *) < 48 ? 31 : 36))
        return malformed(reader, "a segment lies outside the address space");
    if ((align & (align - 1)) || (segment->p_vaddr - segment->p_offset) % align)
        return malformed(reader, "a segment is misaligned");
    /* The tables that the system's loader trusts lie beside the header. A relocation that
     * writes there could change them after they were checked. */
    if (segment->p_offset == 0 && segment->p_filesz && (segment->p_flags & PF_W))
        return malformed(reader, "the segment that holds its header is writable");
    /* Whole pages are mapped, and those of a later segment replace those of an earlier
     * one. */
    if (segment->p_vaddr / page * page < *end ||
        (segment->p_filesz && segment->p_offset < *file_end))
        return malformed(reader, "segments overlap");
    *end = (memory_end + page - 1) / page * page;
    *file_end = segment->p_filesz ? segment->p_offset + segment->p_filesz : *file_end;
    return OBJECT_GOOD;
}

/* Whether the segment's bytes in the file are also those at its address in memory. */
static bool is_loaded(const struct reader *reader, const ElfW(Phdr) * segment)
{
    uint64_t offset,
        bytes = segment->p_filesz > segment->p_memsz ? segment->p_filesz : segment->p_memsz;
    return locate(reader, segment->p_vaddr, bytes, &offset) && offset == segment->p_offset;
}

/* Whole pages are protected. PT_GNU_RELRO may begin before the loaded segment, with thread-
 * local memory that occupies no addresses, and may reach to the end of the last page. */
static bool can_protect(const struct reader *reader, const ElfW(Phdr) * relro)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < reader->header.e_phnum; i++) {
        const ElfW(Phdr) *load = &reader->segments[i];
        if (load->p_type != PT_LOAD || !(load->p_flags & PF_W))
            continue;
        const uint64_t begin = load->p_vaddr / page * page;
        const uint64_t end = load->p_vaddr + load->p_memsz;
        if (relro->p_vaddr >= begin && relro->p_vaddr < end &&
            relro->p_memsz <= end - relro->p_vaddr + load->p_align)
            return true;
    }
    return false;
}

/* The system's loader reads or changes memory where these segments say. Thread-local memory
 * that begins as zeros has no address. */
static bool check_special(struct reader *reader, const ElfW(Phdr) * segment)
{
    uint64_t offset;
    switch (segment->p_type) {
    case PT_TLS:
        reader->tls = segment->p_memsz ? segment : reader->tls;
        return segment->p_filesz <= segment->p_memsz && segment->p_memsz < 1u << 30 &&
               segment->p_align - 1 < 1u << 24 &&
               (segment->p_align & (segment->p_align - 1)) == 0 &&
               (segment->p_filesz == 0 ||
                (segment->p_vaddr != 0 && /* at 0, glibc takes the image for absent */
                 locate(reader, segment->p_vaddr, segment->p_filesz, &offset)));
    case PT_GNU_RELRO:
        return segment->p_memsz == 0 || can_protect(reader, segment);
    case PT_PHDR:
        return segment->p_offset == reader->header.e_phoff && is_loaded(reader, segment);
    case PT_NOTE:
    case PT_GNU_PROPERTY:
        return !in_file(reader->source, segment->p_offset, segment->p_filesz) ||
               is_loaded(reader, segment);
    default:
        return true;
    }
}

static enum object_fault check_segments(struct reader *reader)
{
    uint64_t end = 0, file_end = 0;
    unsigned loads = 0, dynamics = 0;
    bool stack_said = false;
    for (unsigned i = 0; i < reader->header.e_phnum; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        enum object_fault fault = OBJECT_GOOD;
        if (segment->p_type == PT_LOAD) {
            loads++;
            fault = check_load(reader, segment, &end, &file_end);
        } else if (segment->p_type == PT_DYNAMIC) {
            dynamics++;
        } else if (segment->p_type == PT_GNU_STACK) {
            stack_said = true;
            if (segment->p_flags & PF_X)
                fault = because(reader, OBJECT_EXECUTABLE_STACK,
                                "it requires an executable stack");
        }
        if (fault)
            return fault;
    }
    if (loads == 0 || dynamics != 1)
        return malformed(reader, "it must have segments to load and one dynamic section");
    if (!stack_said && STACK_BY_DEFAULT)
        return because(reader, OBJECT_EXECUTABLE_STACK,
                       "it has no PT_GNU_STACK, so it requires an executable stack");
    for (unsigned i = 0; i < reader->header.e_phnum; i++)
        if (!check_special(reader, &reader->segments[i]))
            return malformed(reader, "a segment does not lie where its header says");
    return OBJECT_GOOD;
}

static enum object_fault read_segments(struct reader *reader)
{
    const ElfW(Ehdr) *header = &reader->header;
    uint64_t bytes = (uint64_t)header->e_phnum * sizeof(ElfW(Phdr));
    if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phnum == 0 ||
        header->e_phnum > MAX_SEGMENTS)
        return malformed(reader, "its table of segments is invalid");
    if (!source_read(reader->source, header->e_phoff, reader->segments, bytes))
        return truncated(reader, "table of segments");
    /* The system's loader ignores sections, but their table is at the end of the file: if
     * it is missing, the file is truncated. */
    if (header->e_shoff && header->e_shnum && header->e_shentsize != sizeof(ElfW(Shdr)))
        return malformed(reader, "its table of sections is invalid");
    if (header->e_shoff && !in_file(reader->source, header->e_shoff,
                                    (uint64_t)header->e_shnum * sizeof(ElfW(Shdr))))
        return truncated(reader, "table of sections");
    return check_segments(reader);
}

typedef enum object_fault step_fn(struct reader *reader);

static enum object_fault read_steps(struct source *source, struct object *object, char *why,
                                    size_t size, step_fn *const *steps)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        snprintf(why, size, "out of memory");
        return OBJECT_NO_MEMORY;
    }
    reader->source = source;
    reader->object = object;
    reader->why = why;
    reader->why_size = size;
    enum object_fault fault = OBJECT_GOOD;
    while (*steps && !fault)
        fault = (*steps++)(reader);
    if (fault && source->error)
        fault = because(reader, OBJECT_UNREADABLE, "cannot be read: %s",
                        strerror(source->error));
    free(reader->symbols);
    free(reader->called);
    free(reader);
    return fault;
}

enum object_fault elf_read(struct source *source, struct object *object, char *why,
                           size_t size)
{
    static step_fn *const steps[] = {
        check_header, read_segments, read_dynamic,      check_tables,
        read_strings, read_symbols,  find_entry,        check_symbols,
        read_notes,   read_versions, check_relocations, NULL,
    };
    *object = (struct object){ 0 };
    return read_steps(source, object, why, size, steps);
}

enum object_fault elf_check_library(struct source *source, char *why, size_t size)
{
    static step_fn *const steps[] = { check_header, read_segments, NULL };
    return read_steps(source, NULL, why, size, steps);
}

void object_free(struct object *object)
{
    free(object->strings);
    free(object->manifest);
    free(object->undefined);
}
