/* SPDX-License-Identifier: MIT */
/* elf.c - reads ELF shared objects of both classes and both byte orders: the kind of file, its
 * segments, the dynamic section, the manifest. The System V gABI, chapters 4 and 5, defines the
 * format. */
#include "probe/object/elf.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DYNAMIC (1u << 20) /* bytes */
#define MAX_STRINGS (64u << 20)

#define PAGE 4096u /* the smallest page size */

enum { PT_LOAD = 1, PT_DYNAMIC = 2, PT_NOTE = 4, PT_PHDR = 6, PT_TLS = 7 };
enum { PT_GNU_STACK = 0x6474e551, PT_GNU_RELRO = 0x6474e552, PT_GNU_PROPERTY = 0x6474e553 };
enum { ET_DYN = 3, ET_KNOWN = 5, DF_1_PIE = 0x08000000, EM_386 = 3, EM_X86_64 = 62 };

/* ---- the header ---- */

static enum object_fault read_class(struct elf *elf, const uint8_t *ident)
{
    static const struct elf_layout layouts[] = { { 4, 52, 32, 40, 16 },
                                                 { 8, 64, 56, 64, 24 } };
    struct reader *reader = elf->reader;
    if (ident[4] != 1 && ident[4] != 2)
        return because(reader, OBJECT_WRONG_CLASS, "built for an unknown number of bits");
    if (ident[5] != 1 && ident[5] != 2)
        return because(reader, OBJECT_WRONG_BYTE_ORDER, "built for an unknown byte order");
    if (ident[6] != 1)
        return because(reader, OBJECT_MALFORMED, "its ELF version is unknown");
    elf->layout = &layouts[ident[4] - 1];
    reader->big = ident[5] == 2;
    return OBJECT_GOOD;
}

static enum object_fault check_type(struct reader *reader, uint64_t type)
{
    static const char *const what[ET_KNOWN] = { "an object file without a type",
                                                "an object file that was not linked",
                                                "a program", "", "a core dump" };
    if (type == ET_DYN)
        return OBJECT_GOOD;
    return because(reader, OBJECT_NOT_SHARED, "%s, not a shared object",
                   type < ET_KNOWN ? what[type] : "an object file of unknown type");
}

static enum object_fault ends_in_header(struct reader *reader)
{
    return because(reader, OBJECT_TRUNCATED,
                   "the file is truncated: it ends within its header");
}

static enum object_fault read_header(struct elf *elf, uint8_t header[64])
{
    struct reader *reader = elf->reader;
    if (!read_at(reader, 0, header, 16))
        return ends_in_header(reader);
    enum object_fault fault = read_class(elf, header);
    if (fault)
        return fault;
    if (!read_at(reader, 0, header, elf->layout->header))
        return ends_in_header(reader);
    add_machine(reader, elf_machine((uint32_t)number(reader, header + 18, 2)));
    reader->object->bits = elf->layout->word * 8u;
    reader->object->big = reader->big;
    return check_type(reader, number(reader, header + 16, 2));
}

/* ---- segments ---- */

static void read_segment(const struct elf *elf, const uint8_t *row, struct segment *segment)
{
    const struct reader *reader = elf->reader;
    const unsigned word = elf->layout->word;
    const uint8_t *words = row +
                           (word == 8 ? 8 : 4); /* offset, address, physical address ... */
    *segment = (struct segment){
        .type = number(reader, row, 4),
        .flags = number(reader, row + (word == 8 ? 4 : 24), 4),
        .offset = number(reader, words, word),
        .address = number(reader, words + word, word),
        .in_file = number(reader, words + 3 * word, word),
        .in_memory = number(reader, words + 4 * word, word),
        .align = number(reader, words + (word == 8 ? 5 : 6) * word, word),
    };
}

/* Touching mapped memory beyond the end of the file would end the process (SIGBUS). */
static enum object_fault check_load(struct elf *elf, const struct segment *segment,
                                    uint64_t *end)
{
    struct reader *reader = elf->reader;
    const uint64_t align = segment->align ? segment->align : 1;
    const uint64_t most = UINT64_C(1) << (elf->layout->word == 8 ? 36 : 31);
    if (!has_bytes(reader, segment->offset, segment->in_file))
        return truncated(reader, "segments");
    if (segment->in_file > segment->in_memory)
        return malformed(reader, "a segment is larger in the file than in memory");
    if (segment->address > most || segment->in_memory > most)
        return malformed(reader, "a segment lies outside the address space");
    if ((align & (align - 1)) || (segment->address - segment->offset) % align)
        return malformed(reader, "a segment is misaligned");
    /* The segment of the header also holds the tables that the system's loader trusts. */
    if (segment->offset == 0 && segment->in_file && (segment->flags & PF_W))
        return malformed(reader, "the segment that holds its header is writable");
    if (segment->address / PAGE * PAGE < *end)
        return malformed(reader, "segments overlap");
    *end = (segment->address + segment->in_memory + PAGE - 1) / PAGE * PAGE;
    return OBJECT_GOOD;
}

/* The loaded segment with these rights that contains the bytes; or NULL. */
static const struct segment *segment_of(const struct elf *elf, uint64_t address,
                                        uint64_t bytes, uint64_t rights)
{
    for (unsigned i = 0; i < elf->segment_count; i++) {
        const struct segment *segment = &elf->segments[i];
        const uint64_t inside = address - segment->address;
        if (segment->type == PT_LOAD && (segment->flags & rights) == rights &&
            inside <= segment->in_memory && bytes <= segment->in_memory - inside)
            return segment;
    }
    return NULL;
}

/* Like segment_of(), but all the bytes must be in the file. */
static const struct segment *in_file(const struct elf *elf, uint64_t address,
                                     uint64_t bytes, uint64_t rights)
{
    const struct segment *segment = segment_of(elf, address, bytes, rights);
    return segment && address - segment->address + bytes <= segment->in_file ? segment
                                                                             : NULL;
}

/* Whether loading puts the segment's bytes in the file at the segment's address. */
static bool is_loaded(const struct elf *elf, const struct segment *segment)
{
    const struct segment *load = in_file(elf, segment->address, segment->in_memory, PF_R);
    return load && segment->in_file <= segment->in_memory &&
           segment->offset == load->offset + (segment->address - load->address);
}

/* Whole pages are protected. The region may begin before the loaded segment, with thread-local
 * memory that occupies no addresses, and may reach to the end of the last page. */
static bool can_protect(const struct elf *elf, const struct segment *region)
{
    for (unsigned i = 0; i < elf->segment_count; i++) {
        const struct segment *load = &elf->segments[i];
        const uint64_t begin = load->address / PAGE * PAGE;
        const uint64_t end = load->address + load->in_memory;
        if (load->type == PT_LOAD && (load->flags & PF_W) && region->address >= begin &&
            region->address < end &&
            region->in_memory <= end - region->address + load->align)
            return true;
    }
    return false;
}

/* The system's loader reads or changes memory at the addresses of these segments, even if that
 * memory does not belong to the object; hw-probe may not notice. Thread-local memory that begins as
 * zeros has no address. */
static bool check_special(const struct elf *elf, const struct segment *segment)
{
    switch (segment->type) {
    case PT_TLS:
        return segment->in_file <= segment->in_memory && segment->in_memory < 1u << 30 &&
               segment->align - 1 < 1u << 24 &&
               (segment->align & (segment->align - 1)) == 0 &&
               (segment->in_file == 0 ||
                (segment->address != 0 && /* glibc treats an image at 0 as absent */
                 in_file(elf, segment->address, segment->in_file, PF_R)));
    case PT_GNU_RELRO:
        return segment->in_memory == 0 || can_protect(elf, segment);
    case PT_PHDR:
        return segment->offset == elf->segment_table && is_loaded(elf, segment);
    case PT_NOTE:
    case PT_GNU_PROPERTY:
        return !has_bytes(elf->reader, segment->offset, segment->in_file) ||
               is_loaded(elf, segment);
    default:
        return true;
    }
}

static enum object_fault check_segments(struct elf *elf, bool stack_by_default)
{
    struct reader *reader = elf->reader;
    enum object_fault fault = OBJECT_GOOD;
    unsigned loads = 0, dynamics = 0;
    uint64_t end = 0;
    for (unsigned i = 0; i < elf->segment_count && !fault; i++) {
        const struct segment *segment = &elf->segments[i];
        loads += segment->type == PT_LOAD;
        dynamics += segment->type == PT_DYNAMIC;
        if (segment->type == PT_LOAD)
            fault = check_load(elf, segment, &end);
        if (segment->type == PT_GNU_STACK)
            stack_by_default = segment->flags & PF_X;
    }
    if (fault)
        return fault;
    if (loads == 0 || dynamics != 1)
        return malformed(reader, "it must have segments to load and one dynamic section");
    if (stack_by_default)
        return because(reader, OBJECT_EXECUTABLE_STACK, "it requires an executable stack");
    for (unsigned i = 0; i < elf->segment_count; i++)
        if (!check_special(elf, &elf->segments[i]))
            return malformed(reader, "a segment does not lie where its header says");
    return OBJECT_GOOD;
}

/* The system's loader ignores sections. But their table is at the end of the file, so a missing
 * table means that the file is truncated. */
static enum object_fault check_sections(struct elf *elf, const uint8_t *header)
{
    struct reader *reader = elf->reader;
    const unsigned word = elf->layout->word;
    const uint64_t offset = number(reader, header + 24 + 2 * word, word);
    const uint64_t count = number(reader, header + 36 + 3 * word, 2);
    if (offset && count &&
        number(reader, header + 34 + 3 * word, 2) != elf->layout->section)
        return malformed(reader, "its table of sections is invalid");
    if (offset && !has_bytes(reader, offset, count * elf->layout->section))
        return truncated(reader, "table of sections");
    return OBJECT_GOOD;
}

static enum object_fault read_segments(struct elf *elf)
{
    struct reader *reader = elf->reader;
    uint8_t header[64], rows[MAX_SEGMENTS * 56];
    enum object_fault fault = read_header(elf, header);
    if (fault)
        return fault;
    const unsigned word = elf->layout->word, size = elf->layout->segment;
    const uint64_t count = number(reader, header + 32 + 3 * word, 2);
    if (number(reader, header + 30 + 3 * word, 2) != size || count == 0 ||
        count > MAX_SEGMENTS)
        return malformed(reader, "its table of segments is invalid");
    elf->segment_table = number(reader, header + 24 + word, word);
    if (!read_at(reader, elf->segment_table, rows, count * size))
        return truncated(reader, "table of segments");
    elf->segment_count = (unsigned)count;
    for (unsigned i = 0; i < count; i++)
        read_segment(elf, rows + i * size, &elf->segments[i]);
    const uint64_t machine = number(reader, header + 18, 2);
    fault = check_sections(elf, header);
    return fault ? fault : check_segments(elf, machine == EM_386 || machine == EM_X86_64);
}

static enum object_fault read_notes(struct elf *elf)
{
    enum object_fault fault = OBJECT_GOOD;
    for (unsigned i = 0; i < elf->segment_count && !fault; i++) {
        const struct segment *segment = &elf->segments[i];
        if (segment->type == PT_NOTE)
            fault = read_manifest(elf->reader, segment->offset, segment->in_file,
                                  segment->align == 8 ? 8 : 4);
    }
    return fault;
}

/* ---- memory ---- */

bool elf_memory(const struct elf *elf, uint64_t address, void *to, uint64_t bytes)
{
    const struct segment *segment = in_file(elf, address, bytes, PF_R);
    return segment &&
           read_at(elf->reader, segment->offset + (address - segment->address), to, bytes);
}

bool elf_has_room(const struct elf *elf, uint64_t address, uint64_t bytes, uint64_t rights)
{
    return segment_of(elf, address, bytes, rights) != NULL;
}

static bool read_small(const struct elf *elf, uint64_t address, unsigned width,
                       uint32_t *value)
{
    uint8_t bytes[4];
    if (!elf_memory(elf, address, bytes, width))
        return false;
    *value = (uint32_t)number(elf->reader, bytes, width);
    return true;
}

bool elf_half(const struct elf *elf, uint64_t address, uint32_t *value)
{
    return read_small(elf, address, 2, value);
}

bool elf_word(const struct elf *elf, uint64_t address, uint32_t *value)
{
    return read_small(elf, address, 4, value);
}

bool elf_executable(const struct elf *elf, uint64_t address)
{
    return in_file(elf, address, 1, PF_X) != NULL;
}

/* ---- the dynamic section ---- */

static void take_entry(struct elf *elf, uint64_t tag, uint64_t value)
{
    static const uint32_t tags[] = {
#define X(name, value) value,
        ELF_TAGS(X)
#undef X
    };
    if (tag == tags[TAG_NEEDED] && elf->needed_count < MAX_NEEDED)
        elf->needed[elf->needed_count++] = value;
    for (unsigned i = 0; i < TAGS; i++)
        if (tag == tags[i]) {
            elf->tags[i] = value;
            elf->has |= UINT32_C(1) << i;
        }
}

static enum object_fault read_dynamic(struct elf *elf)
{
    struct reader *reader = elf->reader;
    const struct segment *segment = elf->segments;
    while (segment->type != PT_DYNAMIC)
        segment++;
    const unsigned word = elf->layout->word;
    const uint64_t bytes = segment->in_file;
    uint8_t *rows = bytes >= word && bytes <= MAX_DYNAMIC ? malloc((size_t)bytes) : NULL;
    if (!rows && bytes >= word && bytes <= MAX_DYNAMIC)
        return no_memory(reader);
    /* The system's loader writes to the dynamic section if it is writable. */
    const bool good = rows && is_loaded(elf, segment) &&
                      segment_of(elf, segment->address, bytes, segment->flags & PF_W) &&
                      elf_memory(elf, segment->address, rows, bytes);
    for (uint64_t at = 0; good && !elf_has(elf, TAG_NULL) && bytes - at >= 2 * word;
         at += 2 * word)
        take_entry(elf, number(reader, rows + at, word),
                   number(reader, rows + at + word, word));
    free(rows);
    if (!good)
        return malformed(reader, "its dynamic section lies outside its segments");
    if (!elf_has(elf, TAG_NULL))
        return malformed(reader, "its dynamic section is not terminated");
    if (elf->tags[TAG_FLAGS_1] & DF_1_PIE)
        return because(reader, OBJECT_NOT_SHARED, "a program, not a shared object");
    if (elf_has(elf, TAG_AUXILIARY) || elf_has(elf, TAG_FILTER))
        return malformed(reader, "it is a filter for another library");
    return OBJECT_GOOD;
}

const char *elf_string(const struct elf *elf, uint64_t offset)
{
    const struct object *object = elf->reader->object;
    return offset < object->strings_size ? object->strings + offset : NULL;
}

static const char *path_at(const struct elf *elf, enum elf_tag tag)
{
    const char *path = elf_has(elf, tag) ? elf_string(elf, elf->tags[tag]) : NULL;
    return path && *path ? path : NULL;
}

static enum object_fault read_strings(struct elf *elf)
{
    struct reader *reader = elf->reader;
    struct object *object = reader->object;
    const uint64_t bytes = elf->tags[TAG_STRSZ];
    if (!elf_has(elf, TAG_STRTAB) || bytes == 0 || bytes > MAX_STRINGS)
        return malformed(reader, "the size of its string table is invalid");
    object->strings = malloc((size_t)bytes);
    if (!object->strings)
        return no_memory(reader);
    if (!elf_memory(elf, elf->tags[TAG_STRTAB], object->strings, bytes) ||
        object->strings[bytes - 1] != '\0')
        return malformed(reader,
                         "its string table lies outside its segments or is not terminated");
    object->strings_size = (size_t)bytes;
    for (uint32_t i = 0; i < elf->needed_count; i++) {
        const char *name = elf_string(elf, elf->needed[i]);
        if (!name)
            return malformed(reader,
                             "the name of a needed library lies outside the string table");
        object->needed[object->needed_count++] = name;
    }
    static const uint8_t names[] = { TAG_SONAME, TAG_RPATH, TAG_RUNPATH };
    for (size_t i = 0; i < sizeof names; i++)
        if (!elf_string(elf, elf->tags[names[i]]))
            return malformed(reader, "its name or a path lies outside the string table");
    object->rpath = path_at(elf, TAG_RPATH);
    object->runpath = path_at(elf, TAG_RUNPATH);
    return OBJECT_GOOD;
}

/* ---- all of it ---- */

typedef enum object_fault step_fn(struct elf *elf);

static enum object_fault take_steps(struct reader *reader, step_fn *const *steps)
{
    struct elf *elf = calloc(1, sizeof *elf);
    if (!elf)
        return no_memory(reader);
    elf->reader = reader;
    enum object_fault fault = OBJECT_GOOD;
    while (*steps && !fault)
        fault = (*steps++)(elf);
    free(elf->symbols);
    free(elf);
    return fault;
}

/* Reads the manifest first: it is useful even if the rest of the file is damaged. */
enum object_fault elf_read(struct reader *reader)
{
    static step_fn *const steps[] = { read_segments,     read_notes,       read_dynamic,
                                      read_strings,      elf_read_symbols, elf_find_entry,
                                      elf_read_versions, elf_check_places, NULL };
    return take_steps(reader, steps);
}

enum object_fault elf_check(struct reader *reader)
{
    static step_fn *const steps[] = { read_segments, NULL };
    return take_steps(reader, steps);
}
