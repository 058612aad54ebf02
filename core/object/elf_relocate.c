/* SPDX-License-Identifier: MIT */
/* elf_relocate.c - checks the relocations of an ELF object: their types, places and
 * symbols. And that everything that the system's loader calls (constructors, destructors,
 * resolvers) is code. */
#define _DEFAULT_SOURCE
#include "object/elf_relocate.h"

#include <stdlib.h>
#include <string.h>

#if UINTPTR_MAX == UINT64_MAX
#define TYPE_OF(info)   ELF64_R_TYPE(info)
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#else
#define TYPE_OF(info)   ELF32_R_TYPE(info)
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#endif

/* Relocations are not checked on other machines. */
#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))

#define MAX_RELOCATIONS (4u << 20)
#define PLACES          (8 * WORD - 1) /* to which one packed word can refer */

/* What a relocation writes. */
enum kind {
    UNKNOWN,
    NOTHING,
    RELATIVE, /* an address in the object */
    RESOLVED, /* the result of a function in the object */
    SYMBOL,   /* the address of a symbol plus a number */
    SLOT,     /* the address of a symbol */
    THREAD,   /* a place in thread-local memory */
};

/* All types that linkers write into shared objects of position-independent code. */
static const struct {
    uint16_t type;
    uint8_t bytes, kind;
} types[] = {
    { 0, 0, NOTHING },
#if defined(__x86_64__)
    { R_X86_64_64, 8, SYMBOL },
    { R_X86_64_GLOB_DAT, 8, SLOT },
    { R_X86_64_JUMP_SLOT, 8, SLOT },
    { R_X86_64_RELATIVE, 8, RELATIVE },
    { R_X86_64_DTPMOD64, 8, THREAD },
    { R_X86_64_DTPOFF64, 8, THREAD },
    { R_X86_64_TPOFF64, 8, THREAD },
    { R_X86_64_TLSDESC, 16, THREAD },
    { R_X86_64_IRELATIVE, 8, RESOLVED },
#else
    { R_AARCH64_ABS64, 8, SYMBOL },
    { R_AARCH64_GLOB_DAT, 8, SLOT },
    { R_AARCH64_JUMP_SLOT, 8, SLOT },
    { R_AARCH64_RELATIVE, 8, RELATIVE },
    { R_AARCH64_TLS_DTPMOD, 8, THREAD },
    { R_AARCH64_TLS_DTPREL, 8, THREAD },
    { R_AARCH64_TLS_TPREL, 8, THREAD },
    { R_AARCH64_TLSDESC, 16, THREAD },
    { R_AARCH64_IRELATIVE, 8, RESOLVED },
#endif
};

/* ---- constructors and destructors ---- */

static size_t length_of(const struct reader *reader, int tag)
{
    return (size_t)(reader->tags[tag] / WORD);
}

/* The mark of the constructor or destructor at the place; NULL if there is none. A place
 * that overlaps one only in part has the last mark, which is always set. */
static uint8_t *called_at(const struct reader *reader, uint64_t place, unsigned bytes)
{
    uint8_t *mark = reader->called;
    size_t first = length_of(reader, DT_INIT_ARRAYSZ);
    for (int i = 0; i < 2 && mark; i++) {
        uint64_t start = reader->tags[i ? DT_FINI_ARRAY : DT_INIT_ARRAY];
        size_t count = i ? length_of(reader, DT_FINI_ARRAYSZ) : first;
        if (place < start + count * WORD && start < place + bytes)
            return place < start || (place - start) % WORD
                       ? reader->called + first + length_of(reader, DT_FINI_ARRAYSZ)
                       : mark + (place - start) / WORD;
        mark += count;
    }
    return NULL;
}

/* Each must get its address from exactly one relocation. */
static bool list_called(struct reader *reader)
{
    size_t count = length_of(reader, DT_INIT_ARRAYSZ) + length_of(reader, DT_FINI_ARRAYSZ);
    if (count == 0)
        return true;
    reader->called = calloc(count + 1, 1);
    if (reader->called)
        reader->called[count] = 1;
    return reader->called != NULL;
}

static bool all_code(const struct reader *reader)
{
    size_t count = length_of(reader, DT_INIT_ARRAYSZ) + length_of(reader, DT_FINI_ARRAYSZ);
    return !reader->called || !memchr(reader->called, 0, count);
}

/* ---- relocations ---- */

/* The dynamic section belongs to the system's loader. */
static bool may_write(const struct reader *reader, uint64_t place, unsigned bytes)
{
    return segment_of(reader, place, bytes, PF_W) &&
           (place + bytes <= reader->dynamic->p_vaddr ||
            place >= reader->dynamic->p_vaddr + reader->dynamic->p_filesz);
}

static bool stays_home(const ElfW(Sym) * symbol)
{
    unsigned visibility = symbol->st_other & 3;
    return symbol->st_info >> 4 == STB_LOCAL || visibility == STV_HIDDEN ||
           visibility == STV_INTERNAL;
}

/* Sets `code` if the value that the relocation writes may be called. */
static bool check_value(const struct reader *reader, const ElfW(Rela) * row, enum kind kind,
                        bool *code)
{
    uint64_t index = SYMBOL_OF(row->r_info), addend = (uint64_t)row->r_addend;
    if (index >= reader->symbol_count)
        return false;
    const ElfW(Sym) *symbol = &reader->symbols[index];
    bool defined = is_defined(symbol);
    switch (kind) {
    case NOTHING:
        return index == 0;
    case RELATIVE:
        *code = executable(reader, addend);
        return index == 0;
    case RESOLVED:
        return index == 0 && executable(reader, addend);
    case SLOT:
        return index != 0 && addend == 0 && (defined || !stays_home(symbol));
    case SYMBOL:
        *code = index && !defined ? symbol->st_info >> 4 == STB_GLOBAL
                                  : executable(reader, symbol->st_value + addend);
        return index == 0 || defined || !stays_home(symbol);
    case THREAD: /* gold refers to the section of a local variable */
        return index == 0 || (defined && (symbol->st_info & 15) == STT_SECTION)
                   ? reader->tls != NULL
                   : (symbol->st_info & 15) == STT_TLS &&
                         (defined ? reader->tls != NULL : !stays_home(symbol));
    default:
        return false;
    }
}

/* The system's loader takes the first `relative` rows for relative without a check. */
static bool check_relocation(const struct reader *reader, const char *bytes_of_row,
                             uint64_t *relative)
{
    enum kind kind = UNKNOWN;
    unsigned bytes = 0;
    bool code = false;
    ElfW(Rela) row;
    memcpy(&row, bytes_of_row, sizeof row);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == TYPE_OF(row.r_info)) {
            kind = types[i].kind;
            bytes = types[i].bytes;
        }
    if (!check_value(reader, &row, kind, &code) || (*relative && kind != RELATIVE))
        return false;
    *relative -= *relative != 0;
    if (kind == NOTHING)
        return true;
    uint8_t *mark = called_at(reader, row.r_offset, bytes);
    return may_write(reader, row.r_offset, bytes) && (!mark || (code && !(*mark)++));
}

/* A place that already contains an address in the object. */
static bool check_place(const struct reader *reader, uint64_t place)
{
    ElfW(Addr) value;
    uint8_t *mark = called_at(reader, place, WORD);
    return may_write(reader, place, WORD) &&
           (!mark || (read_memory(reader, place, &value, WORD) &&
                      executable(reader, value) && !(*mark)++));
}

/* Packed relative relocations: an even word is a place; the bits of an odd one, but the
 * lowest, say which of the places from `next` follow. */
static bool check_packed(const struct reader *reader, const char *bytes_of_row,
                         uint64_t *next)
{
    ElfW(Addr) word;
    memcpy(&word, bytes_of_row, sizeof word);
    if (!(word & 1)) {
        *next = (uint64_t)word + WORD;
        return check_place(reader, word);
    }
    for (uint64_t place = *next; word >>= 1; place += WORD)
        if ((word & 1) && !check_place(reader, place))
            return false;
    *next += PLACES * WORD;
    return true;
}

/* A table of relocations, if the object has it. A row has `row` bytes and stands for at
 * most `places` places. */
struct table {
    uint8_t address, bytes, row, places;
    bool (*check)(const struct reader *reader, const char *row, uint64_t *state);
};

static enum object_fault check_table(struct reader *reader, const struct table *table,
                                     uint64_t state)
{
    uint64_t at = reader->tags[table->address];
    uint64_t left = has(reader, table->address) ? reader->tags[table->bytes] : 0;
    uint64_t rows = left / table->row;
    reader->places += rows *
                      table->places; /* cannot overflow: the table lies in the file */
    if (reader->places > MAX_RELOCATIONS)
        return malformed(reader, "it has too many relocations");
    bool good = left % table->row == 0 && state <= rows;
    while (good && left) {
        size_t part = sizeof reader->block / table->row * table->row;
        part = left < part ? (size_t)left : part;
        good = read_memory(reader, at, reader->block, part);
        for (size_t i = 0; i < part && good; i += table->row)
            good = table->check(reader, reader->block + i, &state);
        at += part;
        left -= part;
    }
    return good ? OBJECT_GOOD
                : malformed(reader, "a relocation has an invalid type, place or symbol");
}

enum object_fault check_relocations(struct reader *reader)
{
    static const struct table tables[] = {
        { DT_RELA, DT_RELASZ, sizeof(ElfW(Rela)), 1, check_relocation },
        { DT_JMPREL, DT_PLTRELSZ, sizeof(ElfW(Rela)), 1, check_relocation },
        { DT_RELR, DT_RELRSZ, WORD, PLACES, check_packed },
    };
    if (!list_called(reader))
        return no_memory(reader);
    if (has(reader, DT_REL))
        return malformed(reader, "a relocation has an invalid type, place or symbol");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        uint64_t relative = i == 0 ? reader->tags[TAG_RELACOUNT] : 0;
        enum object_fault fault = check_table(reader, &tables[i], relative);
        if (fault)
            return fault;
    }
    if (!all_code(reader))
        return malformed(reader, "a constructor or destructor lies outside its code");
    return OBJECT_GOOD;
}

#else

enum object_fault check_relocations(struct reader *reader)
{
    (void)reader;
    return OBJECT_GOOD;
}

#endif
