/* SPDX-License-Identifier: MIT */
/* macho.c - reads libraries of macOS (Mach-O, 32 and 64 bits) and universal files, which hold one
 * library for each processor: load commands, segments, the manifest, exports and needed libraries.
 * The headers <mach-o/loader.h> and <mach-o/fat.h> define the format; the sources of dyld describe
 * the trie of exports. */
#include "probe/object/reader.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_COMMANDS = 1 << 20, /* bytes */
    MAX_SEGMENTS = 64,
    MAX_TRIE = 16 << 20, /* bytes */
    /* In a universal file. A Java class, which has the same magic, seems to have more. */
    MAX_PARTS = 64,
};
enum { MH_DYLIB = 6, MH_BUNDLE = 8, MAY_EXECUTE = 4 };
enum { IS_ELSEWHERE = 8, KIND = 3 }; /* flags of an export */
enum {
    LC_SEGMENT = 1,
    LC_LOAD_DYLIB = 0xc,
    LC_SEGMENT_64 = 0x19,
    LC_RPATH = 0x1c,
    LC_REEXPORT_DYLIB = 0x1f,
    LC_DYLD_INFO = 0x22,
    LC_LOAD_UPWARD_DYLIB = 0x23,
    LC_DYLD_EXPORTS_TRIE = 0x33
};
#define REQUIRED 0x80000000u /* a bit of some commands */

static const struct machine machines[] = {
    { 7, "i386" },           { 12, "ARM" },
    { 0x1000007, "x86-64" }, { 0x100000c, "AArch64" },
    { 18, "PowerPC" },       { 0x1000012, "POWER" },
};

#if defined(__x86_64__)
#define NATIVE_NUMBER 0x1000007
#elif defined(__aarch64__)
#define NATIVE_NUMBER 0x100000c
#else
#define NATIVE_NUMBER 0 /* not a processor of macOS today */
#endif

struct segment {
    uint64_t address, offset, in_file, rights;
};

struct macho {
    struct reader *reader;
    unsigned word; /* bytes of an address */
    struct segment segments[MAX_SEGMENTS];
    unsigned segment_count;
    uint64_t trie, trie_bytes;
};

/* A load command in memory, and where it is in the file. */
struct command {
    const uint8_t *bytes;
    uint64_t kind, size, offset;
};

/* ---- load commands ---- */

static enum object_fault bad_commands(struct macho *macho)
{
    return malformed(macho->reader, "its load commands are invalid");
}

/* The manifest lies in the section __DATA,__hwnote. */
static enum object_fault read_section(struct macho *macho, const uint8_t *row)
{
    struct reader *reader = macho->reader;
    const unsigned word = macho->word;
    if (memcmp(row, "__hwnote", sizeof "__hwnote") != 0)
        return OBJECT_GOOD;
    return read_manifest(reader, number(reader, row + 32 + 2 * word, 4),
                         number(reader, row + 32 + word, word), 4);
}

static enum object_fault read_segment(struct macho *macho, const struct command *command)
{
    struct reader *reader = macho->reader;
    const unsigned word = macho->word, head = 40 + 4 * word, section = word == 8 ? 80 : 68;
    const uint8_t *rest = command->bytes + 24 + 4 * word; /* rights, sections */
    if (command->size < head || macho->segment_count == MAX_SEGMENTS)
        return bad_commands(macho);
    struct segment *segment = &macho->segments[macho->segment_count++];
    *segment = (struct segment){
        .address = number(reader, command->bytes + 24, word),
        .offset = number(reader, command->bytes + 24 + 2 * word, word),
        .in_file = number(reader, command->bytes + 24 + 3 * word, word),
        .rights = number(reader, rest + 4, 4),
    };
    const uint64_t sections = number(reader, rest + 8, 4);
    if (sections > (command->size - head) / section)
        return bad_commands(macho);
    if (!has_bytes(reader, segment->offset, segment->in_file))
        return truncated(reader, "segments");
    enum object_fault fault = OBJECT_GOOD;
    for (uint64_t i = 0; i < sections && !fault; i++)
        fault = read_section(macho, command->bytes + head + i * section);
    return fault;
}

/* Adds the text that lies behind the `head` bytes of the command. */
static enum object_fault
read_text(struct macho *macho, const struct command *command, unsigned head,
          enum object_fault (*add)(struct reader *reader, uint64_t offset, uint64_t most))
{
    const uint64_t text = command->size >= head
                              ? number(macho->reader, command->bytes + 8, 4)
                              : 0;
    if (text < head || text >= command->size)
        return bad_commands(macho);
    return add(macho->reader, command->offset + text, command->size - text);
}

/* Reads where the trie of exports is from this place in the command. */
static enum object_fault read_trie(struct macho *macho, const struct command *command,
                                   unsigned place)
{
    if (command->size < place + 8)
        return bad_commands(macho);
    macho->trie = number(macho->reader, command->bytes + place, 4);
    macho->trie_bytes = number(macho->reader, command->bytes + place + 4, 4);
    return OBJECT_GOOD;
}

static enum object_fault read_command(struct macho *macho, const struct command *command)
{
    switch (command->kind & ~REQUIRED) {
    case LC_SEGMENT:
    case LC_SEGMENT_64:
        return (command->kind == LC_SEGMENT_64) == (macho->word == 8)
                   ? read_segment(macho, command)
                   : bad_commands(macho);
    case LC_LOAD_DYLIB:
    case LC_REEXPORT_DYLIB:
    case LC_LOAD_UPWARD_DYLIB:
        return read_text(macho, command, 24, add_needed);
    case LC_RPATH:
        return read_text(macho, command, 12, add_rpath);
    case LC_DYLD_INFO:
        return read_trie(macho, command, 40);
    case LC_DYLD_EXPORTS_TRIE:
        return read_trie(macho, command, 8);
    default: /* this includes weak and lazy libraries */
        return OBJECT_GOOD;
    }
}

static enum object_fault read_commands(struct macho *macho, const uint8_t *commands,
                                       uint64_t bytes, uint64_t count)
{
    const struct reader *reader = macho->reader;
    const uint64_t start = macho->word == 8 ? 32 : 28;
    enum object_fault fault = OBJECT_GOOD;
    for (uint64_t at = 0; count && !fault; count--) {
        if (bytes - at < 8)
            return bad_commands(macho);
        const struct command command = { commands + at, number(reader, commands + at, 4),
                                         number(reader, commands + at + 4, 4), start + at };
        if (command.size < 8 || command.size > bytes - at)
            return bad_commands(macho);
        fault = read_command(macho, &command);
        at += command.size;
    }
    return fault;
}

static enum object_fault check_type(struct reader *reader, uint64_t type)
{
    static const char *const what[] = {
        [1] = "an object file that was not linked", [2] = "a program", [4] = "a core dump"
    };
    if (type == MH_DYLIB || type == MH_BUNDLE)
        return OBJECT_GOOD;
    return because(reader, OBJECT_NOT_SHARED, "%s, not a shared object",
                   type < sizeof what / sizeof *what && what[type]
                       ? what[type]
                       : "an object file of another type");
}

static enum object_fault read_headers(struct macho *macho)
{
    struct reader *reader = macho->reader;
    uint8_t header[32];
    if (!read_at(reader, 0, header, 28))
        return truncated(reader, "header");
    reader->big = header[0] == 0xfe;
    const uint64_t magic = number(reader, header, 4);
    if (magic != 0xfeedface && magic != 0xfeedfacf)
        return malformed(reader, "a part of it is not a Mach-O object");
    macho->word = magic == 0xfeedfacf ? 8 : 4;
    reader->object->bits = macho->word * 8;
    reader->object->big = reader->big;
    add_machine(reader, find_machine(machines, sizeof machines / sizeof *machines,
                                     number(reader, header + 4, 4)));
    enum object_fault fault = check_type(reader, number(reader, header + 12, 4));
    if (fault)
        return fault;
    const uint64_t bytes = number(reader, header + 20, 4);
    if (bytes > MAX_COMMANDS)
        return bad_commands(macho);
    uint8_t *commands = malloc(bytes ? (size_t)bytes : 1);
    if (!commands)
        return no_memory(reader);
    fault = read_at(reader, macho->word == 8 ? 32 : 28, commands, bytes)
                ? read_commands(macho, commands, bytes, number(reader, header + 16, 4))
                : truncated(reader, "load commands");
    free(commands);
    return fault;
}

/* ---- exports ---- */

/* The bytes of the trie from `at` on. A number has 7 bits in each byte, the lowest first. */
struct trie {
    const uint8_t *bytes;
    uint64_t size, at;
};

static bool take_number(struct trie *trie, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 63 && trie->at < trie->size; shift += 7) {
        const uint8_t byte = trie->bytes[trie->at++];
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Goes to the child whose label begins the rest of the name; `matched` is 0 if there is none. */
static bool take_child(struct trie *trie, const char *rest, size_t *matched)
{
    *matched = 0;
    if (trie->at >= trie->size)
        return false;
    for (unsigned left = trie->bytes[trie->at++]; left; left--) {
        const char *label = (const char *)trie->bytes + trie->at;
        const uint8_t *end = memchr(label, '\0', (size_t)(trie->size - trie->at));
        uint64_t child;
        if (!end)
            return false;
        const size_t length = (size_t)((const char *)end - label);
        trie->at += length + 1;
        if (!take_number(trie, &child))
            return false;
        if (length && strncmp(label, rest, length) == 0) {
            *matched = length;
            trie->at = child;
            return child < trie->size;
        }
    }
    return true;
}

enum found { NOT_THERE, THERE, DAMAGED };

/* Each node has the bytes of its own export, if any, then its children. Each step consumes at least
 * one character of the name, so the search ends. */
static enum found search_trie(struct trie *trie, uint64_t *flags, uint64_t *address)
{
    const char *rest = "_" ENTRY;
    for (;;) {
        uint64_t bytes;
        size_t matched;
        if (!take_number(trie, &bytes) || bytes > trie->size - trie->at)
            return DAMAGED;
        if (!*rest && bytes == 0)
            return NOT_THERE;
        if (!*rest)
            return take_number(trie, flags) && take_number(trie, address) ? THERE : DAMAGED;
        trie->at += bytes;
        if (!take_child(trie, rest, &matched))
            return DAMAGED;
        if (!matched)
            return NOT_THERE;
        rest += matched;
    }
}

/* The address counts from the segment that holds the header. */
static bool is_code(const struct macho *macho, uint64_t address)
{
    uint64_t base = 0;
    for (unsigned i = 0; i < macho->segment_count; i++)
        if (macho->segments[i].offset == 0 && macho->segments[i].in_file)
            base = macho->segments[i].address;
    for (unsigned i = 0; i < macho->segment_count; i++)
        if ((macho->segments[i].rights & MAY_EXECUTE) &&
            base + address - macho->segments[i].address < macho->segments[i].in_file)
            return true;
    return false;
}

static enum object_fault find_entry(struct macho *macho)
{
    struct reader *reader = macho->reader;
    if (macho->trie_bytes > MAX_TRIE)
        return malformed(reader, "its table of exports is invalid");
    uint8_t *bytes = malloc(macho->trie_bytes ? (size_t)macho->trie_bytes : 1);
    if (!bytes)
        return no_memory(reader);
    struct trie trie = { .bytes = bytes, .size = macho->trie_bytes };
    uint64_t flags = 0, address = 0;
    enum found found = !trie.size ? NOT_THERE
                       : !read_at(reader, macho->trie, bytes, trie.size)
                           ? DAMAGED
                           : search_trie(&trie, &flags, &address);
    free(bytes);
    if (found == DAMAGED)
        return malformed(reader, "its table of exports is invalid");
    if (found == NOT_THERE)
        return because(reader, OBJECT_NO_ENTRY, "not a plugin: it exports no " ENTRY);
    const char *what = flags & IS_ELSEWHERE ? "is that of another library"
                       : (flags & KIND) || !is_code(macho, address)
                           ? "lies outside the code"
                           : NULL;
    if (what)
        return because(reader, OBJECT_BAD_ENTRY, "its " ENTRY " %s", what);
    return OBJECT_GOOD;
}

enum object_fault macho_read(struct reader *reader)
{
    struct macho macho = { .reader = reader };
    enum object_fault fault = read_headers(&macho);
    return fault ? fault : find_entry(&macho);
}

/* ---- universal files ---- */

struct part {
    uint64_t machine, offset, bytes;
};

static bool read_part(const struct reader *reader, unsigned index, struct part *part)
{
    uint64_t magic;
    if (!read_number(reader, 0, 4, &magic))
        return false;
    const unsigned word = magic == 0xcafebabf ? 8
                                              : 4; /* the newer kind has longer numbers */
    const uint64_t row = 8 + index * (word == 8 ? 32u : 20u);
    return read_number(reader, row, 4, &part->machine) &&
           read_number(reader, row + 8, word, &part->offset) &&
           read_number(reader, row + 8 + word, word, &part->bytes);
}

/* Reads the part for this processor or, without one, the first part. */
enum object_fault universal_read(struct reader *reader)
{
    struct part parts[MAX_PARTS];
    uint64_t count;
    unsigned chosen = 0;
    if (!read_number(reader, 4, 4, &count))
        return truncated(reader, "header");
    if (count == 0 || count > MAX_PARTS) {
        reader->object->format = OBJECT_NO_FORMAT;
        return because(reader, OBJECT_NOT_AN_OBJECT, "not an object file");
    }
    for (unsigned i = 0; i < count; i++) {
        if (!read_part(reader, i, &parts[i]))
            return truncated(reader, "header");
        chosen = parts[i].machine == NATIVE_NUMBER ? i : chosen;
    }
    for (unsigned i = 0; i < count; i++)
        if (!has_bytes(reader, parts[i].offset, parts[i].bytes))
            return truncated(reader, "parts");
    const struct reader whole = *reader;
    reader->start = parts[chosen].offset;
    reader->size = parts[chosen].bytes;
    enum object_fault fault = macho_read(reader);
    *reader = whole;
    for (unsigned i = 0; i < count; i++)
        if (i != chosen)
            add_machine(reader, find_machine(machines, sizeof machines / sizeof *machines,
                                             parts[i].machine));
    return fault;
}
