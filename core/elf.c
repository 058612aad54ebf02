/* SPDX-License-Identifier: MIT */
/* elf.c - bounded reading of ELF shared objects of this machine's kind; of others it says
 * what they are. See object.h; the format is in the System V gABI, chapters 4 and 5. */
#define _DEFAULT_SOURCE
#include "object.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if UINTPTR_MAX == UINT64_MAX
#define NATIVE_CLASS      ELFCLASS64
#define SYMBOL_TYPE(info) ELF64_ST_TYPE(info)
#define SYMBOL_BIND(info) ELF64_ST_BIND(info)
#else
#define NATIVE_CLASS      ELFCLASS32
#define SYMBOL_TYPE(info) ELF32_ST_TYPE(info)
#define SYMBOL_BIND(info) ELF32_ST_BIND(info)
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

#define MAX_SEGMENTS 256
#define MAX_DYNAMIC  65536
#define MAX_STRINGS  (64u << 20)
#define MAX_SYMBOLS  (4u << 20)
#define MAX_NOTE     (64u << 10)
#define KNOWN_TAGS   (DT_RUNPATH + 1)
#define ENTRY        "hw_plugin_entry"

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

static enum reason because(struct reader *reader, enum reason reason, const char *format,
                           ...) __attribute__((format(printf, 3, 4)));

static enum reason because(struct reader *reader, enum reason reason, const char *format,
                           ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->why, reader->why_size, format, arguments);
    va_end(arguments);
    return reason;
}

static bool source_read(const struct source *source, uint64_t offset, void *to,
                        uint64_t bytes)
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

static bool in_file(const struct source *source, uint64_t offset, uint64_t bytes)
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

static enum reason truncated(struct reader *reader, const char *what)
{
    return because(reader, REASON_TRUNCATED, "the file ends before its %s does", what);
}

static enum reason malformed(struct reader *reader, const char *what)
{
    return because(reader, REASON_MALFORMED, "the object file contradicts itself: %s",
                   what);
}

static enum reason check_load(struct reader *reader, const ElfW(Phdr) * segment,
                              uint64_t *end)
{
    uint64_t memory_end, align = segment->p_align ? segment->p_align : 1;
    if (!in_file(reader->source, segment->p_offset, segment->p_filesz))
        return truncated(reader, "segments");
    if (segment->p_filesz > segment->p_memsz)
        return malformed(reader, "a segment is larger in the file than in memory");
    if (__builtin_add_overflow((uint64_t)segment->p_vaddr, (uint64_t)segment->p_memsz,
                               &memory_end) ||
        memory_end > UINT64_C(1) << (8 * sizeof(void *) < 48 ? 31 : 40))
        return malformed(reader, "a segment lies outside of what memory there can be");
    if ((align & (align - 1)) || (segment->p_vaddr - segment->p_offset) % align)
        return malformed(reader, "a segment is out of alignment");
    if (segment->p_vaddr < *end)
        return malformed(reader, "segments overlap");
    *end = memory_end;
    return REASON_NONE;
}

static enum reason check_segments(struct reader *reader)
{
    uint64_t end = 0;
    unsigned loads = 0, dynamics = 0;
    bool stack_said = false;
    for (unsigned i = 0; i < reader->header.e_phnum; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        enum reason reason = REASON_NONE;
        if (segment->p_type == PT_LOAD) {
            loads++;
            reason = check_load(reader, segment, &end);
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

/* The file offset of `bytes` bytes at `address`; false if no segment has them all in the
 * file. */
static bool locate(const struct reader *reader, uint64_t address, uint64_t bytes,
                   uint64_t *offset)
{
    for (unsigned i = 0; i < reader->header.e_phnum; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        if (segment->p_type != PT_LOAD || address < segment->p_vaddr)
            continue;
        uint64_t inside = address - segment->p_vaddr;
        if (inside <= segment->p_filesz && bytes <= segment->p_filesz - inside) {
            *offset = segment->p_offset + inside;
            return true;
        }
    }
    return false;
}

static bool read_memory(const struct reader *reader, uint64_t address, void *to,
                        uint64_t bytes)
{
    uint64_t offset;
    return locate(reader, address, bytes, &offset) &&
           source_read(reader->source, offset, to, bytes);
}

static bool executable(const struct reader *reader, uint64_t address)
{
    for (unsigned i = 0; i < reader->header.e_phnum; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
            address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_filesz)
            return true;
    }
    return false;
}

/* ---- the dynamic section ---- */

static void take_entry(struct reader *reader, const ElfW(Dyn) * entry)
{
    uint64_t tag = (uint64_t)entry->d_tag, value = entry->d_un.d_val;
    struct object *object = reader->object;
    if (tag == DT_NEEDED) {
        if (object->needed_count < MAX_NEEDED)
            reader->needed[object->needed_count++] = value;
    } else if (tag < KNOWN_TAGS) {
        reader->tags[tag] = value;
    } else if (tag == DT_GNU_HASH) {
        reader->gnu_hash = value;
    } else if (tag == DT_VERNEED) {
        reader->verneed = value;
    } else if (tag == DT_VERNEEDNUM) {
        reader->verneed_count = value;
    } else if (tag == DT_VERSYM) {
        reader->versym = value;
    } else if (tag == DT_FLAGS_1) {
        reader->pie = (value & DF_1_PIE) != 0;
    }
}

static enum reason read_dynamic(struct reader *reader)
{
    const ElfW(Phdr) *segment = reader->segments;
    while (segment->p_type != PT_DYNAMIC)
        segment++;
    uint64_t count = segment->p_filesz / sizeof(ElfW(Dyn)), offset;
    if (count == 0 || count > MAX_DYNAMIC ||
        !locate(reader, segment->p_vaddr, segment->p_filesz, &offset) ||
        offset != segment->p_offset)
        return malformed(reader, "its dynamic section lies outside of its segments");
    ElfW(Dyn) *table = malloc((size_t)count * sizeof *table);
    if (!table)
        return because(reader, REASON_NO_MEMORY, "out of memory");
    bool ended = false;
    if (source_read(reader->source, offset, table, count * sizeof *table))
        for (uint64_t i = 0; i < count && !ended; i++) {
            ended = table[i].d_tag == DT_NULL;
            take_entry(reader, &table[i]);
        }
    free(table);
    if (!ended)
        return malformed(reader, "its dynamic section never ends");
    if (reader->pie)
        return because(reader, REASON_NOT_SHARED, "a program, not a shared object");
    return REASON_NONE;
}

/* Tables that the system's loader believes without a look: they must lie in the file. */
static enum reason check_tables(struct reader *reader)
{
    static const struct {
        int address, bytes;
        const char *what;
    } rows[] = {
        { DT_RELA, DT_RELASZ, "its relocations lie outside of its segments" },
        { DT_REL, DT_RELSZ, "its relocations lie outside of its segments" },
        { DT_JMPREL, DT_PLTRELSZ, "its relocations lie outside of its segments" },
        { DT_INIT_ARRAY, DT_INIT_ARRAYSZ, "its constructors lie outside of its segments" },
        { DT_FINI_ARRAY, DT_FINI_ARRAYSZ, "its destructors lie outside of its segments" },
        { DT_SYMTAB, DT_SYMENT, "its symbols lie outside of its segments" },
    };
    uint64_t offset;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (reader->tags[rows[i].address] && !locate(reader, reader->tags[rows[i].address],
                                                     reader->tags[rows[i].bytes], &offset))
            return malformed(reader, rows[i].what);
    if ((reader->tags[DT_INIT] && !executable(reader, reader->tags[DT_INIT])) ||
        (reader->tags[DT_FINI] && !executable(reader, reader->tags[DT_FINI])))
        return malformed(reader, "its constructor or destructor is no code");
    if (reader->versym && !locate(reader, reader->versym, sizeof(uint16_t), &offset))
        return malformed(reader, "its symbol versions lie outside of its segments");
    return REASON_NONE;
}

static const char *string_at(const struct object *object, uint64_t offset)
{
    return offset < object->strings_size ? object->strings + offset : NULL;
}

static enum reason read_strings(struct reader *reader)
{
    struct object *object = reader->object;
    uint64_t bytes = reader->tags[DT_STRSZ];
    if (bytes == 0 || bytes > MAX_STRINGS)
        return malformed(reader, "its string table has no size that can be");
    object->strings = malloc((size_t)bytes);
    if (!object->strings)
        return because(reader, REASON_NO_MEMORY, "out of memory");
    object->strings_size = (size_t)bytes;
    if (!read_memory(reader, reader->tags[DT_STRTAB], object->strings, bytes) ||
        object->strings[bytes - 1] != '\0')
        return malformed(reader,
                         "its string table lies outside of its segments, or never ends");
    for (uint32_t i = 0; i < object->needed_count; i++)
        if (!(object->needed[i] = string_at(object, reader->needed[i])))
            return malformed(reader,
                             "the name of a library lies outside of the string table");
    if (reader->tags[DT_RPATH] &&
        !(object->rpath = string_at(object, reader->tags[DT_RPATH])))
        return malformed(reader, "the rpath lies outside of the string table");
    if (reader->tags[DT_RUNPATH] &&
        !(object->runpath = string_at(object, reader->tags[DT_RUNPATH])))
        return malformed(reader, "the runpath lies outside of the string table");
    return REASON_NONE;
}

/* ---- symbols ---- */

/* The GNU hash table does not say how many symbols there are: the last one of the last
 * chain is the last of all. */
static bool count_by_chains(const struct reader *reader, uint64_t *count)
{
    uint32_t header[4]; /* buckets, first symbol, words of the filter, shift */
    if (!read_memory(reader, reader->gnu_hash, header, sizeof header) ||
        header[0] > MAX_SYMBOLS || header[2] > MAX_SYMBOLS)
        return false;
    uint64_t buckets = reader->gnu_hash + sizeof header +
                       (uint64_t)header[2] * sizeof(ElfW(Addr));
    uint64_t chains = buckets + (uint64_t)header[0] * 4;
    uint32_t *bucket = calloc(header[0] ? header[0] : 1, 4), top = 0, link = 0;
    bool good = bucket && read_memory(reader, buckets, bucket, (uint64_t)header[0] * 4);
    for (uint32_t i = 0; good && i < header[0]; i++)
        top = bucket[i] > top ? bucket[i] : top;
    free(bucket);
    *count = header[1];
    if (!good || (top && top < header[1]))
        return false;
    for (uint64_t i = top; top && !(link & 1); i++) {
        if (i >= MAX_SYMBOLS ||
            !read_memory(reader, chains + (i - header[1]) * 4, &link, 4))
            return false;
        *count = i + 1;
    }
    return true;
}

static bool count_symbols(const struct reader *reader, uint64_t *count)
{
    uint32_t header[2]; /* buckets, chains: as many as symbols */
    if (reader->tags[DT_HASH]) {
        if (!read_memory(reader, reader->tags[DT_HASH], header, sizeof header))
            return false;
        *count = header[1];
        return header[1] <= MAX_SYMBOLS;
    }
    return reader->gnu_hash && count_by_chains(reader, count);
}

static enum reason check_entry(struct reader *reader, const ElfW(Sym) * symbol)
{
    unsigned type = SYMBOL_TYPE(symbol->st_info), bind = SYMBOL_BIND(symbol->st_info);
    const char *what = symbol->st_shndx == SHN_UNDEF ? "is undefined"
                       : type != STT_FUNC            ? "is no function"
                       : bind == STB_WEAK   ? "is weak, so another library may replace it"
                       : bind != STB_GLOBAL ? "is local"
                       : !executable(reader, symbol->st_value) ? "lies outside of the code"
                                                               : NULL;
    if (what)
        return because(reader, REASON_BAD_ENTRY, "its %s %s", ENTRY, what);
    return REASON_NONE;
}

static enum reason find_entry(struct reader *reader)
{
    uint64_t count = 0, offset;
    if (!reader->tags[DT_SYMTAB] || reader->tags[DT_SYMENT] != sizeof(ElfW(Sym)) ||
        !count_symbols(reader, &count) ||
        !locate(reader, reader->tags[DT_SYMTAB], count * sizeof(ElfW(Sym)), &offset))
        return malformed(reader, "its symbol table or the hash table beside it");
    ElfW(Sym) *symbols = malloc(count ? (size_t)count * sizeof *symbols : 1);
    if (!symbols)
        return because(reader, REASON_NO_MEMORY, "out of memory");
    enum reason reason = because(reader, REASON_NO_ENTRY, "not a plugin: it exports no %s",
                                 ENTRY);
    if (!source_read(reader->source, offset, symbols, count * sizeof *symbols))
        reason = truncated(reader, "symbol table");
    else
        for (uint64_t i = 0; i < count && reason == REASON_NO_ENTRY; i++) {
            const char *name = string_at(reader->object, symbols[i].st_name);
            if (name && strcmp(name, ENTRY) == 0)
                reason = check_entry(reader, &symbols[i]);
        }
    free(symbols);
    return reason;
}

/* ---- versions ---- */

static bool read_versions_of(struct reader *reader, uint64_t address, unsigned count)
{
    struct object *object = reader->object;
    for (unsigned i = 0; i < count; i++) {
        ElfW(Vernaux) row;
        if (!read_memory(reader, address, &row, sizeof row))
            return false;
        const char *name = string_at(object, row.vna_name);
        if (!name)
            return false;
        if (object->version_count < MAX_VERSIONS)
            object->versions[object->version_count++] = name;
        if (row.vna_next == 0)
            break;
        address += row.vna_next;
    }
    return true;
}

/* Offsets only grow, and stay inside of a segment: the walk ends. */
static enum reason read_versions(struct reader *reader)
{
    uint64_t address = reader->verneed;
    for (uint64_t i = 0; address && i < reader->verneed_count && i < MAX_NEEDED; i++) {
        ElfW(Verneed) row;
        if (!read_memory(reader, address, &row, sizeof row) ||
            !read_versions_of(reader, address + row.vn_aux, row.vn_cnt))
            return malformed(reader,
                             "the versions that it needs lie outside of its segments");
        if (row.vn_next == 0)
            break;
        address += row.vn_next;
    }
    return REASON_NONE;
}

/* ---- notes ---- */

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

/* The manifest is a note of the name "hw". */
static enum reason scan_notes(struct reader *reader, const char *notes, uint64_t bytes,
                              uint64_t align)
{
    uint64_t at = 0;
    struct object *object = reader->object;
    while (at <= bytes && bytes - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) row;
        memcpy(&row, notes + at, sizeof row);
        uint64_t name = at + sizeof row, text = round_up(name + row.n_namesz, align);
        if (text > bytes || row.n_descsz > bytes - text)
            return malformed(reader, "a note is longer than its segment");
        at = round_up(text + row.n_descsz, align);
        if (row.n_type != HW_NOTE_TYPE || row.n_namesz < 3 || row.n_namesz > 4 ||
            memcmp(notes + name, "hw", 3) != 0)
            continue;
        if (object->manifest)
            return because(reader, REASON_BAD_MANIFEST, "carries two manifests");
        object->manifest = malloc(row.n_descsz ? row.n_descsz : 1);
        if (!object->manifest)
            return because(reader, REASON_NO_MEMORY, "out of memory");
        memcpy(object->manifest, notes + text, row.n_descsz);
        object->manifest_bytes = row.n_descsz;
    }
    return REASON_NONE;
}

static enum reason read_notes(struct reader *reader)
{
    enum reason reason = REASON_NONE;
    for (unsigned i = 0; i < reader->header.e_phnum && !reason; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        if (segment->p_type != PT_NOTE)
            continue;
        if (!in_file(reader->source, segment->p_offset, segment->p_filesz))
            return truncated(reader, "notes");
        if (segment->p_filesz > MAX_NOTE)
            continue; /* none of ours */
        char *notes = malloc(segment->p_filesz ? (size_t)segment->p_filesz : 1);
        if (!notes)
            return because(reader, REASON_NO_MEMORY, "out of memory");
        if (!source_read(reader->source, segment->p_offset, notes, segment->p_filesz))
            reason = truncated(reader, "notes");
        else
            reason = scan_notes(reader, notes, segment->p_filesz,
                                segment->p_align == 8 ? 8 : 4);
        free(notes);
    }
    return reason;
}

enum reason elf_read(const struct source *source, struct object *object, char *why,
                     size_t size)
{
    static enum reason (*const steps[])(struct reader *) = {
        check_header, read_segments, read_dynamic, check_tables,
        read_strings, find_entry,    read_notes,   read_versions,
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
    free(reader);
    return reason;
}

void object_free(struct object *object)
{
    free(object->strings);
    free(object->manifest);
}
