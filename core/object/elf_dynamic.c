/* SPDX-License-Identifier: MIT */
/* elf_dynamic.c - reads the dynamic section of an ELF object and the tables that it refers
 * to (strings, symbols, versions), and the notes, one of which is the manifest. */
#define _DEFAULT_SOURCE
#include "object/elf_dynamic.h"

#include <hw/plugin.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#if UINTPTR_MAX == UINT64_MAX
#define SYMBOL_TYPE(info) ELF64_ST_TYPE(info)
#define SYMBOL_BIND(info) ELF64_ST_BIND(info)
#else
#define SYMBOL_TYPE(info) ELF32_ST_TYPE(info)
#define SYMBOL_BIND(info) ELF32_ST_BIND(info)
#endif

#if defined(__i386__) || defined(__arm__)
#define PLT_TAG DT_REL
#else
#define PLT_TAG DT_RELA
#endif

#define MAX_DYNAMIC 65536
#define MAX_STRINGS (64u << 20)
#define MAX_SYMBOLS (1u << 20)
#define MAX_NOTE    (64u << 10)
#define MAX_ROWS    4096 /* in the tables of versions */
#define ENTRY       "hw_plugin_entry"

/* ---- the dynamic section ---- */

static void take_entry(struct reader *reader, const ElfW(Dyn) * entry)
{
    static const uint32_t far[] = {
#define X(name) DT_##name,
        FAR_TAGS(X)
#undef X
    };
    uint64_t tag = (uint64_t)entry->d_tag, value = entry->d_un.d_val;
    struct object *object = reader->object;
    uint64_t at = tag < NEAR_TAGS ? tag : TAGS;
    for (unsigned i = 0; i < sizeof far / sizeof *far; i++)
        if (tag == far[i])
            at = NEAR_TAGS + i;
    if (tag == DT_NEEDED && object->needed_count < MAX_NEEDED)
        reader->needed[object->needed_count++] = value;
    if (at < TAGS) {
        reader->tags[at] = value;
        reader->present |= UINT64_C(1) << at;
    }
}

/* The section must be writable if its segment says so: the system's loader relocates it. */
enum object_fault read_dynamic(struct reader *reader)
{
    const ElfW(Phdr) *segment = reader->segments;
    while (segment->p_type != PT_DYNAMIC)
        segment++;
    reader->dynamic = segment;
    uint64_t count = segment->p_filesz / sizeof(ElfW(Dyn)), offset;
    if (count == 0 || count > MAX_DYNAMIC ||
        !locate(reader, segment->p_vaddr, segment->p_filesz, &offset) ||
        offset != segment->p_offset ||
        !segment_of(reader, segment->p_vaddr, segment->p_filesz, segment->p_flags & PF_W))
        return malformed(reader, "its dynamic section lies outside its segments");
    ElfW(Dyn) *table = malloc((size_t)count * sizeof *table);
    if (!table)
        return no_memory(reader);
    bool ended = false;
    if (source_read(reader->source, offset, table, count * sizeof *table))
        for (uint64_t i = 0; i < count && !ended; i++) {
            ended = table[i].d_tag == DT_NULL;
            if (!ended)
                take_entry(reader, &table[i]);
        }
    free(table);
    if (!ended)
        return malformed(reader, "its dynamic section is not terminated");
    if (reader->tags[TAG_FLAGS_1] & DF_1_PIE)
        return because(reader, OBJECT_NOT_SHARED, "a program, not a shared object");
    return OBJECT_GOOD;
}

/* The system's loader trusts these tables. They must lie in the file, and their rows must
 * have the right size. */
enum object_fault check_tables(struct reader *reader)
{
    static const char relocations[] = "its relocations lie outside its segments";
    static const struct {
        uint8_t address, bytes, entry, size;
        const char *what;
    } rows[] = {
        { DT_RELA, DT_RELASZ, DT_RELAENT, sizeof(ElfW(Rela)), relocations },
        { DT_REL, DT_RELSZ, DT_RELENT, sizeof(ElfW(Rel)), relocations },
        { DT_RELR, DT_RELRSZ, DT_RELRENT, WORD, relocations },
        { DT_JMPREL, DT_PLTRELSZ, DT_PLTREL, PLT_TAG, relocations },
        /* DT_NULL is never present, so its value is 0. */
        { DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_NULL, 0,
          "its constructors lie outside its segments" },
        { DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_NULL, 0,
          "its destructors lie outside its segments" },
    };
    uint64_t offset;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has(reader, rows[i].address) &&
            (!has(reader, rows[i].bytes) || reader->tags[rows[i].entry] != rows[i].size ||
             !locate(reader, reader->tags[rows[i].address], reader->tags[rows[i].bytes],
                     &offset)))
            return malformed(reader, rows[i].what);
    if (has(reader, DT_PLTREL) != has(reader, DT_JMPREL))
        return malformed(reader, relocations);
    if ((has(reader, DT_INIT) && !executable(reader, reader->tags[DT_INIT])) ||
        (has(reader, DT_FINI) && !executable(reader, reader->tags[DT_FINI])) ||
        has(reader, DT_PREINIT_ARRAY))
        return malformed(reader, "its constructor or destructor lies outside its code");
    return OBJECT_GOOD;
}

static const char *string_at(const struct object *object, uint64_t offset)
{
    return offset < object->strings_size ? object->strings + offset : NULL;
}

static const char *path_at(const struct reader *reader, int tag)
{
    const char *path = string_at(reader->object, reader->tags[tag]);
    return has(reader, tag) && *path ? path : NULL;
}

enum object_fault read_strings(struct reader *reader)
{
    struct object *object = reader->object;
    uint64_t bytes = reader->tags[DT_STRSZ];
    if (!has(reader, DT_STRTAB) || bytes == 0 || bytes > MAX_STRINGS)
        return malformed(reader, "the size of its string table is invalid");
    object->strings = malloc((size_t)bytes);
    if (!object->strings)
        return no_memory(reader);
    object->strings_size = (size_t)bytes;
    if (!read_memory(reader, reader->tags[DT_STRTAB], object->strings, bytes) ||
        object->strings[bytes - 1] != '\0')
        return malformed(reader,
                         "its string table lies outside its segments or is not terminated");
    for (uint32_t i = 0; i < object->needed_count; i++)
        if (!(object->needed[i] = string_at(object, reader->needed[i])))
            return malformed(reader,
                             "the name of a needed library lies outside the string table");
    static const uint8_t names[] = { DT_SONAME, DT_RPATH, DT_RUNPATH };
    if (has(reader, TAG_AUXILIARY) || has(reader, TAG_FILTER))
        return malformed(reader, "it is a filter for another library");
    for (size_t i = 0; i < sizeof names; i++)
        if (!string_at(object, reader->tags[names[i]]))
            return malformed(reader, "its name or a path lies outside the string table");
    object->rpath = path_at(reader, DT_RPATH);
    object->runpath = path_at(reader, DT_RUNPATH);
    return OBJECT_GOOD;
}

/* ---- symbols ---- */

static enum object_fault bad_symbols(struct reader *reader)
{
    return malformed(reader, "its symbol table or its hash table is invalid");
}

/* The GNU hash table does not say how many symbols there are; the last one of the last
 * chain is the last of all. The system's loader divides by the number of buckets, masks
 * with the number of words and follows chains to their end, without any check. */
static enum object_fault count_by_chains(struct reader *reader)
{
    uint32_t header[4]; /* buckets, first symbol, words of the filter, shift */
    uint64_t offset, table = reader->tags[TAG_GNU_HASH];
    if (!read_memory(reader, table, header, sizeof header) || header[0] == 0 ||
        header[0] > MAX_SYMBOLS || header[2] == 0 || header[2] > MAX_SYMBOLS ||
        (header[2] & (header[2] - 1)) || header[3] >= 32)
        return bad_symbols(reader);
    uint64_t buckets = table + sizeof header + (uint64_t)header[2] * WORD;
    uint64_t chains = buckets + (uint64_t)header[0] * 4;
    uint32_t *bucket = calloc(header[0], 4), top = 0, link = 0;
    if (!bucket)
        return no_memory(reader);
    bool good = locate(reader, table, chains - table, &offset) &&
                read_memory(reader, buckets, bucket, (uint64_t)header[0] * 4);
    for (uint32_t i = 0; good && i < header[0]; i++) {
        good = bucket[i] == 0 || bucket[i] >= header[1];
        top = bucket[i] > top ? bucket[i] : top;
    }
    free(bucket);
    reader->symbol_count = header[1];
    for (uint64_t i = top; good && top && !(link & 1); i++) {
        good = i < MAX_SYMBOLS &&
               read_memory(reader, chains + (i - header[1]) * 4, &link, 4);
        reader->symbol_count = i + 1;
    }
    return good ? OBJECT_GOOD : bad_symbols(reader);
}

/* The older hash table has the number of symbols. Its chains are linked lists: each must
 * end, and together they contain each symbol at most once. */
static enum object_fault count_by_table(struct reader *reader)
{
    uint32_t header[2]; /* buckets; links, one for each symbol */
    uint64_t table = reader->tags[DT_HASH], steps = 0;
    if (!read_memory(reader, table, header, sizeof header) || header[0] == 0 ||
        header[0] > MAX_SYMBOLS || header[1] > MAX_SYMBOLS)
        return bad_symbols(reader);
    size_t links = (size_t)header[0] + header[1];
    uint32_t *link = malloc(links * 4);
    if (!link)
        return no_memory(reader);
    bool good = read_memory(reader, table + sizeof header, link, links * 4);
    for (uint32_t i = 0; good && i < header[0]; i++)
        for (uint32_t at = link[i]; at && good; at = good ? link[header[0] + at] : 0)
            good = at < header[1] && ++steps < header[1];
    free(link);
    reader->symbol_count = header[1];
    return good ? OBJECT_GOOD : bad_symbols(reader);
}

/* If there are two tables, the system's loader uses the GNU one. */
static enum object_fault count_symbols(struct reader *reader)
{
    enum object_fault fault = has(reader, DT_HASH) ? count_by_table(reader) : OBJECT_GOOD;
    if (fault)
        return fault;
    if (has(reader, TAG_GNU_HASH))
        return count_by_chains(reader);
    return has(reader, DT_HASH) ? OBJECT_GOOD : bad_symbols(reader);
}

static enum object_fault check_entry(struct reader *reader, const ElfW(Sym) * symbol)
{
    unsigned type = SYMBOL_TYPE(symbol->st_info), bind = SYMBOL_BIND(symbol->st_info);
    const char *what = !is_defined(symbol)  ? "is undefined"
                       : type != STT_FUNC   ? "is not a function"
                       : bind == STB_WEAK   ? "is weak, so another library could replace it"
                       : bind != STB_GLOBAL ? "is local"
                       : !executable(reader, symbol->st_value) ? "lies outside the code"
                                                               : NULL;
    if (what)
        return because(reader, OBJECT_BAD_ENTRY, "its %s %s", ENTRY, what);
    return OBJECT_GOOD;
}

/* The system's loader takes an undefined symbol for a definition if it has a value or is
 * thread-local. It calls a resolver (STT_GNU_IFUNC) when it meets one. The symbols without
 * a section that linkers write are names of versions. */
static bool symbol_good(const struct reader *reader, const ElfW(Sym) * symbol)
{
    unsigned type = SYMBOL_TYPE(symbol->st_info);
    if (!string_at(reader->object, symbol->st_name))
        return false;
    if (symbol->st_shndx == SHN_UNDEF)
        return symbol->st_value == 0 && (type != STT_TLS || has(reader, TAG_GNU_HASH));
    if (!is_defined(symbol))
        return type == STT_OBJECT;
    return type != STT_GNU_IFUNC || executable(reader, symbol->st_value);
}

enum object_fault read_symbols(struct reader *reader)
{
    uint64_t offset;
    if (!has(reader, DT_SYMTAB) || reader->tags[DT_SYMENT] != sizeof(ElfW(Sym)))
        return bad_symbols(reader);
    enum object_fault fault = count_symbols(reader);
    if (fault)
        return fault;
    uint64_t bytes = reader->symbol_count * sizeof(ElfW(Sym));
    if (!locate(reader, reader->tags[DT_SYMTAB], bytes, &offset))
        return bad_symbols(reader);
    reader->symbols = malloc(bytes ? (size_t)bytes : 1);
    if (!reader->symbols)
        return no_memory(reader);
    return source_read(reader->source, offset, reader->symbols, bytes)
               ? OBJECT_GOOD
               : truncated(reader, "symbol table");
}

enum object_fault find_entry(struct reader *reader)
{
    for (uint64_t i = 0; i < reader->symbol_count; i++) {
        const ElfW(Sym) *symbol = &reader->symbols[i];
        const char *name = string_at(reader->object, symbol->st_name);
        if (name && strcmp(name, ENTRY) == 0)
            return check_entry(reader, symbol);
    }
    return because(reader, OBJECT_NO_ENTRY, "not a plugin: it exports no %s", ENTRY);
}

enum object_fault check_symbols(struct reader *reader)
{
    for (uint64_t i = 0; i < reader->symbol_count; i++)
        if (!symbol_good(reader, &reader->symbols[i]))
            return malformed(reader, "a symbol has an invalid name or address");
    return OBJECT_GOOD;
}

/* ---- versions ---- */

/* The system's loader follows these lists to their end and ignores their counts. It assumes
 * that every library with required versions is also a needed library. */
struct versions {
    struct reader *reader;
    unsigned rows;    /* read so far */
    unsigned highest; /* the highest number of a version */
};

static enum object_fault bad_versions(struct reader *reader)
{
    return malformed(reader, "its tables of symbol versions are invalid");
}

static const char *version_name(struct versions *versions, uint64_t offset, unsigned number)
{
    number &= 0x7fff;
    versions->highest = number > versions->highest ? number : versions->highest;
    return versions->rows++ < MAX_ROWS ? string_at(versions->reader->object, offset) : NULL;
}

static bool is_needed(const struct object *object, const char *library)
{
    if (!library || strnlen(library, PATH_MAX) == PATH_MAX)
        return false;
    for (uint32_t i = 0; i < object->needed_count; i++)
        if (strcmp(object->needed[i], library) == 0)
            return true;
    return false;
}

static bool read_versions_of(struct versions *versions, uint64_t address)
{
    struct object *object = versions->reader->object;
    ElfW(Vernaux) row;
    do {
        if (!read_memory(versions->reader, address, &row, sizeof row))
            return false;
        const char *name = version_name(versions, row.vna_name, row.vna_other);
        if (!name)
            return false;
        if (object->version_count < MAX_VERSIONS)
            object->versions[object->version_count++] = name;
        address += row.vna_next;
    } while (row.vna_next);
    return true;
}

static bool read_needed_versions(struct versions *versions)
{
    uint64_t address = versions->reader->tags[TAG_VERNEED];
    ElfW(Verneed) row;
    do {
        if (!read_memory(versions->reader, address, &row, sizeof row) ||
            !is_needed(versions->reader->object, version_name(versions, row.vn_file, 0)) ||
            !read_versions_of(versions, address + row.vn_aux))
            return false;
        address += row.vn_next;
    } while (row.vn_next);
    return true;
}

static bool read_own_versions(struct versions *versions)
{
    uint64_t address = versions->reader->tags[TAG_VERDEF];
    ElfW(Verdef) row;
    ElfW(Verdaux) name;
    do {
        if (!read_memory(versions->reader, address, &row, sizeof row) ||
            !read_memory(versions->reader, address + row.vd_aux, &name, sizeof name) ||
            !version_name(versions, name.vda_name, row.vd_ndx))
            return false;
        address += row.vd_next;
    } while (row.vd_next);
    return true;
}

/* Each symbol has the number of a version, which must exist. */
static enum object_fault check_numbers(const struct versions *versions, uint16_t *numbers)
{
    struct reader *reader = versions->reader;
    const uint64_t count = reader->symbol_count;
    if (!has(reader, TAG_VERSYM))
        return versions->highest == 0 ? OBJECT_GOOD : bad_versions(reader);
    if (!read_memory(reader, reader->tags[TAG_VERSYM], numbers, count * sizeof *numbers))
        return bad_versions(reader);
    for (uint64_t i = 0; i < count; i++)
        if ((numbers[i] & 0x7fff) > versions->highest)
            return bad_versions(reader);
    return OBJECT_GOOD;
}

/* A number above VER_NDX_GLOBAL ties a symbol to one needed library. */
static void list_undefined(struct reader *reader, const uint16_t *numbers)
{
    struct object *object = reader->object;
    for (uint64_t i = 0; i < reader->symbol_count; i++) {
        const ElfW(Sym) *symbol = &reader->symbols[i];
        if (symbol->st_shndx == SHN_UNDEF && SYMBOL_BIND(symbol->st_info) == STB_GLOBAL &&
            (numbers[i] & 0x7fff) <= VER_NDX_GLOBAL)
            object->undefined[object->undefined_count++] = string_at(object,
                                                                     symbol->st_name);
    }
}

enum object_fault read_versions(struct reader *reader)
{
    struct versions versions = { .reader = reader };
    const size_t count = (size_t)reader->symbol_count;
    if ((has(reader, TAG_VERNEED) && !read_needed_versions(&versions)) ||
        (has(reader, TAG_VERDEF) && !read_own_versions(&versions)))
        return bad_versions(reader);
    uint16_t *numbers = calloc(count + 1, sizeof *numbers);
    reader->object->undefined = calloc(count + 1, sizeof *reader->object->undefined);
    enum object_fault fault = numbers && reader->object->undefined
                                  ? check_numbers(&versions, numbers)
                                  : no_memory(reader);
    if (!fault)
        list_undefined(reader, numbers);
    free(numbers);
    return fault;
}

/* ---- notes ---- */

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

/* The manifest is the note with the name "hw". Property notes are in two segments, of which
 * PT_GNU_PROPERTY is the one that the system's loader trusts. */
static enum object_fault scan_notes(struct reader *reader, const char *notes,
                                    uint64_t bytes, uint64_t align, bool manifest)
{
    uint64_t at = 0;
    struct object *object = reader->object;
    while (at <= bytes && bytes - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) row;
        memcpy(&row, notes + at, sizeof row);
        uint64_t name = at + sizeof row, text = round_up(name + row.n_namesz, align);
        if (text > bytes || row.n_descsz > bytes - text)
            return malformed(reader, "a note reaches past the end of its segment");
        at = round_up(text + row.n_descsz, align);
        if (!manifest || row.n_type != HW_NOTE_TYPE || row.n_namesz < 3 ||
            row.n_namesz > 4 || memcmp(notes + name, "hw", 3) != 0)
            continue;
        if (object->manifest)
            return because(reader, OBJECT_BAD_MANIFEST, "it has two manifests");
        object->manifest = malloc(row.n_descsz ? row.n_descsz : 1);
        if (!object->manifest)
            return no_memory(reader);
        memcpy(object->manifest, notes + text, row.n_descsz);
        object->manifest_bytes = row.n_descsz;
    }
    return OBJECT_GOOD;
}

enum object_fault read_notes(struct reader *reader)
{
    enum object_fault fault = OBJECT_GOOD;
    for (unsigned i = 0; i < reader->header.e_phnum && !fault; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        if (segment->p_type != PT_NOTE && segment->p_type != PT_GNU_PROPERTY)
            continue;
        if (!in_file(reader->source, segment->p_offset, segment->p_filesz))
            return truncated(reader, "notes");
        if (segment->p_filesz > MAX_NOTE)
            continue; /* not a manifest */
        char *notes = malloc(segment->p_filesz ? (size_t)segment->p_filesz : 1);
        if (!notes)
            return no_memory(reader);
        if (!source_read(reader->source, segment->p_offset, notes, segment->p_filesz))
            fault = truncated(reader, "notes");
        else
            fault = scan_notes(reader, notes, segment->p_filesz,
                               segment->p_align == 8 ? 8 : 4, segment->p_type == PT_NOTE);
        free(notes);
    }
    return fault;
}
