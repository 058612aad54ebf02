/* SPDX-License-Identifier: MIT */
/* elf_dynamic.c - bounded reading of what the dynamic section of an ELF object leads to:
 * strings, symbols, versions; and of its notes, where the manifest is. */
#define _DEFAULT_SOURCE
#include "reader.h"

#include <stdlib.h>
#include <string.h>

#if UINTPTR_MAX == UINT64_MAX
#define SYMBOL_TYPE(info) ELF64_ST_TYPE(info)
#define SYMBOL_BIND(info) ELF64_ST_BIND(info)
#else
#define SYMBOL_TYPE(info) ELF32_ST_TYPE(info)
#define SYMBOL_BIND(info) ELF32_ST_BIND(info)
#endif

#define MAX_DYNAMIC 65536
#define MAX_STRINGS (64u << 20)
#define MAX_SYMBOLS (4u << 20)
#define MAX_NOTE    (64u << 10)
#define ENTRY       "hw_plugin_entry"

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

enum reason read_dynamic(struct reader *reader)
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
enum reason check_tables(struct reader *reader)
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
    return REASON_NONE;
}

static const char *string_at(const struct object *object, uint64_t offset)
{
    return offset < object->strings_size ? object->strings + offset : NULL;
}

enum reason read_strings(struct reader *reader)
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
 * chain is the last of all. The system's loader divides by the number of buckets, masks
 * with the number of words, and follows chains to their end, all without a look. */
static bool count_by_chains(const struct reader *reader, uint64_t *count)
{
    uint32_t header[4]; /* buckets, first symbol, words of the filter, shift */
    if (!read_memory(reader, reader->gnu_hash, header, sizeof header) || header[0] == 0 ||
        header[0] > MAX_SYMBOLS || header[2] == 0 || header[2] > MAX_SYMBOLS ||
        (header[2] & (header[2] - 1)))
        return false;
    uint64_t buckets = reader->gnu_hash + sizeof header +
                       (uint64_t)header[2] * sizeof(ElfW(Addr));
    uint64_t chains = buckets + (uint64_t)header[0] * 4;
    uint32_t *bucket = calloc(header[0], 4), top = 0, link = 0;
    bool good = bucket && read_memory(reader, buckets, bucket, (uint64_t)header[0] * 4);
    for (uint32_t i = 0; good && i < header[0]; i++) {
        good = bucket[i] == 0 || bucket[i] >= header[1];
        top = bucket[i] > top ? bucket[i] : top;
    }
    free(bucket);
    *count = header[1];
    for (uint64_t i = top; good && top && !(link & 1); i++) {
        good = i < MAX_SYMBOLS &&
               read_memory(reader, chains + (i - header[1]) * 4, &link, 4);
        *count = i + 1;
    }
    return good;
}

static bool count_by_table(const struct reader *reader, uint64_t *count)
{
    uint32_t header[2]; /* buckets, chains: as many as symbols */
    uint64_t offset;
    if (!read_memory(reader, reader->tags[DT_HASH], header, sizeof header) ||
        header[0] == 0)
        return false;
    *count = header[1];
    return header[1] <= MAX_SYMBOLS &&
           locate(reader, reader->tags[DT_HASH],
                  sizeof header + ((uint64_t)header[0] + header[1]) * 4, &offset);
}

/* Where there are two tables, the system's loader takes the GNU one. */
static bool count_symbols(const struct reader *reader, uint64_t *count)
{
    if (reader->tags[DT_HASH] && !count_by_table(reader, count))
        return false;
    if (reader->gnu_hash)
        return count_by_chains(reader, count);
    return reader->tags[DT_HASH] != 0;
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

enum reason find_entry(struct reader *reader)
{
    uint64_t count = 0, offset;
    if (!reader->tags[DT_SYMTAB] || reader->tags[DT_SYMENT] != sizeof(ElfW(Sym)) ||
        !count_symbols(reader, &count) ||
        (reader->versym && !locate(reader, reader->versym, count * 2, &offset)) ||
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
enum reason read_versions(struct reader *reader)
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

enum reason read_notes(struct reader *reader)
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
