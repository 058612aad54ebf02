/* SPDX-License-Identifier: MIT */
/* header.c - the beginning of a plugin file: see header.h. */
#define _DEFAULT_SOURCE
#include "object/header.h"

#include <hw/plugin.h>

#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 64
#define MAX_DYNAMIC  256         /* entries; more than linkers write */
#define MAX_STRINGS  (16u << 20) /* bytes */
#define MAX_NOTES    (64u << 10) /* bytes of one segment of notes; more are ignored */

/* ---- this process ---- */

/* The header of the object file that this code is linked into; the linker defines it. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

const char *elf_machine(uint32_t number)
{
    static const struct {
        uint32_t number;
        const char *name;
    } rows[] = {
        { 3, "i386" },     { 40, "ARM" },   { 62, "x86-64" }, { 183, "AArch64" },
        { 243, "RISC-V" }, { 21, "POWER" }, { 22, "IBM Z" },  { 258, "LoongArch" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].number == number)
            return rows[i].name;
    return NULL;
}

const char *native_machine(void)
{
    return elf_machine(__ehdr_start.e_machine);
}

/* Whether the file begins with the same magic, word size and byte order, and is for the same
 * processor. */
static bool starts_natively(const uint8_t start[20])
{
    return memcmp(start, __ehdr_start.e_ident, EI_DATA + 1) == 0 &&
           memcmp(start + offsetof(ElfW(Ehdr), e_machine), &__ehdr_start.e_machine,
                  sizeof __ehdr_start.e_machine) == 0;
}

bool header_is_native(int fd)
{
    uint8_t start[20];
    return pread(fd, start, sizeof start, 0) == (ssize_t)sizeof start &&
           starts_natively(start);
}

enum object_fault target_check(const struct target *target, char *why, size_t size)
{
    const unsigned bits = 8 * sizeof(void *);
    const char *here = native_machine(), *machines = target->machines;
    if (!target->format)
        return OBJECT_GOOD;
    if (target->format != OBJECT_ELF) {
        snprintf(why, size, "built for %s%s%s, not for %s on %s",
                 format_system(target->format), machines ? " on " : "",
                 machines ? machines : "", format_system(OBJECT_ELF), here);
        return OBJECT_WRONG_FORMAT;
    }
    if (!machines)
        return OBJECT_GOOD;
    if (target->bits != bits && !target->several) {
        snprintf(why, size, "built for %u bits (%s), not %u", target->bits, machines, bits);
        return OBJECT_WRONG_CLASS;
    }
    if (target->big != (__ehdr_start.e_ident[EI_DATA] == ELFDATA2MSB)) {
        snprintf(why, size, "built for another byte order (%s)", machines);
        return OBJECT_WRONG_BYTE_ORDER;
    }
    if (!target->here) {
        snprintf(why, size, "built for %s, not %s", machines, here);
        return OBJECT_WRONG_MACHINE;
    }
    return OBJECT_GOOD;
}

/* ---- the kind of file ---- */

const char *format_system(enum object_format format)
{
    static const char *const names[] = { [OBJECT_NO_FORMAT] = "",
                                         [OBJECT_ELF] = "Linux",
                                         [OBJECT_PE] = "Windows",
                                         [OBJECT_MACHO] = "macOS" };
    return names[format];
}

enum object_format format_of(const uint8_t *start, size_t bytes, bool *big)
{
    static const struct {
        const char *magic;
        size_t bytes;
        enum object_format format;
        bool big;
    } rows[] = {
        { ELFMAG, 4, OBJECT_ELF, false },
        { "MZ", 2, OBJECT_PE, false },
        { "\xcf\xfa\xed\xfe", 4, OBJECT_MACHO, false },
        { "\xce\xfa\xed\xfe", 4, OBJECT_MACHO, false },
        { "\xfe\xed\xfa\xcf", 4, OBJECT_MACHO, true },
        { "\xfe\xed\xfa\xce", 4, OBJECT_MACHO, true },
        { "\xca\xfe\xba\xbe", 4, OBJECT_MACHO, true },
        { "\xca\xfe\xba\xbf", 4, OBJECT_MACHO, true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (memcmp(start, rows[i].magic, bytes < rows[i].bytes ? bytes : rows[i].bytes) ==
            0) {
            *big = rows[i].big;
            return rows[i].format;
        }
    return OBJECT_NO_FORMAT;
}

const char *describe_other(const uint8_t *start, size_t bytes, enum object_fault *fault)
{
    static const struct {
        const char *magic;
        const char *words;
        enum object_fault fault;
    } rows[] = {
        { "#!", "a script, not an object file", OBJECT_SCRIPT },
        { "!<arch>\n", "a static library, not a shared object", OBJECT_STATIC_LIBRARY },
        { "/* GNU ld script", "a linker script, not a shared object",
          OBJECT_LINKER_SCRIPT },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (bytes >= strlen(rows[i].magic) &&
            memcmp(start, rows[i].magic, strlen(rows[i].magic)) == 0) {
            *fault = rows[i].fault;
            return rows[i].words;
        }
    *fault = OBJECT_NOT_AN_OBJECT;
    return "not an object file";
}

/* ---- bytes of the file ---- */

struct plugin_file {
    int fd;
    uint64_t bytes;
    int error; /* errno of a read that failed */
    char *why;
    size_t why_size;
    struct header *header;
};

__attribute__((format(printf, 3, 4))) static enum object_fault
header_refuse(struct plugin_file *file, enum object_fault fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(file->why, file->why_size, format, arguments);
    va_end(arguments);
    return fault;
}

static enum object_fault truncated(struct plugin_file *file, const char *where)
{
    return header_refuse(file, OBJECT_TRUNCATED, "the file is truncated: it ends %s",
                         where);
}

static enum object_fault malformed(struct plugin_file *file, const char *what)
{
    return header_refuse(file, OBJECT_MALFORMED, "the object file is damaged: %s", what);
}

static bool has_bytes(const struct plugin_file *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->bytes && bytes <= file->bytes - offset;
}

static bool file_read(struct plugin_file *file, uint64_t offset, void *to, size_t bytes)
{
    char *at = to;
    while (has_bytes(file, offset, bytes) && bytes) {
        const ssize_t got = pread(file->fd, at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            file->error = errno;
        if (got <= 0)
            return false; /* 0: the file has shrunk */
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return bytes == 0;
}

/* ---- the header ---- */

/* The first bytes are in the byte order of the file, the other numbers then in this one's. */
static enum object_fault check_target(struct plugin_file *file, const uint8_t *start)
{
    const bool big = start[EI_DATA] == ELFDATA2MSB;
    const uint32_t number = big ? start[18] * 256u + start[19]
                                : start[19] * 256u + start[18];
    const char *name = elf_machine(number);
    if (start[EI_CLASS] != ELFCLASS32 && start[EI_CLASS] != ELFCLASS64)
        return header_refuse(file, OBJECT_WRONG_CLASS,
                             "built for an unknown number of bits");
    if (!big && start[EI_DATA] != ELFDATA2LSB)
        return header_refuse(file, OBJECT_WRONG_BYTE_ORDER,
                             "built for an unknown byte order");
    if (start[EI_VERSION] != EV_CURRENT)
        return header_refuse(file, OBJECT_MALFORMED, "its ELF version is unknown");
    const struct target target = { .format = OBJECT_ELF,
                                   .machines = name ? name : "another processor",
                                   .here = number == __ehdr_start.e_machine,
                                   .bits = start[EI_CLASS] == ELFCLASS64 ? 64 : 32,
                                   .big = big };
    return target_check(&target, file->why, file->why_size);
}

/* The system's loader ignores sections, but their table is at the end of the file: if it is
 * missing, so may be the rest. */
static enum object_fault check_header(struct plugin_file *file, const ElfW(Ehdr) * header)
{
    static const char *const kinds[] = { "an object file without a type",
                                         "an object file that was not linked", "a program",
                                         "", "a core dump" };
    if (header->e_type != ET_DYN)
        return header_refuse(file, OBJECT_NOT_SHARED, "%s, not a shared object",
                             header->e_type <= ET_CORE ? kinds[header->e_type]
                                                       : "an object file of unknown type");
    if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phnum == 0 ||
        header->e_phnum > MAX_SEGMENTS)
        return malformed(file, "its table of segments is invalid");
    if (header->e_shoff && header->e_shnum && header->e_shentsize != sizeof(ElfW(Shdr)))
        return malformed(file, "its table of sections is invalid");
    if (header->e_shoff &&
        !has_bytes(file, header->e_shoff, (uint64_t)header->e_shnum * sizeof(ElfW(Shdr))))
        return truncated(file, "before its table of sections");
    return OBJECT_GOOD;
}

/* ---- the manifest ---- */

static uint64_t round_up(uint64_t value, unsigned align)
{
    return (value + align - 1) / align * align;
}

static enum object_fault keep_manifest(struct plugin_file *file, const uint8_t *text,
                                       size_t bytes)
{
    if (file->header->manifest)
        return header_refuse(file, OBJECT_TWO_MANIFESTS, "it has two manifests");
    if (!(file->header->manifest = malloc(bytes + 1)))
        return header_refuse(file, OBJECT_NO_MEMORY, "out of memory");
    memcpy(file->header->manifest, text, bytes);
    file->header->manifest_bytes = bytes;
    return OBJECT_GOOD;
}

/* Each name and text of a note begins at a multiple of `align` bytes. */
static enum object_fault find_manifest(struct plugin_file *file, const uint8_t *notes,
                                       uint64_t bytes, unsigned align)
{
    enum object_fault fault = OBJECT_GOOD;
    ElfW(Nhdr) head;
    for (uint64_t at = 0; !fault && at <= bytes && bytes - at >= sizeof head;) {
        memcpy(&head, notes + at, sizeof head);
        const uint64_t name = at + sizeof head;
        const uint64_t text = round_up(name + head.n_namesz, align);
        if (text > bytes || head.n_descsz > bytes - text)
            return malformed(file, "a note reaches past the end of its segment");
        at = round_up(text + head.n_descsz, align);
        if (head.n_type == HW_NOTE_TYPE && (head.n_namesz == 3 || head.n_namesz == 4) &&
            memcmp(notes + name, "hw", 3) == 0)
            fault = keep_manifest(file, notes + text, head.n_descsz);
    }
    return fault;
}

static enum object_fault read_notes(struct plugin_file *file, const ElfW(Phdr) * segment)
{
    const uint64_t bytes = segment->p_filesz;
    if (has_bytes(file, segment->p_offset, bytes) && bytes > MAX_NOTES)
        return OBJECT_GOOD;
    uint8_t *notes = malloc(bytes > MAX_NOTES ? 1 : (size_t)bytes + 1);
    enum object_fault fault;
    if (!notes)
        fault = header_refuse(file, OBJECT_NO_MEMORY, "out of memory");
    else if (!file_read(file, segment->p_offset, notes, (size_t)bytes))
        fault = truncated(file, "before its notes");
    else
        fault = find_manifest(file, notes, bytes, segment->p_align == 8 ? 8 : 4);
    free(notes);
    return fault;
}

/* ---- the segments ---- */

struct segments {
    ElfW(Phdr) rows[MAX_SEGMENTS];
    unsigned count;
};

/* The first segment of this type whose bytes in the file include the address; or NULL. */
static const ElfW(Phdr) *
    segment_find(const struct segments *segments, uint32_t type, ElfW(Addr) address)
{
    const ElfW(Phdr) *end = segments->rows + segments->count, *row = segments->rows;
    while (row < end && (row->p_type != type || address - row->p_vaddr >= row->p_filesz))
        row++;
    return row < end ? row : NULL;
}

static bool has_dollar(struct plugin_file *file, const struct segments *segments,
                       ElfW(Addr) address, size_t bytes)
{
    const ElfW(Phdr) *row = segment_find(segments, PT_LOAD, address);
    char *text = row && bytes <= MAX_STRINGS ? malloc(bytes + 1) : NULL;
    const bool has =
        !text || !file_read(file, row->p_offset + (address - row->p_vaddr), text, bytes) ||
        memchr(text, '$', bytes);
    free(text);
    return has;
}

/* Whether the paths and names of needed libraries may depend on the place of the file: there is a
 * dollar sign in the dynamic strings. */
static bool is_beside(struct plugin_file *file, const struct segments *segments)
{
    ElfW(Dyn) list[MAX_DYNAMIC];
    ElfW(Addr) strings = 0;
    size_t bytes = 0, entries = 0;
    for (unsigned i = 0; i < segments->count; i++) {
        const ElfW(Phdr) *row = &segments->rows[i];
        if (row->p_type == PT_DYNAMIC && row->p_filesz <= sizeof list &&
            file_read(file, row->p_offset, list, (size_t)row->p_filesz))
            entries = (size_t)row->p_filesz / sizeof *list;
    }
    for (size_t i = 0; i < entries && list[i].d_tag != DT_NULL; i++)
        if (list[i].d_tag == DT_STRTAB)
            strings = list[i].d_un.d_ptr;
        else if (list[i].d_tag == DT_STRSZ)
            bytes = (size_t)list[i].d_un.d_val;
    return !entries || has_dollar(file, segments, strings, bytes);
}

/* Touching mapped memory beyond the end of the file would end the process (SIGBUS). */
static enum object_fault check_segments(struct plugin_file *file,
                                        const struct segments *segments)
{
    enum object_fault fault = OBJECT_GOOD;
    bool has[PT_INTERP + 1] = { false };
    for (unsigned i = 0; i < segments->count && !fault; i++) {
        const ElfW(Phdr) *row = &segments->rows[i];
        if (row->p_type <= PT_INTERP)
            has[row->p_type] = true;
        if (row->p_type == PT_NOTE)
            fault = read_notes(file, row);
        else if (row->p_type == PT_LOAD && !has_bytes(file, row->p_offset, row->p_filesz))
            fault = truncated(file, "before its segments");
    }
    if (!fault && (!has[PT_LOAD] || !has[PT_DYNAMIC]))
        return malformed(file, "it must have segments to load and one dynamic section");
    if (!fault && has[PT_INTERP] && !file->header->manifest)
        return header_refuse(file, OBJECT_NOT_SHARED, "a program, not a shared object");
    return fault;
}

static enum object_fault read_object(struct plugin_file *file, const uint8_t start[20])
{
    ElfW(Ehdr) header;
    struct segments segments;
    enum object_fault fault = check_target(file, start);
    if (fault)
        return fault;
    if (!file_read(file, 0, &header, sizeof header))
        return truncated(file, "within its header");
    if ((fault = check_header(file, &header)))
        return fault;
    segments.count = header.e_phnum;
    if (!file_read(file, header.e_phoff, segments.rows,
                   segments.count * sizeof *segments.rows))
        return truncated(file, "before its table of segments");
    fault = check_segments(file, &segments);
    file->header->beside = fault || is_beside(file, &segments);
    return fault;
}

static enum object_fault read_plugin(struct plugin_file *file)
{
    uint8_t start[20] = { 0 };
    const size_t bytes = file->bytes < sizeof start ? (size_t)file->bytes : sizeof start;
    enum object_fault fault;
    struct target target = { 0 };
    if (bytes == 0)
        return header_refuse(file, OBJECT_EMPTY, "the file is empty");
    if (!file_read(file, 0, start, bytes))
        return truncated(file, "within its header");
    target.format = format_of(start, bytes, &target.big);
    if (target.format == OBJECT_ELF)
        return bytes < sizeof start ? truncated(file, "within its header")
                                    : read_object(file, start);
    if (target.format)
        return target_check(&target, file->why, file->why_size);
    const char *words = describe_other(start, bytes, &fault);
    return header_refuse(file, fault, "%s", words);
}

enum object_fault header_read(int fd, uint64_t bytes, struct header *header, char *why,
                              size_t size)
{
    struct plugin_file file = {
        .fd = fd, .bytes = bytes, .why = why, .why_size = size, .header = header
    };
    *header = (struct header){ 0 };
    const enum object_fault fault = read_plugin(&file);
    if (fault && file.error)
        return header_refuse(&file, OBJECT_UNREADABLE, "cannot be read: %s",
                             strerror(file.error));
    return fault;
}
