/* SPDX-License-Identifier: MIT */
/* elf_symbols.c - the symbols of an ELF object and their versions. */
#include "probe/object/elf.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SYMBOLS (1u << 20)
#define MAX_ROWS    4096 /* in the tables of versions */

enum {
    STT_OBJECT = 1,
    STT_FUNC = 2,
    STT_TLS = 6,
    STT_GNU_IFUNC = 10,
    STB_LOCAL = 0,
    STB_GLOBAL = 1,
    STB_WEAK = 2
};
enum { SHN_UNDEF = 0, SHN_LORESERVE = 0xff00, VER_NDX_GLOBAL = 1 };

struct symbol {
    uint64_t name, value, section;
    unsigned type, bind;
};

static struct symbol symbol_at(const struct elf *elf, uint64_t index)
{
    const struct reader *reader = elf->reader;
    const uint8_t *row = elf->symbols + index * elf->layout->symbol;
    const bool wide = elf->layout->word == 8;
    const unsigned info = row[wide ? 4 : 12];
    return (
        struct symbol){ .name = number(reader, row, 4),
                        .value = number(reader, row + (wide ? 8 : 4), elf->layout->word),
                        .section = number(reader, row + (wide ? 6 : 14), 2),
                        .type = info & 15,
                        .bind = info >> 4 };
}

/* ---- how many there are ---- */

static enum object_fault bad_symbols(struct elf *elf)
{
    return malformed(elf->reader, "its symbol table or its hash table is invalid");
}

/* To look up a name, the system's loader divides by the number of buckets, masks with the number of
 * words and follows chains to their end, all without checks. The application looks up other names
 * than hw-probe, so hw-probe may miss the damage. */

/* The GNU hash table does not state the number of symbols. The end of the last chain is the last
 * symbol. */
static enum object_fault count_by_chains(struct elf *elf)
{
    uint32_t buckets, first, filter, shift, top = 0, link = 0;
    const uint64_t table = elf->tags[TAG_GNU_HASH];
    if (!elf_word(elf, table, &buckets) || !elf_word(elf, table + 4, &first) ||
        !elf_word(elf, table + 8, &filter) || !elf_word(elf, table + 12, &shift) ||
        buckets == 0 || buckets > MAX_SYMBOLS || filter == 0 || filter > MAX_SYMBOLS ||
        (filter & (filter - 1)) || shift >= 32)
        return bad_symbols(elf);
    const uint64_t start = table + 16 + (uint64_t)filter * elf->layout->word;
    uint8_t *rows = malloc((size_t)buckets * 4);
    if (!rows)
        return no_memory(elf->reader);
    bool good = elf_memory(elf, start, rows, (uint64_t)buckets * 4);
    for (uint32_t i = 0; good && i < buckets; i++) {
        const uint32_t bucket = (uint32_t)number(elf->reader, rows + i * 4, 4);
        good = bucket == 0 || bucket >= first;
        top = bucket > top ? bucket : top;
    }
    free(rows);
    const uint64_t chains = start + (uint64_t)buckets * 4;
    elf->symbol_count = first;
    good = good && first <= MAX_SYMBOLS;
    for (uint64_t i = top; good && top && !(link & 1); i++) {
        good = i < MAX_SYMBOLS && elf_word(elf, chains + (i - first) * 4, &link);
        elf->symbol_count = i + 1;
    }
    return good ? OBJECT_GOOD : bad_symbols(elf);
}

/* The older hash table has a link for each symbol. Its chains are linked lists: each must end,
 * and together they contain each symbol at most once. */
static enum object_fault count_by_links(struct elf *elf)
{
    uint32_t buckets, links, steps = 0;
    const uint64_t table = elf->tags[TAG_HASH];
    if (!elf_word(elf, table, &buckets) || !elf_word(elf, table + 4, &links) ||
        buckets == 0 || buckets > MAX_SYMBOLS || links > MAX_SYMBOLS)
        return bad_symbols(elf);
    const size_t bytes = ((size_t)buckets + links) * 4;
    uint8_t *rows = malloc(bytes);
    if (!rows)
        return no_memory(elf->reader);
    bool good = elf_memory(elf, table + 8, rows, bytes);
    for (uint32_t i = 0; good && i < buckets; i++)
        for (uint64_t at = number(elf->reader, rows + i * 4, 4); at && good;) {
            good = at < links && ++steps < links;
            at = good ? number(elf->reader, rows + (buckets + at) * 4, 4) : 0;
        }
    free(rows);
    elf->symbol_count = links;
    return good ? OBJECT_GOOD : bad_symbols(elf);
}

enum object_fault elf_read_symbols(struct elf *elf)
{
    if (!elf_has(elf, TAG_SYMTAB) || elf->tags[TAG_SYMENT] != elf->layout->symbol ||
        !(elf_has(elf, TAG_HASH) || elf_has(elf, TAG_GNU_HASH)))
        return bad_symbols(elf);
    /* If there are two tables, the system's loader uses the GNU one. */
    enum object_fault fault = elf_has(elf, TAG_HASH) ? count_by_links(elf) : OBJECT_GOOD;
    if (!fault && elf_has(elf, TAG_GNU_HASH))
        fault = count_by_chains(elf);
    if (fault)
        return fault;
    const uint64_t bytes = elf->symbol_count * elf->layout->symbol;
    elf->symbols = malloc(bytes ? (size_t)bytes : 1);
    if (!elf->symbols)
        return no_memory(elf->reader);
    return elf_memory(elf, elf->tags[TAG_SYMTAB], elf->symbols, bytes) ? OBJECT_GOOD
                                                                       : bad_symbols(elf);
}

/* ---- the entry ---- */

static enum object_fault check_entry(struct elf *elf, const struct symbol *symbol)
{
    const char *what = symbol->section == SHN_UNDEF || symbol->section >= SHN_LORESERVE
                           ? "is undefined"
                       : symbol->type != STT_FUNC ? "is not a function"
                       : symbol->bind == STB_WEAK
                           ? "is weak, so another library could replace it"
                       : symbol->bind != STB_GLOBAL          ? "is local"
                       : !elf_executable(elf, symbol->value) ? "lies outside the code"
                                                             : NULL;
    if (what)
        return because(elf->reader, OBJECT_BAD_ENTRY, "its " ENTRY " %s", what);
    return OBJECT_GOOD;
}

enum object_fault elf_find_entry(struct elf *elf)
{
    for (uint64_t i = 0; i < elf->symbol_count; i++) {
        const struct symbol symbol = symbol_at(elf, i);
        const char *name = elf_string(elf, symbol.name);
        if (name && strcmp(name, ENTRY) == 0)
            return check_entry(elf, &symbol);
    }
    return because(elf->reader, OBJECT_NO_ENTRY, "not a plugin: it exports no " ENTRY);
}

/* The system's loader treats an undefined symbol as defined if it has a value or is thread-local.
 * It calls each resolver (STT_GNU_IFUNC) that it finds. Linkers write symbols without a section
 * only for names of versions. */
static bool symbol_good(const struct elf *elf, const struct symbol *symbol)
{
    if (!elf_string(elf, symbol->name))
        return false;
    if (symbol->section == SHN_UNDEF)
        return symbol->value == 0 &&
               (symbol->type != STT_TLS || elf_has(elf, TAG_GNU_HASH));
    if (symbol->section >= SHN_LORESERVE)
        return symbol->type == STT_OBJECT;
    return symbol->type != STT_GNU_IFUNC || elf_executable(elf, symbol->value);
}

/* ---- versions ---- */

/* The system's loader follows these lists to their end and ignores their counts. It uses the number
 * of a symbol's version as an index without a check. Each row has the distance to the next row. */
static const char *version_name(struct elf *elf, uint32_t offset, uint32_t index)
{
    index &= 0x7fff;
    elf->highest_version = index > elf->highest_version ? index : elf->highest_version;
    return elf->version_rows++ < MAX_ROWS ? elf_string(elf, offset) : NULL;
}

static bool read_versions_of(struct elf *elf, uint64_t row)
{
    struct object *object = elf->reader->object;
    uint32_t flags, offset, next;
    do {
        if (!elf_half(elf, row + 6, &flags) || !elf_word(elf, row + 8, &offset) ||
            !elf_word(elf, row + 12, &next))
            return false;
        const char *name = version_name(elf, offset, flags);
        if (!name)
            return false;
        if (object->version_count < MAX_VERSIONS)
            object->versions[object->version_count++] = name;
        row += next;
    } while (next);
    return true;
}

static bool read_needed_versions(struct elf *elf)
{
    uint64_t row = elf->tags[TAG_VERNEED];
    uint32_t file, first, next;
    do {
        if (!elf_word(elf, row + 4, &file) || !elf_word(elf, row + 8, &first) ||
            !elf_word(elf, row + 12, &next) || !version_name(elf, file, 0) ||
            !read_versions_of(elf, row + first))
            return false;
        row += next;
    } while (next);
    return true;
}

static bool read_own_versions(struct elf *elf)
{
    uint64_t row = elf->tags[TAG_VERDEF];
    uint32_t index, first, next, offset;
    do {
        if (!elf_half(elf, row + 4, &index) || !elf_word(elf, row + 12, &first) ||
            !elf_word(elf, row + 16, &next) || !elf_word(elf, row + first, &offset) ||
            !version_name(elf, offset, index))
            return false;
        row += next;
    } while (next);
    return true;
}

/* A number above VER_NDX_GLOBAL ties a symbol to one needed library. */
static bool list_undefined(struct elf *elf, const uint8_t *numbers)
{
    struct object *object = elf->reader->object;
    const unsigned highest = elf->highest_version;
    for (uint64_t i = 0; i < elf->symbol_count; i++) {
        const struct symbol symbol = symbol_at(elf, i);
        const uint64_t version = number(elf->reader, numbers + i * 2, 2) & 0x7fff;
        if (!symbol_good(elf, &symbol) || version > highest)
            return false;
        if (symbol.section != SHN_UNDEF || symbol.bind != STB_GLOBAL ||
            version > VER_NDX_GLOBAL)
            continue;
        object->undefined[object->undefined_count++] = elf_string(elf, symbol.name);
    }
    return true;
}

enum object_fault elf_read_versions(struct elf *elf)
{
    struct object *object = elf->reader->object;
    const size_t count = (size_t)elf->symbol_count;
    uint8_t *numbers = calloc(count + 1, 2);
    object->undefined = calloc(count + 1, sizeof *object->undefined);
    if (!numbers || !object->undefined) {
        free(numbers);
        return no_memory(elf->reader);
    }
    const bool good = (!elf_has(elf, TAG_VERNEED) || read_needed_versions(elf)) &&
                      (!elf_has(elf, TAG_VERDEF) || read_own_versions(elf)) &&
                      (elf_has(elf, TAG_VERSYM)
                           ? elf_memory(elf, elf->tags[TAG_VERSYM], numbers, count * 2)
                           : elf->highest_version == 0) &&
                      list_undefined(elf, numbers);
    free(numbers);
    return good ? OBJECT_GOOD
                : malformed(elf->reader, "its symbols or their versions are invalid");
}
