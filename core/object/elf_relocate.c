/* SPDX-License-Identifier: MIT */
/* elf_relocate.c - whether the relocations of an ELF object can be carried out: what they
 * write lies where the object may write, and what they name is there. And whether all that
 * the system's loader will call (constructors, destructors, resolvers) is code. */
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

/* What a relocation puts into its place. */
enum kind {
    NOTHING,
    RELATIVE, /* an address of the object */
    RESOLVED, /* what a function of the object answers */
    SYMBOL,   /* an address or a number of the symbol */
    SLOT,     /* the symbol's address, nothing added */
    THREAD,   /* of a thread's memory */
    UNKNOWN
};

static const struct {
    uint16_t type;
    uint8_t bytes, kind;
} types[] = {
    { 0, 0, NOTHING },
#if defined(__x86_64__)
    { R_X86_64_64, 8, SYMBOL },
    { R_X86_64_PC32, 4, SYMBOL },
    { R_X86_64_GLOB_DAT, WORD, SLOT },
    { R_X86_64_JUMP_SLOT, WORD, SLOT },
    { R_X86_64_RELATIVE, WORD, RELATIVE },
    { R_X86_64_32, 4, SYMBOL },
    { R_X86_64_DTPMOD64, 8, THREAD },
    { R_X86_64_DTPOFF64, 8, THREAD },
    { R_X86_64_TPOFF64, 8, THREAD },
    { R_X86_64_SIZE32, 4, SYMBOL },
    { R_X86_64_SIZE64, 8, SYMBOL },
    { R_X86_64_TLSDESC, 2 * WORD, THREAD },
    { R_X86_64_IRELATIVE, WORD, RESOLVED },
#elif defined(__aarch64__)
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

/* Of other machines the types are not known here; then only places and symbols are looked
 * at. */
#if defined(__x86_64__) || defined(__aarch64__)
#define TYPES_KNOWN 1
#else
#define TYPES_KNOWN 0
#endif

/* ---- what will be called ---- */

static size_t length_of(const struct reader *reader, int tag)
{
    return (size_t)(reader->tags[tag] / WORD);
}

/* The mark of the constructor or destructor at the place; NULL: there is none. The last
 * mark, which is set, stands for a place that is half one. */
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

/* Each gets its address from one relocation; what none writes to is called as it is. */
static bool list_called(struct reader *reader)
{
    size_t count = length_of(reader, DT_INIT_ARRAYSZ) + length_of(reader, DT_FINI_ARRAYSZ);
    if (!TYPES_KNOWN || count == 0)
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

/* The dynamic section is the system's loader's own. */
static bool may_write(const struct reader *reader, uint64_t place, unsigned bytes)
{
    bool text = has(reader, DT_TEXTREL) || (reader->tags[DT_FLAGS] & DF_TEXTREL);
    return segment_of(reader, place, bytes, text ? 0 : PF_W) &&
           (place + bytes <= reader->dynamic->p_vaddr ||
            place >= reader->dynamic->p_vaddr + reader->dynamic->p_filesz);
}

static bool stays_home(const ElfW(Sym) * symbol)
{
    unsigned visibility = symbol->st_other & 3;
    return symbol->st_info >> 4 == STB_LOCAL || visibility == STV_HIDDEN ||
           visibility == STV_INTERNAL;
}

/* `code` is whether what it puts into its place may be called. */
static bool check_value(const struct reader *reader, const ElfW(Rela) * row, enum kind kind,
                        bool *code)
{
    uint64_t index = SYMBOL_OF(row->r_info), addend = (uint64_t)row->r_addend;
    if (index >= reader->symbol_count)
        return false;
    const ElfW(Sym) *symbol = &reader->symbols[index];
    bool defined = symbol->st_shndx != SHN_UNDEF;
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
    case THREAD: /* gold names the section of a variable that is nobody else's */
        return index == 0 || (defined && (symbol->st_info & 15) == STT_SECTION)
                   ? reader->tls != NULL
                   : (symbol->st_info & 15) == STT_TLS &&
                         (defined ? reader->tls != NULL : !stays_home(symbol));
    default:
        return !TYPES_KNOWN;
    }
}

static bool check_relocation(const struct reader *reader, const ElfW(Rela) * row,
                             bool relative)
{
    enum kind kind = UNKNOWN;
    unsigned bytes = WORD;
    bool code = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == TYPE_OF(row->r_info)) {
            kind = types[i].kind;
            bytes = types[i].bytes;
        }
    if (!check_value(reader, row, kind, &code) ||
        (relative && TYPES_KNOWN && kind != RELATIVE))
        return false;
    if (kind == NOTHING)
        return true;
    uint8_t *mark = called_at(reader, row->r_offset, bytes);
    return may_write(reader, row->r_offset, bytes) && (!mark || (code && !(*mark)++));
}

/* A table of rows of `size` bytes. The first `relative` ones are taken for relative unseen. */
static bool check_rows(const struct reader *reader, int address, int bytes, size_t size,
                       uint64_t relative)
{
    char rows[4096];
    uint64_t at = reader->tags[address],
             left = has(reader, address) ? reader->tags[bytes] : 0;
    if (left % size || relative > left / size)
        return false;
    while (left) {
        size_t part = sizeof rows / size * size;
        part = left < part ? (size_t)left : part;
        if (!read_memory(reader, at, rows, part))
            return false;
        for (size_t i = 0; i < part; i += size) {
            ElfW(Rela) row = { 0 };
            memcpy(&row, rows + i, size);
            if (!check_relocation(reader, &row, relative != 0))
                return false;
            relative -= relative != 0;
        }
        at += part;
        left -= part;
    }
    return true;
}

/* A place that holds an address of the object already. */
static bool check_place(const struct reader *reader, uint64_t place)
{
    ElfW(Addr) value;
    uint8_t *mark = called_at(reader, place, WORD);
    return may_write(reader, place, WORD) &&
           (!mark || (read_memory(reader, place, &value, WORD) &&
                      executable(reader, value) && !(*mark)++));
}

/* Relative ones, packed: an even word is a place, an odd one says by its other bits which of
 * the next places follow. */
static bool check_packed(const struct reader *reader)
{
    uint64_t where = 0, at = reader->tags[DT_RELR];
    uint64_t end = at + (has(reader, DT_RELR) ? reader->tags[DT_RELRSZ] : 0);
    for (; at + WORD <= end; at += WORD) {
        ElfW(Addr) word;
        if (!read_memory(reader, at, &word, WORD))
            return false;
        if (!(word & 1)) {
            if (!check_place(reader, word))
                return false;
            where = (uint64_t)word + WORD;
            continue;
        }
        for (uint64_t place = where; word >>= 1; place += WORD)
            if ((word & 1) && !check_place(reader, place))
                return false;
        where += (8 * WORD - 1) * WORD;
    }
    return at == end;
}

enum object_fault check_relocations(struct reader *reader)
{
    const size_t size = sizeof(ElfW(Rela)), short_size = sizeof(ElfW(Rel));
    if (!list_called(reader))
        return because(reader, OBJECT_NO_MEMORY, "out of memory");
    if ((TYPES_KNOWN && has(reader, DT_REL)) ||
        !check_rows(reader, DT_RELA, DT_RELASZ, size, reader->tags[TAG_RELACOUNT]) ||
        !check_rows(reader, DT_REL, DT_RELSZ, short_size, 0) ||
        !check_rows(reader, DT_JMPREL, DT_PLTRELSZ,
                    reader->tags[DT_PLTREL] == DT_REL ? short_size : size, 0) ||
        !check_packed(reader))
        return malformed(reader, "a relocation has no type, place or symbol that can be");
    if (!all_code(reader))
        return malformed(reader, "a constructor or destructor is no code");
    return OBJECT_GOOD;
}
