/* SPDX-License-Identifier: MIT */
/* test_elsewhere.c - library search on Windows and macOS: each row is one search, with all its
 * places in order. The letter before a place is its base: R the root, O the object's directory, P
 * the program's. */
#include "probe/object/elsewhere.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WINDOWS .object = { .format = OBJECT_PE, .bits = 64 }
#define MACOS   .object = { .format = OBJECT_MACHO, .bits = 64 }
#define FAR     "Far.framework/Versions/A/Far"

struct row {
    struct object object;
    const char *variables[VARIABLE_COUNT];
    const char *name;
    const char *at;     /* where the library is; NULL: nowhere */
    enum there there;   /* the file at `at`; default: THERE_FIT */
    const char *unseen; /* bases that the caller does not know */
    enum located located;
    const char *places; /* that were looked at */
};

static const struct row rows[] = {
    /* Windows: beside the file, beside the program, in the system's directory */
    { WINDOWS, .name = "far.dll", .located = LIBRARY_MISSING,
      .places = "O:far.dll P:far.dll R:Windows/System32/far.dll" },
    { .object = { .format = OBJECT_PE, .bits = 32 },
      .name = "far.dll",
      .located = LIBRARY_MISSING,
      .places = "O:far.dll P:far.dll R:Windows/SysWOW64/far.dll" },
    { WINDOWS, .name = "far.dll", .at = "P:far.dll", .located = LIBRARY_FOUND,
      .places = "O:far.dll P:far.dll" },
    { WINDOWS, .name = "far.dll", .at = "R:Windows/System32/far.dll", .unseen = "P",
      .located = LIBRARY_FOUND,
      .places = "O:far.dll P:far.dll R:Windows/System32/far.dll" },
    { WINDOWS, .name = "far.dll", .unseen = "P", .located = LIBRARY_UNKNOWN,
      .places = "O:far.dll P:far.dll R:Windows/System32/far.dll" },
    /* the first file found decides, whatever it is */
    { WINDOWS, .name = "far.dll", .at = "O:far.dll", .there = THERE_UNFIT, .unseen = "P",
      .located = LIBRARY_UNFIT, .places = "O:far.dll" },
    { WINDOWS, .name = "far", .located = LIBRARY_MISSING,
      .places = "O:far.dll P:far.dll R:Windows/System32/far.dll" },
    { WINDOWS, .name = "far.drv", .at = "O:far.drv", .located = LIBRARY_FOUND,
      .places = "O:far.drv" },
    /* libraries that Windows takes only from its own directory, or from no file */
    { WINDOWS, .name = "KERNEL32.dll", .at = "O:KERNEL32.dll", .located = LIBRARY_OF_SYSTEM,
      .places = "R:Windows/System32/KERNEL32.dll" },
    { WINDOWS, .name = "msvcrt.dll", .at = "R:Windows/System32/msvcrt.dll",
      .located = LIBRARY_FOUND, .places = "R:Windows/System32/msvcrt.dll" },
    { WINDOWS, .name = "kernel32x.dll", .at = "O:kernel32x.dll", .located = LIBRARY_FOUND,
      .places = "O:kernel32x.dll" },
    { WINDOWS, .name = "API-MS-Win-Core-File-L1-1-0.dll", .located = LIBRARY_OF_SYSTEM,
      .places = "" },
    { WINDOWS, .name = "ext-ms-win-gdi-l1-1-0.dll", .located = LIBRARY_OF_SYSTEM,
      .places = "" },
    /* paths */
    { WINDOWS, .name = "C:\\far\\far.dll", .at = "R:far/far.dll", .located = LIBRARY_FOUND,
      .places = "R:far/far.dll" },
    { WINDOWS, .name = "\\far\\far.dll", .located = LIBRARY_MISSING,
      .places = "R:far/far.dll" },
    { WINDOWS, .name = "D:\\far\\far.dll", .located = LIBRARY_MISSING, .places = "" },
    { WINDOWS, .name = "..\\far.dll", .located = LIBRARY_MISSING, .places = "" },
    { WINDOWS, .variables = { "/variable" }, .name = "far.dll", .located = LIBRARY_MISSING,
      .places = "O:far.dll P:far.dll R:Windows/System32/far.dll" },

    /* macOS: the name as a path first, then its last part in other directories */
    { MACOS, .name = "/opt/libfar.dylib", .at = "R:opt/libfar.dylib",
      .located = LIBRARY_FOUND, .places = "R:opt/libfar.dylib" },
    { MACOS, .name = "/opt/libfar.dylib", .located = LIBRARY_MISSING,
      .places = "R:opt/libfar.dylib R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    { MACOS, .variables = { [DYLD_FALLBACK_LIBRARY_PATH] = "/a:b::/c" },
      .name = "/opt/libfar.dylib", .located = LIBRARY_MISSING,
      .places = "R:opt/libfar.dylib R:a/libfar.dylib R:c/libfar.dylib" },
    { MACOS,
      .variables = { [DYLD_LIBRARY_PATH] = "/a:b::/c", [DYLD_FALLBACK_LIBRARY_PATH] = "" },
      .name = "/opt/libfar.dylib", .at = "R:usr/lib/libfar.dylib", .located = LIBRARY_FOUND,
      .places = "R:a/libfar.dylib R:c/libfar.dylib R:opt/libfar.dylib "
                "R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    /* an unsuitable file is skipped */
    { MACOS, .name = "/opt/libfar.dylib", .at = "R:opt/libfar.dylib", .there = THERE_UNFIT,
      .located = LIBRARY_UNFIT,
      .places = "R:opt/libfar.dylib R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    /* names with another base */
    { MACOS, .name = "@loader_path/../libfar.dylib", .at = "O:../libfar.dylib",
      .located = LIBRARY_FOUND, .places = "O:../libfar.dylib" },
    { MACOS, .name = "@executable_path/libfar.dylib", .unseen = "P",
      .located = LIBRARY_UNKNOWN,
      .places = "P:libfar.dylib R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    { MACOS, .name = "@loader_pathological/libfar.dylib", .at = "O:libfar.dylib",
      .located = LIBRARY_MISSING,
      .places = "R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    { .object = { .format = OBJECT_MACHO,
                  .rpaths = { "@loader_path", "@executable_path/../lib", "/opt/", "here" },
                  .rpath_count = 4 },
      .name = "@rpath/far/libfar.dylib",
      .located = LIBRARY_MISSING,
      .places = "O:far/libfar.dylib P:../lib/far/libfar.dylib R:opt/far/libfar.dylib "
                "R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    { .object = { .format = OBJECT_MACHO, .rpaths = { "/opt" }, .rpath_count = 1 },
      .name = "libfar.dylib",
      .at = "R:opt/libfar.dylib",
      .located = LIBRARY_FOUND,
      .places = "R:opt/libfar.dylib" },
    /* a bare name may refer to a library that exists in no file */
    { MACOS, .name = "libfar.dylib", .located = LIBRARY_PERHAPS,
      .places = "R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    { MACOS, .name = "libfar.so.1", .located = LIBRARY_MISSING,
      .places = "R:usr/local/lib/libfar.so.1 R:usr/lib/libfar.so.1" },
    { MACOS, .name = "@rpath/libfar.dylib", .at = "O:libfar.dylib",
      .located = LIBRARY_MISSING,
      .places = "R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    /* libraries of the system */
    { MACOS, .name = "/usr/lib/libfar.dylib", .located = LIBRARY_OF_SYSTEM,
      .places =
          "R:usr/lib/libfar.dylib R:usr/local/lib/libfar.dylib R:usr/lib/libfar.dylib" },
    { MACOS, .name = "/usr/lib/libfar.dylib", .at = "R:usr/lib/libfar.dylib",
      .located = LIBRARY_FOUND, .places = "R:usr/lib/libfar.dylib" },
    { MACOS, .name = "/usr/library/libfar.dylib", .located = LIBRARY_MISSING,
      .places = "R:usr/library/libfar.dylib R:usr/local/lib/libfar.dylib "
                "R:usr/lib/libfar.dylib" },
    /* frameworks */
    { MACOS, .variables = { [DYLD_LIBRARY_PATH] = "/a", [DYLD_FRAMEWORK_PATH] = "/f" },
      .name = "/opt/" FAR, .located = LIBRARY_MISSING,
      .places = "R:f/" FAR " R:opt/" FAR " R:Library/Frameworks/" FAR
                " R:System/Library/Frameworks/" FAR },
    { MACOS, .variables = { [DYLD_FALLBACK_FRAMEWORK_PATH] = "/g" }, .name = "/opt/" FAR,
      .at = "R:g/" FAR, .located = LIBRARY_FOUND, .places = "R:opt/" FAR " R:g/" FAR },
    { MACOS, .name = "/System/Library/Frameworks/" FAR, .located = LIBRARY_OF_SYSTEM,
      .places = "R:System/Library/Frameworks/" FAR " R:Library/Frameworks/" FAR
                " R:System/Library/Frameworks/" FAR },
    { MACOS, .variables = { [DYLD_LIBRARY_PATH] = "/a", [DYLD_FRAMEWORK_PATH] = "/f" },
      .name = "/opt/Far.framework/libfar.dylib", .at = "R:a/libfar.dylib",
      .located = LIBRARY_FOUND, .places = "R:a/libfar.dylib" },
};

struct looking {
    const struct row *row;
    char places[4096];
};

static enum there look(void *user, enum base base, const char *path)
{
    struct looking *looking = user;
    const struct row *row = looking->row;
    const char letter = "ROP"[base];
    char place[1100];
    snprintf(place, sizeof place, "%c:%s", letter, path);
    const size_t at = strlen(looking->places);
    snprintf(looking->places + at, sizeof looking->places - at, "%s%s", at ? " " : "",
             place);
    if (row->unseen && strchr(row->unseen, letter))
        return THERE_UNSEEN;
    return !row->at || strcmp(row->at, place) != 0 ? THERE_NOTHING
           : row->there                            ? row->there
                                                   : THERE_FIT;
}

static struct elsewhere elsewhere_of(const struct row *row, struct looking *looking)
{
    struct elsewhere elsewhere = { .object = &row->object, .look = look, .user = looking };
    memcpy(elsewhere.variables, row->variables, sizeof elsewhere.variables);
    return elsewhere;
}

static void places_are_those_of_the_system(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct looking looking = { .row = &rows[i] };
        const struct elsewhere elsewhere = elsewhere_of(&rows[i], &looking);
        const enum located located = library_elsewhere(&elsewhere, rows[i].name);
        if (located != rows[i].located || strcmp(looking.places, rows[i].places) != 0)
            print_error("row %zu, %s: %d, looked at %s\n", i, rows[i].name, (int)located,
                        looking.places);
        assert_int_equal(located, rows[i].located);
        assert_string_equal(looking.places, rows[i].places);
    }
}

/* A path that does not fit is skipped, not truncated. */
static void long_paths_are_no_places(void **state)
{
    static char name[3000], rpath[1000];
    (void)state;
    memset(name, 'n', sizeof name - 1);
    memset(rpath, 'r', sizeof rpath - 1);
    *name = *rpath = '/';
    const struct row macos = {
        .object = { .format = OBJECT_MACHO, .rpaths = { rpath, "/opt" }, .rpath_count = 2 }
    };
    const struct row windows = { WINDOWS };
    struct looking looking = { .row = &macos };
    struct elsewhere elsewhere = elsewhere_of(&macos, &looking);
    assert_int_equal(library_elsewhere(&elsewhere, name), LIBRARY_MISSING);
    assert_string_equal(looking.places, "");
    assert_int_equal(library_elsewhere(&elsewhere, "@rpath/a-library-that-is-not-so-long"),
                     LIBRARY_MISSING);
    assert_memory_equal(looking.places, "R:opt/a-library", 15);
    looking = (struct looking){ .row = &windows };
    elsewhere = elsewhere_of(&windows, &looking);
    assert_int_equal(library_elsewhere(&elsewhere, name + 1), LIBRARY_MISSING);
    assert_string_equal(looking.places, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_those_of_the_system),
        cmocka_unit_test(long_paths_are_no_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
