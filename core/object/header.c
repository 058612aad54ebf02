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

#define NATIVE_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

#if defined(_WIN32)
#define NATIVE_FORMAT OBJECT_PE
#elif defined(__MACH__)
#define NATIVE_FORMAT OBJECT_MACHO
#else
#define NATIVE_FORMAT OBJECT_ELF
#endif

#if defined(__x86_64__)
#define NATIVE_NUMBER 62
#elif defined(__aarch64__)
#define NATIVE_NUMBER 183
#elif defined(__riscv)
#define NATIVE_NUMBER 243
#elif defined(__powerpc64__)
#define NATIVE_NUMBER 21
#elif defined(__s390x__)
#define NATIVE_NUMBER 22
#elif defined(__loongarch__)
#define NATIVE_NUMBER 258
#elif defined(__i386__)
#define NATIVE_NUMBER 3
#elif defined(__arm__)
#define NATIVE_NUMBER 40
#endif

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

bool is_native_machine(const char *machine)
{
    return strcmp(machine, elf_machine(NATIVE_NUMBER)) == 0;
}

enum object_fault target_check(const struct target *target, char *why, size_t size)
{
    const unsigned bits = 8 * sizeof(void *);
    const char *here = elf_machine(NATIVE_NUMBER), *machines = target->machines;
    if (!target->format)
        return OBJECT_GOOD;
    if (target->format != NATIVE_FORMAT) {
        snprintf(why, size, "built for %s%s%s, not for %s on %s",
                 format_system(target->format), machines ? " on " : "",
                 machines ? machines : "", format_system(NATIVE_FORMAT), here);
        return OBJECT_WRONG_FORMAT;
    }
    if (!machines)
        return OBJECT_GOOD;
    if (target->bits != bits && !target->several) {
        snprintf(why, size, "built for %u bits (%s), not %u", target->bits, machines, bits);
        return OBJECT_WRONG_CLASS;
    }
    if (target->big != NATIVE_BIG) {
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

bool header_is_native(int fd)
{
    uint8_t start[20];
    uint16_t machine;
    if (pread(fd, start, sizeof start, 0) != (ssize_t)sizeof start)
        return false;
    memcpy(&machine, start + EI_NIDENT + 2, sizeof machine);
    return memcmp(start, ELFMAG, SELFMAG) == 0 &&
           start[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           start[EI_DATA] == (NATIVE_BIG ? ELFDATA2MSB : ELFDATA2LSB) &&
           machine == NATIVE_NUMBER;
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
refuse(struct plugin_file *file, enum object_fault fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(file->why, file->why_size, format, arguments);
    va_end(arguments);
    return fault;
}

static enum object_fault truncated(struct plugin_file *file, const char *what)
{
    return refuse(file, OBJECT_TRUNCATED, "the file is truncated: it ends %s", what);
}

static enum object_fault malformed(struct plugin_file *file, const char *what)
{
    return refuse(file, OBJECT_MALFORMED, "the object file is damaged: %s", what);
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

static enum object_fault check_type(struct plugin_file *file, uint16_t type)
{
    static const char *const what[] = { [ET_NONE] = "an object file without a type",
                                        [ET_REL] = "an object file that was not linked",
                                        [ET_EXEC] = "a program",
                                        [ET_DYN] = "",
                                        [ET_CORE] = "a core dump" };
    if (type == ET_DYN)
        return OBJECT_GOOD;
    return refuse(file, OBJECT_NOT_SHARED, "%s, not a shared object",
                  type <= ET_CORE ? what[type] : "an object file of unknown type");
}

/* The first bytes are in the byte order of the file, the other numbers then in this one's. */
static enum object_fault check_target(struct plugin_file *file, const uint8_t *start)
{
    const bool big = start[EI_DATA] == ELFDATA2MSB;
    const uint32_t number = big ? start[18] * 256u + start[19]
                                : start[19] * 256u + start[18];
    const char *name = elf_machine(number);
    if (start[EI_CLASS] != ELFCLASS32 && start[EI_CLASS] != ELFCLASS64)
        return refuse(file, OBJECT_WRONG_CLASS, "built for an unknown number of bits");
    if (start[EI_DATA] != ELFDATA2LSB && start[EI_DATA] != ELFDATA2MSB)
        return refuse(file, OBJECT_WRONG_BYTE_ORDER, "built for an unknown byte order");
    if (start[EI_VERSION] != EV_CURRENT)
        return refuse(file, OBJECT_MALFORMED, "its ELF version is unknown");
    const struct target target = { .format = OBJECT_ELF,
                                   .machines = name ? name : "another processor",
                                   .here = number == NATIVE_NUMBER,
                                   .bits = start[EI_CLASS] == ELFCLASS64 ? 64 : 32,
                                   .big = big };
    return target_check(&target, file->why, file->why_size);
}

/* Reads the header of an object for this system. The system's loader ignores sections, but their
 * table is at the end of the file: if it is missing, so may be the rest. */
static enum object_fault read_header(struct plugin_file *file, ElfW(Ehdr) * header)
{
    uint8_t start[20];
    if (!file_read(file, 0, start, sizeof start))
        return truncated(file, "within its header");
    enum object_fault fault = check_target(file, start);
    if (fault)
        return fault;
    if (!file_read(file, 0, header, sizeof *header))
        return truncated(file, "within its header");
    if ((fault = check_type(file, header->e_type)))
        return fault;
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
        return refuse(file, OBJECT_TWO_MANIFESTS, "it has two manifests");
    if (!(file->header->manifest = malloc(bytes + 1)))
        return refuse(file, OBJECT_NO_MEMORY, "out of memory");
    memcpy(file->header->manifest, text, bytes);
    file->header->manifest_bytes = bytes;
    return OBJECT_GOOD;
}

/* Each name and text of a note begins at a multiple of `align` bytes. */
static enum object_fault read_notes(struct plugin_file *file, const uint8_t *notes,
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

static enum object_fault read_note_segment(struct plugin_file *file,
                                           const ElfW(Phdr) * segment)
{
    if (!has_bytes(file, segment->p_offset, segment->p_filesz))
        return truncated(file, "before its notes");
    if (segment->p_filesz > MAX_NOTES)
        return OBJECT_GOOD;
    uint8_t *notes = malloc((size_t)segment->p_filesz + 1);
    if (!notes)
        return refuse(file, OBJECT_NO_MEMORY, "out of memory");
    const enum object_fault fault =
        file_read(file, segment->p_offset, notes, (size_t)segment->p_filesz)
            ? read_notes(file, notes, segment->p_filesz, segment->p_align == 8 ? 8 : 4)
            : truncated(file, "before its notes");
    free(notes);
    return fault;
}

/* ---- the names of libraries and paths ---- */

/* Whether there is a dollar sign in the dynamic strings, which are at this address. */
static bool has_dollar(struct plugin_file *file, const ElfW(Phdr) * rows, unsigned count,
                       const ElfW(Dyn) * strings, size_t bytes)
{
    const ElfW(Addr) at = strings->d_un.d_ptr;
    unsigned i = 0;
    while (i < count && (rows[i].p_type != PT_LOAD || at < rows[i].p_vaddr ||
                         at - rows[i].p_vaddr >= rows[i].p_filesz))
        i++;
    char *text = i < count && bytes <= MAX_STRINGS ? malloc(bytes + 1) : NULL;
    const bool has =
        !text || !file_read(file, rows[i].p_offset + (at - rows[i].p_vaddr), text, bytes) ||
        memchr(text, '$', bytes);
    free(text);
    return has;
}

/* Whether the paths and names of needed libraries may depend on the place of the file. */
static bool is_beside(struct plugin_file *file, const ElfW(Phdr) * rows, unsigned count)
{
    ElfW(Dyn) list[MAX_DYNAMIC], strings = { 0 };
    size_t bytes = 0, entries = 0;
    for (unsigned i = 0; i < count; i++)
        if (rows[i].p_type == PT_DYNAMIC && rows[i].p_filesz <= sizeof list &&
            file_read(file, rows[i].p_offset, list, (size_t)rows[i].p_filesz))
            entries = (size_t)rows[i].p_filesz / sizeof *list;
    for (size_t i = 0; i < entries && list[i].d_tag != DT_NULL; i++)
        if (list[i].d_tag == DT_STRTAB)
            strings = list[i];
        else if (list[i].d_tag == DT_STRSZ)
            bytes = (size_t)list[i].d_un.d_val;
    return !entries || has_dollar(file, rows, count, &strings, bytes);
}

/* Touching mapped memory beyond the end of the file would end the process (SIGBUS). */
static enum object_fault read_segments(struct plugin_file *file, const ElfW(Ehdr) * header)
{
    ElfW(Phdr) rows[MAX_SEGMENTS];
    enum object_fault fault = OBJECT_GOOD;
    bool has[PT_INTERP + 1] = { false };
    if (!file_read(file, header->e_phoff, rows, header->e_phnum * sizeof *rows))
        return truncated(file, "before its table of segments");
    for (unsigned i = 0; i < header->e_phnum && !fault; i++) {
        if (rows[i].p_type <= PT_INTERP)
            has[rows[i].p_type] = true;
        if (rows[i].p_type == PT_NOTE)
            fault = read_note_segment(file, &rows[i]);
        else if (rows[i].p_type == PT_LOAD &&
                 !has_bytes(file, rows[i].p_offset, rows[i].p_filesz))
            fault = truncated(file, "before its segments");
    }
    if (!fault && (!has[PT_LOAD] || !has[PT_DYNAMIC]))
        return malformed(file, "it must have segments to load and one dynamic section");
    if (!fault && has[PT_INTERP] && !file->header->manifest)
        return refuse(file, OBJECT_NOT_SHARED, "a program, not a shared object");
    file->header->beside = fault || is_beside(file, rows, header->e_phnum);
    return fault;
}

static enum object_fault read_object(struct plugin_file *file)
{
    ElfW(Ehdr) header;
    const enum object_fault fault = read_header(file, &header);
    return fault ? fault : read_segments(file, &header);
}

static enum object_fault read_plugin(struct plugin_file *file)
{
    uint8_t start[16] = { 0 };
    const size_t bytes = file->bytes < sizeof start ? (size_t)file->bytes : sizeof start;
    enum object_fault fault;
    struct target target = { 0 };
    if (bytes == 0)
        return refuse(file, OBJECT_EMPTY, "the file is empty");
    if (!file_read(file, 0, start, bytes))
        return truncated(file, "within its header");
    target.format = format_of(start, bytes, &target.big);
    if (target.format == OBJECT_ELF)
        return read_object(file);
    if (target.format)
        return target_check(&target, file->why, file->why_size);
    const char *words = describe_other(start, bytes, &fault);
    return refuse(file, fault, "%s", words);
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
        return refuse(&file, OBJECT_UNREADABLE, "cannot be read: %s", strerror(file.error));
    return fault;
}
