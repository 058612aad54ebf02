/* SPDX-License-Identifier: MIT */
/* elf_places.c - checks that the relocations of an ELF object write inside the object and name its
 * symbols. The system's loader checks neither. The effect of a bad relocation depends on the memory
 * of the process: hw-probe may survive one that would crash the application. */
#include "probe/object/elf.h"

#include <string.h>

#define MAX_PLACES (4u << 20)

/* A table of relocations. A row has a place, then the type with the symbol's number, and in RELA an
 * addend. */
struct table {
    enum elf_tag address, bytes;
    unsigned words; /* per row; 1: packed places */
};

static bool may_write(const struct elf *elf, uint64_t place)
{
    return elf_has_room(elf, place, elf->layout->word, PF_W);
}

static bool relocation_good(const struct elf *elf, const uint8_t *row)
{
    const unsigned word = elf->layout->word;
    const uint64_t place = number(elf->reader, row, word);
    const uint64_t info = number(elf->reader, row + word, word);
    const uint64_t symbol = word == 8 ? info >> 32 : info >> 8;
    const uint64_t type = word == 8 ? info & 0xffffffff : info & 0xff;
    return symbol < elf->symbol_count && (type == 0 || may_write(elf, place));
}

/* Packed relative relocations. An even word is a place. In an odd word, each bit above the lowest
 * stands for one of the places from `next` on. */
static bool packed_good(const struct elf *elf, const uint8_t *row, uint64_t *next)
{
    const unsigned word = elf->layout->word;
    uint64_t bits = number(elf->reader, row, word);
    if (!(bits & 1)) {
        *next = bits + word;
        return may_write(elf, bits);
    }
    for (uint64_t place = *next; bits >>= 1; place += word)
        if ((bits & 1) && !may_write(elf, place))
            return false;
    *next += (8 * word - 1) * word;
    return true;
}

static bool table_good(const struct elf *elf, const struct table *table)
{
    uint8_t block[3 * 8 * 256];
    const unsigned row = table->words * elf->layout->word;
    uint64_t at = elf->tags[table->address], next = 0;
    uint64_t left = elf_has(elf, table->address) ? elf->tags[table->bytes] : 0;
    if (left % row || left / row > MAX_PLACES)
        return false;
    while (left) {
        const uint64_t part = left < sizeof block / row * row ? left
                                                              : sizeof block / row * row;
        if (!elf_memory(elf, at, block, part))
            return false;
        for (uint64_t i = 0; i < part; i += row)
            if (table->words == 1 ? !packed_good(elf, block + i, &next)
                                  : !relocation_good(elf, block + i))
                return false;
        at += part;
        left -= part;
    }
    return true;
}

/* Code for a fixed address has relocations in memory that is not writable; linkers accept that with
 * -z notext, and mark the file. */
static enum object_fault refuse_place(struct elf *elf)
{
    if (!elf_has(elf, TAG_TEXTREL))
        return malformed(
            elf->reader,
            "a relocation writes outside its memory, or its symbol is not there");
    elf->reader->object->remedy = "Compile it with -fPIC";
    return because(elf->reader, OBJECT_MALFORMED,
                   "it has text relocations: its code is for a fixed address");
}

enum object_fault elf_check_places(struct elf *elf)
{
    enum { RELA = 7 };
    const unsigned of_calls = elf->tags[TAG_PLTREL] == RELA ? 3 : 2;
    const struct table tables[] = { { TAG_RELA, TAG_RELASZ, 3 },
                                    { TAG_REL, TAG_RELSZ, 2 },
                                    { TAG_JMPREL, TAG_PLTRELSZ, of_calls },
                                    { TAG_RELR, TAG_RELRSZ, 1 } };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!table_good(elf, &tables[i]))
            return refuse_place(elf);
    return OBJECT_GOOD;
}
