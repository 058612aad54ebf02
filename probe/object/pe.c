/* SPDX-License-Identifier: MIT */
/* pe.c - reads libraries of Windows (PE, 32 and 64 bits): headers, sections, the manifest, exports
 * and imports. Microsoft's "PE Format" defines the format. */
#include "probe/object/reader.h"

#include <string.h>

enum {
    MAX_SECTIONS = 96, /* the most that Windows loads */
    SECTION_BYTES = 40,
    SYMBOL_BYTES = 18,
    IMPORT_BYTES = 20,
    IS_LINKED = 2,
    IS_LIBRARY = 0x2000,
    EXPORTS = 0, /* the first two data directories */
    IMPORTS = 1
};
#define EXECUTES 0x20000000u

struct section {
    uint64_t in_memory, address, in_file, offset, flags;
    char name[8];
};

struct pe {
    struct reader *reader;
    struct section sections[MAX_SECTIONS];
    unsigned section_count;
    struct {
        uint64_t address, bytes;
    } directory[2];
};

/* ---- headers ---- */

static enum object_fault check_symbols(struct reader *reader, const uint8_t *header)
{
    const uint64_t table = number(reader, header + 12, 4),
                   count = number(reader, header + 16, 4);
    const uint64_t strings = table + count * SYMBOL_BYTES;
    uint64_t bytes;
    /* The table of symbols and its strings are at the end of the file: it may be truncated. */
    if (table && count &&
        !(read_number(reader, strings, 4, &bytes) && has_bytes(reader, strings, bytes)))
        return truncated(reader, "table of symbols");
    return OBJECT_GOOD;
}

/* Reads the first part of the headers, which says where the second is. */
static enum object_fault read_file_header(struct pe *pe, uint64_t *optional,
                                          uint8_t header[24])
{
    static const struct machine machines[] = {
        { 0x14c, "i386" },     { 0x1c4, "ARM" },     { 0x8664, "x86-64" },
        { 0xaa64, "AArch64" }, { 0x5064, "RISC-V" }, { 0x6264, "LoongArch" },
    };
    struct reader *reader = pe->reader;
    uint64_t at;
    if (!read_number(reader, 60, 4, &at) || !read_at(reader, at, header, 24))
        return truncated(reader, "header");
    if (memcmp(header, "PE\0", 4) != 0)
        return because(reader, OBJECT_NOT_SHARED, "a program for DOS, not a shared object");
    *optional = at + 24;
    add_machine(reader, find_machine(machines, sizeof machines / sizeof *machines,
                                     number(reader, header + 4, 2)));
    const uint64_t flags = number(reader, header + 22, 2);
    if (!(flags & IS_LIBRARY))
        return because(reader, OBJECT_NOT_SHARED, "%s, not a shared object",
                       flags & IS_LINKED ? "a program"
                                         : "an object file that was not linked");
    return OBJECT_GOOD;
}

static enum object_fault read_directories(struct pe *pe, uint64_t optional)
{
    struct reader *reader = pe->reader;
    uint64_t magic, count;
    if (!read_number(reader, optional, 2, &magic))
        return truncated(reader, "header");
    if (magic != 0x10b && magic != 0x20b)
        return malformed(reader, "its header is of an unknown kind");
    reader->object->bits = magic == 0x20b ? 64 : 32;
    const uint64_t rows = optional + (magic == 0x20b ? 112 : 96);
    if (!read_number(reader, rows - 4, 4, &count))
        return truncated(reader, "header");
    for (unsigned i = 0; i < 2 && i < count; i++)
        if (!read_number(reader, rows + i * 8, 4, &pe->directory[i].address) ||
            !read_number(reader, rows + i * 8 + 4, 4, &pe->directory[i].bytes))
            return truncated(reader, "header");
    return OBJECT_GOOD;
}

static enum object_fault read_sections(struct pe *pe, uint64_t table, uint64_t count)
{
    struct reader *reader = pe->reader;
    uint8_t rows[MAX_SECTIONS * SECTION_BYTES];
    if (count == 0 || count > MAX_SECTIONS)
        return malformed(reader, "its table of sections is invalid");
    if (!read_at(reader, table, rows, count * SECTION_BYTES))
        return truncated(reader, "table of sections");
    pe->section_count = (unsigned)count;
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *row = rows + i * SECTION_BYTES;
        struct section *section = &pe->sections[i];
        *section = (struct section){ .in_memory = number(reader, row + 8, 4),
                                     .address = number(reader, row + 12, 4),
                                     .in_file = number(reader, row + 16, 4),
                                     .offset = number(reader, row + 20, 4),
                                     .flags = number(reader, row + 36, 4) };
        memcpy(section->name, row, sizeof section->name);
        if (section->in_file && !has_bytes(reader, section->offset, section->in_file))
            return truncated(reader, "sections");
    }
    return OBJECT_GOOD;
}

static enum object_fault read_headers(struct pe *pe)
{
    struct reader *reader = pe->reader;
    uint8_t header[24];
    uint64_t optional = 0;
    enum object_fault fault = read_file_header(pe, &optional, header);
    if (!fault)
        fault = read_directories(pe, optional);
    if (!fault)
        fault = read_sections(pe, optional + number(reader, header + 20, 2),
                              number(reader, header + 6, 2));
    return fault ? fault : check_symbols(reader, header + 0);
}

/* ---- addresses ---- */

/* The section that has the address and, from there, `left` bytes in the file. */
static const struct section *section_of(const struct pe *pe, uint64_t address,
                                        uint64_t *left)
{
    for (unsigned i = 0; i < pe->section_count; i++) {
        const struct section *section = &pe->sections[i];
        const uint64_t inside = address - section->address;
        if (address >= section->address && inside < section->in_file) {
            *left = section->in_file - inside;
            return section;
        }
    }
    *left = 0;
    return NULL;
}

static bool read_memory(const struct pe *pe, uint64_t address, void *to, uint64_t bytes)
{
    uint64_t left;
    const struct section *section = section_of(pe, address, &left);
    return section && bytes <= left &&
           read_at(pe->reader, section->offset + (address - section->address), to, bytes);
}

static bool read_word(const struct pe *pe, uint64_t address, unsigned width,
                      uint64_t *value)
{
    uint8_t bytes[4];
    if (!read_memory(pe, address, bytes, width))
        return false;
    *value = number(pe->reader, bytes, width);
    return true;
}

/* ---- exports ---- */

static enum object_fault bad_exports(struct pe *pe)
{
    return malformed(pe->reader, "its table of exports is invalid");
}

/* Compares the name of an export with the name of the entry, like strcmp(). Returns false if the
 * file does not have the name. */
static bool compare_name(const struct pe *pe, uint64_t names, uint64_t index, int *order)
{
    char text[sizeof ENTRY] = "";
    uint64_t name, left;
    if (!read_word(pe, names + index * 4, 4, &name))
        return false;
    section_of(pe, name, &left);
    *order = 0;
    if (!read_memory(pe, name, text, left < sizeof text ? left : sizeof text))
        return false;
    *order = strncmp(text, ENTRY, sizeof text);
    return true;
}

static enum object_fault check_entry(struct pe *pe, uint64_t functions, uint64_t ordinals,
                                     uint64_t index)
{
    uint64_t ordinal, address, left;
    if (!read_word(pe, ordinals + index * 2, 2, &ordinal) ||
        !read_word(pe, functions + ordinal * 4, 4, &address))
        return bad_exports(pe);
    const struct section *section = section_of(pe, address, &left);
    const char *what = address - pe->directory[EXPORTS].address <
                               pe->directory[EXPORTS].bytes
                           ? "is forwarded to another library"
                       : !section || !(section->flags & EXECUTES) ? "lies outside the code"
                                                                  : NULL;
    if (what)
        return because(pe->reader, OBJECT_BAD_ENTRY, "its " ENTRY " %s", what);
    return OBJECT_GOOD;
}

/* The names are sorted. */
static enum object_fault find_entry(struct pe *pe)
{
    uint8_t table[40] = { 0 };
    const struct reader *reader = pe->reader;
    const uint64_t address = pe->directory[EXPORTS].address;
    if (address && !read_memory(pe, address, table, sizeof table))
        return bad_exports(pe);
    uint64_t low = 0, high = number(reader, table + 24, 4);
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        int order;
        if (!compare_name(pe, number(reader, table + 32, 4), middle, &order))
            return bad_exports(pe);
        if (order == 0)
            return check_entry(pe, number(reader, table + 28, 4),
                               number(reader, table + 36, 4), middle);
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return because(pe->reader, OBJECT_NO_ENTRY, "not a plugin: it exports no " ENTRY);
}

/* ---- imports ---- */

/* The last row has no name. */
static enum object_fault read_imports(struct pe *pe)
{
    struct reader *reader = pe->reader;
    uint64_t row = pe->directory[IMPORTS].address, name, left;
    enum object_fault fault = OBJECT_GOOD;
    if (row == 0)
        return OBJECT_GOOD;
    for (; !fault; row += IMPORT_BYTES) {
        if (!read_word(pe, row + 12, 4, &name))
            return malformed(reader, "its table of imports is invalid");
        if (name == 0)
            break;
        const struct section *section = section_of(pe, name, &left);
        if (!section)
            return malformed(reader, "the name of a needed library is invalid");
        fault = add_needed(reader, section->offset + (name - section->address), left);
    }
    return fault;
}

/* ---- all of it ---- */

static enum object_fault read_notes(struct pe *pe)
{
    enum object_fault fault = OBJECT_GOOD;
    for (unsigned i = 0; i < pe->section_count && !fault; i++) {
        const struct section *section = &pe->sections[i];
        if (memcmp(section->name, ".hwnote", 8) == 0) /* its end in the file is padded */
            fault = read_manifest(pe->reader, section->offset,
                                  section->in_memory < section->in_file ? section->in_memory
                                                                        : section->in_file,
                                  4);
    }
    return fault;
}

enum object_fault pe_read(struct reader *reader)
{
    struct pe pe = { .reader = reader };
    enum object_fault fault = read_headers(&pe);
    if (!fault)
        fault = read_notes(&pe);
    if (!fault)
        fault = read_imports(&pe);
    return fault ? fault : find_entry(&pe);
}
