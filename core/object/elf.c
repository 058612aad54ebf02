/* SPDX-License-Identifier: MIT */
/* elf.c - bounded reading of ELF shared objects: which kind of file it is, whether this
 * machine can use it, and its segments. See object.h; the format is in the System V gABI,
 * chapters 4 and 5. */
#define _DEFAULT_SOURCE
#include "object/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* An object that does not say is one with an executable stack on these. */
#define STACK_BY_DEFAULT (NATIVE_MACHINE == EM_X86_64 || NATIVE_MACHINE == EM_386)

enum reason because(struct reader *reader, enum reason reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->why, reader->why_size, format, arguments);
    va_end(arguments);
    return reason;
}

bool source_read(const struct source *source, uint64_t offset, void *to, uint64_t bytes)
{
    uint64_t end;
    if (__builtin_add_overflow(offset, bytes, &end) || end > source->size)
        return false;
    if (source->data) {
        memcpy(to, source->data + offset, (size_t)bytes);
        return true;
    }
    for (char *p = to; bytes;) {
        ssize_t got = pread(source->fd, p, (size_t)bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false; /* the file shrank, or the disk failed */
        p += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return true;
}

bool in_file(const struct source *source, uint64_t offset, uint64_t bytes)
{
    uint64_t end;
    return !__builtin_add_overflow(offset, bytes, &end) && end <= source->size;
}

/* ---- what kind of file ---- */

/* Formats that start with a fixed sequence of bytes. */
static enum reason foreign(struct reader *reader, const uint8_t *start, size_t bytes)
{
    static const struct {
        const char *magic;
        size_t bytes;
        enum reason reason;
        const char *what;
    } rows[] = {
        { "MZ", 2, REASON_WRONG_FORMAT, "a Windows library (PE)" },
        { "\xcf\xfa\xed\xfe", 4, REASON_WRONG_FORMAT, "a macOS library (Mach-O)" },
        { "\xce\xfa\xed\xfe", 4, REASON_WRONG_FORMAT, "a macOS library (Mach-O)" },
        { "\xfe\xed\xfa\xcf", 4, REASON_WRONG_FORMAT, "a macOS library (Mach-O)" },
        { "\xfe\xed\xfa\xce", 4, REASON_WRONG_FORMAT, "a macOS library (Mach-O)" },
        { "\xca\xfe\xba\xbe", 4, REASON_WRONG_FORMAT,
          "a universal macOS library (Mach-O)" },
        { "\xbe\xba\xfe\xca", 4, REASON_WRONG_FORMAT,
          "a universal macOS library (Mach-O)" },
        { "#!", 2, REASON_NOT_AN_OBJECT, "a script, not an object file" },
        { "!<arch>\n", 8, REASON_NOT_AN_OBJECT, "a static library, not a shared object" },
        { "/* GNU ld script", 16, REASON_NOT_AN_OBJECT,
          "a linker script, not a shared object" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (bytes >= rows[i].bytes && memcmp(start, rows[i].magic, rows[i].bytes) == 0)
            return because(reader, rows[i].reason, "%s", rows[i].what);
    return because(reader, REASON_NOT_AN_OBJECT,
                   "not an object file: it starts with no known magic");
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

static enum reason check_type(struct reader *reader)
{
    static const char *const what[] = { [ET_NONE] = "an object file of no type",
                                        [ET_REL] = "an object file that was not linked",
                                        [ET_EXEC] = "a program",
                                        [ET_DYN] = "",
                                        [ET_CORE] = "a core dump" };
    unsigned type = reader->header.e_type;
    if (type == ET_DYN)
        return REASON_NONE;
    return because(reader, REASON_NOT_SHARED, "%s, not a shared object",
                   type <= ET_CORE ? what[type] : "an object file of unknown type");
}

static enum reason check_header(struct reader *reader)
{
    ElfW(Ehdr) *header = &reader->header;
    size_t have = reader->source->size < sizeof *header ? (size_t)reader->source->size
                                                        : sizeof *header;
    if (have == 0)
        return because(reader, REASON_EMPTY, "the file is empty");
    if (!source_read(reader->source, 0, header, have))
        return because(reader, REASON_UNREADABLE, "can not be read: %s", strerror(errno));
    size_t magic = have < SELFMAG ? have : SELFMAG;
    if (memcmp(header->e_ident, ELFMAG, magic) != 0)
        return foreign(reader, header->e_ident, have);
    if (have < sizeof *header)
        return because(reader, REASON_TRUNCATED, "the file ends within its header");
    if (header->e_ident[EI_CLASS] != NATIVE_CLASS)
        return because(reader, REASON_WRONG_CLASS, "built for %s bits, not %d",
                       header->e_ident[EI_CLASS] == ELFCLASS32   ? "32"
                       : header->e_ident[EI_CLASS] == ELFCLASS64 ? "64"
                                                                 : "unknown",
                       (int)(8 * sizeof(void *)));
    if (header->e_ident[EI_DATA] != NATIVE_ORDER)
        return because(reader, REASON_WRONG_BYTE_ORDER, "built for another byte order");
    if (header->e_ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT)
        return because(reader, REASON_MALFORMED, "an unknown version of ELF");
    if (header->e_machine != NATIVE_MACHINE)
        return because(reader, REASON_WRONG_MACHINE, "built for %s, not %s",
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

enum reason truncated(struct reader *reader, const char *what)
{
    return because(reader, REASON_TRUNCATED, "the file ends before its %s does", what);
}

enum reason malformed(struct reader *reader, const char *what)
{
    return because(reader, REASON_MALFORMED, "the object file contradicts itself: %s",
                   what);
}

const ElfW(Phdr) * segment_of(const struct reader *reader, uint64_t address, uint64_t bytes,
                              uint32_t rights)
{
    for (unsigned i = 0; i < reader->header.e_phnum; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        uint64_t inside = address - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & rights) == rights &&
            inside <= segment->p_memsz && bytes <= segment->p_memsz - inside)
            return segment;
    }
    return NULL;
}

bool locate(const struct reader *reader, uint64_t address, uint64_t bytes, uint64_t *offset)
{
    const ElfW(Phdr) *segment = segment_of(reader, address, bytes, PF_R);
    if (!segment || address - segment->p_vaddr + bytes > segment->p_filesz)
        return false;
    *offset = segment->p_offset + (address - segment->p_vaddr);
    return true;
}

static enum reason check_load(struct reader *reader, const ElfW(Phdr) * segment,
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
        return malformed(reader, "a segment lies outside of what memory there can be");
    if ((align & (align - 1)) || (segment->p_vaddr - segment->p_offset) % align)
        return malformed(reader, "a segment is out of alignment");
    /* Whole pages are mapped, and a later segment's replace those of an earlier one. */
    if (segment->p_vaddr / page * page < *end ||
        (segment->p_filesz && segment->p_offset < *file_end))
        return malformed(reader, "segments overlap");
    *end = (memory_end + page - 1) / page * page;
    *file_end = segment->p_filesz ? segment->p_offset + segment->p_filesz : *file_end;
    return REASON_NONE;
}

/* Whether the bytes of the segment in the file are those that are in memory there. */
static bool is_loaded(const struct reader *reader, const ElfW(Phdr) * segment)
{
    uint64_t offset,
        bytes = segment->p_filesz > segment->p_memsz ? segment->p_filesz : segment->p_memsz;
    return locate(reader, segment->p_vaddr, bytes, &offset) && offset == segment->p_offset;
}

/* Whole pages are protected: what is to be may begin before the segment does, at memory of
 * threads, which has no place of its own, and reach to the end of the last page. */
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

/* What the system's loader reads or changes where these say. Memory of threads that begins
 * as zeros is nowhere. */
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
                locate(reader, segment->p_vaddr, segment->p_filesz, &offset));
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

static enum reason check_segments(struct reader *reader)
{
    uint64_t end = 0, file_end = 0;
    unsigned loads = 0, dynamics = 0;
    bool stack_said = false;
    for (unsigned i = 0; i < reader->header.e_phnum; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        enum reason reason = REASON_NONE;
        if (segment->p_type == PT_LOAD) {
            loads++;
            reason = check_load(reader, segment, &end, &file_end);
        } else if (segment->p_type == PT_DYNAMIC) {
            dynamics++;
        } else if (segment->p_type == PT_GNU_STACK) {
            stack_said = true;
            if (segment->p_flags & PF_X)
                reason = because(reader, REASON_EXECUTABLE_STACK,
                                 "asks for an executable stack");
        }
        if (reason)
            return reason;
    }
    if (loads == 0 || dynamics != 1)
        return malformed(reader, "it has no segments to load, or no dynamic section");
    if (!stack_said && STACK_BY_DEFAULT)
        return because(reader, REASON_EXECUTABLE_STACK,
                       "does not say that its stack need not be executable");
    for (unsigned i = 0; i < reader->header.e_phnum; i++)
        if (!check_special(reader, &reader->segments[i]))
            return malformed(reader, "a segment is not where it says");
    return REASON_NONE;
}

static enum reason read_segments(struct reader *reader)
{
    const ElfW(Ehdr) *header = &reader->header;
    uint64_t bytes = (uint64_t)header->e_phnum * sizeof(ElfW(Phdr));
    if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phnum == 0 ||
        header->e_phnum > MAX_SEGMENTS)
        return malformed(reader, "its table of segments");
    if (!source_read(reader->source, header->e_phoff, reader->segments, bytes))
        return truncated(reader, "table of segments");
    /* The system's loader does not look at sections, but they come last: cut off, they show
     * that the file is not whole. */
    if (header->e_shoff && header->e_shnum && header->e_shentsize != sizeof(ElfW(Shdr)))
        return malformed(reader, "its table of sections");
    if (header->e_shoff && !in_file(reader->source, header->e_shoff,
                                    (uint64_t)header->e_shnum * sizeof(ElfW(Shdr))))
        return truncated(reader, "table of sections");
    return check_segments(reader);
}

bool read_memory(const struct reader *reader, uint64_t address, void *to, uint64_t bytes)
{
    uint64_t offset;
    return locate(reader, address, bytes, &offset) &&
           source_read(reader->source, offset, to, bytes);
}

bool executable(const struct reader *reader, uint64_t address)
{
    const ElfW(Phdr) *segment = segment_of(reader, address, 1, PF_X);
    return segment && address - segment->p_vaddr < segment->p_filesz &&
           (NATIVE_MACHINE != EM_AARCH64 || address % 4 == 0);
}

enum reason elf_read(const struct source *source, struct object *object, char *why,
                     size_t size)
{
    static enum reason (*const steps[])(struct reader *) = {
        check_header, read_segments, read_dynamic,  check_tables,      read_strings,
        find_entry,   read_notes,    read_versions, check_relocations,
    };
    *object = (struct object){ 0 };
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return REASON_NO_MEMORY;
    reader->source = source;
    reader->object = object;
    reader->why = why;
    reader->why_size = size;
    enum reason reason = REASON_NONE;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !reason; i++)
        reason = steps[i](reader);
    free(reader->symbols);
    free(reader->called);
    free(reader);
    return reason;
}

void object_free(struct object *object)
{
    free(object->strings);
    free(object->manifest);
}
