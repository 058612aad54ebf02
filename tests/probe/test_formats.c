/* SPDX-License-Identifier: MIT */
/* test_formats.c - plugins for other systems and processors, made by tests/foreign/make.sh: the
 * readers' answers for each file, whole, truncated, with one fault, and with every header byte
 * changed. */
#define _POSIX_C_SOURCE 200809L
#include "object/manifest.h"
#include "probe/object/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_BYTES (1u << 20)

struct bytes {
    uint8_t *at;
    size_t size;
};

static struct bytes load(const char *file)
{
    char path[4096];
    struct bytes bytes = { malloc(MOST_BYTES), 0 };
    snprintf(path, sizeof path, "%s/%s", CORPUS, file);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_non_null(bytes.at);
    bytes.size = fread(bytes.at, 1, MOST_BYTES, stream);
    fclose(stream);
    assert_in_range(bytes.size, 1024, MOST_BYTES - 1);
    return bytes;
}

/* The bytes are copied to memory of exactly their size: a sanitizer sees a read past the end. */
static enum object_fault read_exactly(const uint8_t *bytes, size_t size,
                                      struct object *object, char why[256])
{
    uint8_t *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    struct source source = { .data = exact, .fd = -1, .size = size };
    const enum object_fault fault = object_read(&source, object, why, 256);
    free(exact);
    return fault;
}

static enum object_fault fault_of(const uint8_t *bytes, size_t size)
{
    struct object object;
    char why[256] = "";
    const enum object_fault fault = read_exactly(bytes, size, &object, why);
    assert_int_equal(fault != OBJECT_GOOD, why[0] != '\0');
    object_free(&object);
    return fault;
}

/* ---- whole files ---- */

static const struct whole {
    const char *file;
    enum object_format format;
    unsigned bits;
    bool big;
    const char *machines, *needs;
} wholes[] = {
    { "elf/far-aarch64.so", OBJECT_ELF, 64, false, "AArch64", "libc.so.6" },
    { "elf/far-arm.so", OBJECT_ELF, 32, false, "ARM", "libc.so.6" },
    { "elf/far-powerpc64.so", OBJECT_ELF, 64, true, "POWER", "libc.so.6" },
    { "pe/far-x86-64.dll", OBJECT_PE, 64, false, "x86-64", "msvcrt.dll" },
    { "pe/far-aarch64.dll", OBJECT_PE, 64, false, "AArch64", "msvcrt.dll" },
    { "pe/far-x86.dll", OBJECT_PE, 32, false, "i386", "msvcrt.dll" },
    { "macho/far-x86-64.dylib", OBJECT_MACHO, 64, false, "x86-64",
      "/usr/lib/libSystem.B.dylib" },
    { "macho/far-universal.dylib", OBJECT_MACHO, 64, false,
#if defined(__aarch64__)
      "AArch64 and x86-64",
#else
      "x86-64 and AArch64",
#endif
      "/usr/lib/libSystem.B.dylib" },
};
enum { WHOLES = sizeof wholes / sizeof *wholes };

static void check_whole(const struct whole *row, const struct object *object)
{
    struct manifest manifest;
    char why[256] = "", machines[64];
    assert_int_equal(object->format, row->format);
    assert_int_equal(object->bits, row->bits);
    assert_int_equal(object->big, row->big);
    assert_string_equal(object_machines(object, machines, sizeof machines), row->machines);
    assert_int_equal(object->needed_count, 1);
    assert_string_equal(object->needed[0], row->needs);
    assert_non_null(object->manifest);
    assert_true(manifest_parse(&manifest, object->manifest, object->manifest_bytes, why,
                               sizeof why));
    assert_string_equal(manifest.name, "far");
    assert_string_equal(manifest.title, "Far away");
    assert_int_equal(manifest.abi_min, 1);
    assert_int_equal(manifest.abi_max, 1);
    assert_string_equal(manifest.needs[0], "libfar.so.1");
}

/* ---- the libraries they need, and their search paths ---- */

static void check_list(const char *const *list, uint32_t count, const char *const *expected)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_non_null(expected[i]);
        assert_string_equal(list[i], expected[i]);
    }
    assert_null(expected[count]);
}

static void all_libraries_and_paths_are_read(void **state)
{
    static const struct {
        const char *file, *needed[6], *rpaths[3];
    } needing[] = {
        { "pe/far-needing.dll",
          { "msvcrt.dll", "far.dll", "vcruntime140.dll",
            "api-ms-win-core-file-l1-1-0.dll" },
          { NULL } },
        { "macho/far-needing.dylib",
          { "/usr/lib/libSystem.B.dylib", "@rpath/libfar.1.dylib",
            "@executable_path/../lib/libprogram.dylib",
            "/Library/Frameworks/Far.framework/Versions/A/Far" },
          { "@loader_path/../lib", "/opt/far/lib" } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof needing / sizeof *needing; i++) {
        struct bytes bytes = load(needing[i].file);
        struct object object;
        char why[256] = "";
        assert_int_equal(read_exactly(bytes.at, bytes.size, &object, why), OBJECT_GOOD);
        check_list(object.needed, object.needed_count, needing[i].needed);
        check_list(object.rpaths, object.rpath_count, needing[i].rpaths);
        object_free(&object);
        free(bytes.at);
    }
}

/* For the test's own system and processor there is no message; for others, it names both. */
static void check_foreign(const struct whole *row, const struct object *object)
{
    char why[256] = "";
    const enum object_fault foreign = object_native(object, why, sizeof why);
    if (row->format != OBJECT_ELF) {
        assert_int_equal(foreign, OBJECT_WRONG_FORMAT);
        assert_non_null(strstr(why, format_system(object->format)));
        assert_non_null(strstr(why, row->machines));
        assert_non_null(strstr(why, "Linux"));
    } else if (row->bits != 8 * sizeof(void *)) {
        assert_int_equal(foreign, OBJECT_WRONG_CLASS);
    } else if (row->big) {
        assert_int_equal(foreign, OBJECT_WRONG_BYTE_ORDER);
    } else {
#if defined(__aarch64__)
        assert_int_equal(foreign, OBJECT_GOOD);
#else
        assert_int_equal(foreign, OBJECT_WRONG_MACHINE);
        assert_non_null(strstr(why, "AArch64"));
#endif
    }
}

static void test_whole(void **state)
{
    const struct whole *row = *state;
    struct bytes bytes = load(row->file);
    struct object object;
    char why[256] = "";
    assert_int_equal(read_exactly(bytes.at, bytes.size, &object, why), OBJECT_GOOD);
    check_whole(row, &object);
    check_foreign(row, &object);
    object_free(&object);
    free(bytes.at);
}

/* ---- cut and changed files ---- */

/* Truncated at each byte of the headers, and at every 64th byte of the rest. */
static void test_cuts(void **state)
{
    const struct whole *row = *state;
    struct bytes bytes = load(row->file);
    for (size_t cut = 0; cut < bytes.size; cut += cut < 1024 ? 1 : 64) {
        const enum object_fault fault = fault_of(bytes.at, cut);
        if (cut < 2 ? fault == OBJECT_GOOD : fault != OBJECT_TRUNCATED)
            fail_msg("%s: cut after %zu bytes: fault %d", row->file, cut, (int)fault);
    }
    free(bytes.at);
}

/* Every change gets an answer, with a message if the file is refused. Some changes must be
 * refused. */
static void test_changes(void **state)
{
    static const uint8_t changes[] = { 0x01, 0x04, 0x20, 0x80, 0xff };
    const struct whole *row = *state;
    struct bytes bytes = load(row->file);
    const size_t end = bytes.size < 4096 ? bytes.size : 4096;
    unsigned refused = 0;
    for (size_t at = 0; at < end; at++)
        for (size_t i = 0; i < sizeof changes; i++) {
            bytes.at[at] ^= changes[i];
            refused += fault_of(bytes.at, bytes.size) != OBJECT_GOOD;
            bytes.at[at] ^= changes[i];
        }
    assert_true(refused > 100);
    free(bytes.at);
}

/* ---- one thing wrong ---- */

static uint32_t word_at(const struct bytes *bytes, size_t at)
{
    assert_true(at <= bytes->size - 4);
    const uint8_t *b = bytes->at + at;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void put(struct bytes *bytes, size_t at, uint32_t value, unsigned width)
{
    assert_true(at <= bytes->size - width);
    for (unsigned i = 0; i < width; i++)
        bytes->at[at + i] = (uint8_t)(value >> 8 * i);
}

static size_t find(const struct bytes *bytes, const char *text, size_t length)
{
    for (size_t at = 0; at + length <= bytes->size; at++)
        if (memcmp(bytes->at + at, text, length) == 0)
            return at;
    fail_msg("no %s", text);
    return 0;
}

/* Renames the entry at each occurrence of its name. */
static void rename_entry(struct bytes *bytes)
{
    static const char name[] = "hw_plugin_entry";
    bool found = false;
    for (size_t at = 0; at + sizeof name <= bytes->size; at++)
        if (memcmp(bytes->at + at, name, sizeof name) == 0) {
            bytes->at[at + 14] = 'z';
            found = true;
        }
    assert_true(found);
}

/* PE: the offsets of the header, of the first data directory, and of a section's row. */
static size_t pe_header(const struct bytes *bytes)
{
    return word_at(bytes, 60);
}

static size_t pe_directories(const struct bytes *bytes)
{
    return pe_header(bytes) + 24 + 112;
}

static size_t pe_section(const struct bytes *bytes, const char *name)
{
    return find(bytes, name, strlen(name) + 1);
}

/* The file offset of the table of exports, which lies in .rdata. */
static size_t pe_exports(const struct bytes *bytes)
{
    const size_t rdata = pe_section(bytes, ".rdata");
    return word_at(bytes, pe_directories(bytes)) - word_at(bytes, rdata + 12) +
           word_at(bytes, rdata + 20);
}

static size_t pe_functions(const struct bytes *bytes)
{
    const size_t rdata = pe_section(bytes, ".rdata");
    return word_at(bytes, pe_exports(bytes) + 28) - word_at(bytes, rdata + 12) +
           word_at(bytes, rdata + 20);
}

static void pe_dos(struct bytes *b)
{
    put(b, pe_header(b), 0x454e, 2);
}
static void pe_header_far(struct bytes *b)
{
    put(b, 60, 0xfffffff0, 4);
}
static void pe_program(struct bytes *b)
{
    put(b, pe_header(b) + 22, 2, 2);
}
static void pe_unlinked(struct bytes *b)
{
    put(b, pe_header(b) + 22, 0, 2);
}
static void pe_kind(struct bytes *b)
{
    put(b, pe_header(b) + 24, 0x107, 2);
}
static void pe_no_sections(struct bytes *b)
{
    put(b, pe_header(b) + 6, 0, 2);
}
static void pe_many_sections(struct bytes *b)
{
    put(b, pe_header(b) + 6, 0xffff, 2);
}
static void pe_long_section(struct bytes *b)
{
    put(b, pe_section(b, ".text") + 16, 1u << 30, 4);
}
static void pe_far_section(struct bytes *b)
{
    put(b, pe_section(b, ".text") + 20, UINT32_MAX, 4);
}
static void pe_no_code(struct bytes *b)
{
    put(b, pe_section(b, ".text") + 36, 0x40000040, 4);
}
static void pe_exports_far(struct bytes *b)
{
    put(b, pe_directories(b), 0x7ffffff0, 4);
}
static void pe_exports_none(struct bytes *b)
{
    put(b, pe_directories(b), 0, 4);
}
static void pe_imports_far(struct bytes *b)
{
    put(b, pe_directories(b) + 8, 0x7ffffff0, 4);
}
static void pe_names_far(struct bytes *b)
{
    put(b, pe_exports(b) + 32, 0x7ffffff0, 4);
}
static void pe_names_many(struct bytes *b)
{
    put(b, pe_exports(b) + 24, UINT32_MAX, 4);
}
static void pe_forwarded(struct bytes *b)
{
    put(b, pe_functions(b) + 4, word_at(b, pe_directories(b)) + 8, 4);
    put(b, pe_functions(b), word_at(b, pe_directories(b)) + 8, 4);
}
static void pe_symbols(struct bytes *b)
{
    put(b, pe_header(b) + 12, 1024, 4);
    put(b, pe_header(b) + 16, 0x7fffffff, 4);
}
static void pe_import_name(struct bytes *b)
{
    const size_t name = find(b, "msvcrt.dll", 11), rdata = pe_section(b, ".rdata");
    memset(b->at + name, 'a',
           word_at(b, rdata + 20) + word_at(b, rdata + 16) -
               name); /* to the section's end */
}

/* 64-bit Mach-O: the first load command of this kind, and the segment of this name. */
static size_t macho_command(const struct bytes *bytes, uint32_t kind)
{
    size_t at = 32;
    for (uint32_t left = word_at(bytes, 16); left; left--) {
        if (word_at(bytes, at) == kind)
            return at;
        at += word_at(bytes, at + 4);
    }
    fail_msg("no command %x", (unsigned)kind);
    return 0;
}

static size_t macho_segment(const struct bytes *bytes, const char *name)
{
    return find(bytes, name, strlen(name) + 1) - 8;
}

static size_t macho_trie(const struct bytes *bytes)
{
    return macho_command(bytes, 0x80000022) + 40;
}

static void macho_program(struct bytes *b)
{
    put(b, 12, 2, 4);
}
static void macho_unlinked(struct bytes *b)
{
    put(b, 12, 1, 4);
}
static void macho_symbols(struct bytes *b)
{
    put(b, 12, 10, 4);
}
static void macho_many(struct bytes *b)
{
    put(b, 16, UINT32_MAX, 4);
}
static void macho_long(struct bytes *b)
{
    put(b, 20, UINT32_MAX, 4);
}
static void macho_cut(struct bytes *b)
{
    put(b, 20, 0xfffff, 4);
}
static void macho_empty(struct bytes *b)
{
    put(b, 36, 0, 4);
}
static void macho_overlong(struct bytes *b)
{
    put(b, 36, 0x7fffffff, 4);
}
static void macho_sections(struct bytes *b)
{
    put(b, macho_segment(b, "__TEXT") + 64, 99, 4);
}
static void macho_no_code(struct bytes *b)
{
    put(b, macho_segment(b, "__TEXT") + 60, 1, 4);
}
static void macho_far(struct bytes *b)
{
    put(b, macho_segment(b, "__LINKEDIT") + 44, 1, 4);
}
static void macho_note(struct bytes *b)
{
    put(b, find(b, "__hwnote", 8) + 44, 1, 4);
}
static void macho_library(struct bytes *b)
{
    put(b, macho_command(b, 12) + 8, 4096, 4);
}
static void macho_rpath(struct bytes *b)
{
    put(b, macho_command(b, 0x8000001c) + 8, 4, 4);
}
static void macho_rpath_endless(struct bytes *b)
{
    const size_t at = macho_command(b, 0x8000001c);
    memset(b->at + at + 12, '/', word_at(b, at + 4) - 12);
}
static void macho_trie_far(struct bytes *b)
{
    put(b, macho_trie(b), 0x7fffffff, 4);
}
static void macho_trie_huge(struct bytes *b)
{
    put(b, macho_trie(b) + 4, UINT32_MAX, 4);
}
static void macho_trie_none(struct bytes *b)
{
    put(b, macho_trie(b) + 4, 0, 4);
}
static void macho_trie_loop(struct bytes *b)
{
    const size_t root = word_at(b, macho_trie(b));
    memcpy(b->at + root, "\0\1\0\0", 4); /* one child, without a label: the root */
}
static void macho_trie_zeros(struct bytes *b)
{
    memset(b->at + word_at(b, macho_trie(b)), 0xff, word_at(b, macho_trie(b) + 4));
}
/* Walks the trie to the export and flags it as re-exported from another library. */
static void macho_elsewhere(struct bytes *b)
{
    const size_t root = word_at(b, macho_trie(b));
    const size_t child = b->at[root + 2 + strlen((char *)b->at + root + 2) + 1];
    b->at[root + child + 1] |= 8;
}

/* A universal file: its numbers are big-endian. */
static void fat_none(struct bytes *b)
{
    put(b, 4, 0, 4);
}
static void fat_java(struct bytes *b)
{
    put(b, 4, 0x41000000, 4);
}
static void fat_far(struct bytes *b)
{
    put(b, 16, 0x7f, 1);
}
static void fat_long(struct bytes *b)
{
    put(b, 20, 0x7f, 1);
}
static void fat_elf(struct bytes *b)
{
    memcpy(b->at + 4096,
           "\x7f"
           "ELF",
           4);
    memcpy(b->at + 32768,
           "\x7f"
           "ELF",
           4);
}

static const struct wrong {
    const char *file, *name;
    void (*change)(struct bytes *bytes);
    enum object_fault fault;
} wrongs[] = {
#define ROW(file, change, FAULT)                                                           \
    {                                                                                      \
        file, #change, change, OBJECT_##FAULT                                              \
    }
    ROW("elf/far-aarch64.so", rename_entry, NO_ENTRY),
    ROW("elf/far-powerpc64.so", rename_entry, NO_ENTRY),
    ROW("pe/far-x86-64.dll", rename_entry, NO_ENTRY),
    ROW("pe/far-x86.dll", rename_entry, NO_ENTRY),
    ROW("pe/far-x86-64.dll", pe_dos, NOT_SHARED),
    ROW("pe/far-x86-64.dll", pe_header_far, TRUNCATED),
    ROW("pe/far-x86-64.dll", pe_program, NOT_SHARED),
    ROW("pe/far-x86-64.dll", pe_unlinked, NOT_SHARED),
    ROW("pe/far-x86-64.dll", pe_kind, MALFORMED),
    ROW("pe/far-x86-64.dll", pe_no_sections, MALFORMED),
    ROW("pe/far-x86-64.dll", pe_many_sections, MALFORMED),
    ROW("pe/far-x86-64.dll", pe_long_section, TRUNCATED),
    ROW("pe/far-x86-64.dll", pe_far_section, TRUNCATED),
    ROW("pe/far-x86-64.dll", pe_no_code, BAD_ENTRY),
    ROW("pe/far-x86-64.dll", pe_forwarded, BAD_ENTRY),
    ROW("pe/far-x86-64.dll", pe_exports_far, MALFORMED),
    ROW("pe/far-x86-64.dll", pe_exports_none, NO_ENTRY),
    ROW("pe/far-x86-64.dll", pe_names_far, MALFORMED),
    ROW("pe/far-x86-64.dll", pe_names_many, MALFORMED),
    ROW("pe/far-x86-64.dll", pe_imports_far, MALFORMED),
    ROW("pe/far-x86-64.dll", pe_import_name, MALFORMED),
    ROW("pe/far-x86-64.dll", pe_symbols, TRUNCATED),
    ROW("macho/far-x86-64.dylib", rename_entry, NO_ENTRY),
    ROW("macho/far-x86-64.dylib", macho_program, NOT_SHARED),
    ROW("macho/far-x86-64.dylib", macho_unlinked, NOT_SHARED),
    ROW("macho/far-x86-64.dylib", macho_symbols, NOT_SHARED),
    ROW("macho/far-x86-64.dylib", macho_many, MALFORMED),
    ROW("macho/far-x86-64.dylib", macho_long, MALFORMED),
    ROW("macho/far-x86-64.dylib", macho_cut, TRUNCATED),
    ROW("macho/far-x86-64.dylib", macho_empty, MALFORMED),
    ROW("macho/far-x86-64.dylib", macho_overlong, MALFORMED),
    ROW("macho/far-x86-64.dylib", macho_sections, MALFORMED),
    ROW("macho/far-x86-64.dylib", macho_no_code, BAD_ENTRY),
    ROW("macho/far-x86-64.dylib", macho_elsewhere, BAD_ENTRY),
    ROW("macho/far-x86-64.dylib", macho_far, TRUNCATED),
    ROW("macho/far-x86-64.dylib", macho_note, TRUNCATED),
    ROW("macho/far-x86-64.dylib", macho_library, MALFORMED),
    ROW("macho/far-needing.dylib", macho_rpath, MALFORMED),
    ROW("macho/far-needing.dylib", macho_rpath_endless, MALFORMED),
    ROW("macho/far-x86-64.dylib", macho_trie_far, MALFORMED),
    ROW("macho/far-x86-64.dylib", macho_trie_huge, MALFORMED),
    ROW("macho/far-x86-64.dylib", macho_trie_none, NO_ENTRY),
    ROW("macho/far-x86-64.dylib", macho_trie_loop, NO_ENTRY),
    ROW("macho/far-x86-64.dylib", macho_trie_zeros, MALFORMED),
    ROW("macho/far-universal.dylib", fat_none, NOT_AN_OBJECT),
    ROW("macho/far-universal.dylib", fat_java, NOT_AN_OBJECT),
    ROW("macho/far-universal.dylib", fat_far, TRUNCATED),
    ROW("macho/far-universal.dylib", fat_long, TRUNCATED),
    ROW("macho/far-universal.dylib", fat_elf, MALFORMED),
#undef ROW
};
enum { WRONGS = sizeof wrongs / sizeof *wrongs };

static void test_wrong(void **state)
{
    const struct wrong *row = *state;
    struct bytes bytes = load(row->file);
    row->change(&bytes);
    assert_int_equal(fault_of(bytes.at, bytes.size), row->fault);
    free(bytes.at);
}

int main(void)
{
    static struct CMUnitTest tests[1 + 3 * WHOLES + WRONGS] = { cmocka_unit_test(
        all_libraries_and_paths_are_read) };
    static char names[1 + 3 * WHOLES + WRONGS][96];
    static const struct {
        const char *name;
        void (*run)(void **state);
    } kinds[] = { { "whole", test_whole },
                  { "cut", test_cuts },
                  { "changed", test_changes } };
    size_t count = 1;
    for (size_t i = 0; i < 3 * WHOLES; i++, count++) {
        snprintf(names[count], sizeof names[count], "%s %s", wholes[i / 3].file,
                 kinds[i % 3].name);
        tests[count] = (struct CMUnitTest){ names[count], kinds[i % 3].run, NULL, NULL,
                                            (void *)(uintptr_t)&wholes[i / 3] };
    }
    for (size_t i = 0; i < WRONGS; i++, count++) {
        snprintf(names[count], sizeof names[count], "%s %s", wrongs[i].file,
                 wrongs[i].name);
        tests[count] = (struct CMUnitTest){ names[count], test_wrong, NULL, NULL,
                                            (void *)(uintptr_t)&wrongs[i] };
    }
    return _cmocka_run_group_tests("formats", tests, count, NULL, NULL);
}
