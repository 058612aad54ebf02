/* SPDX-License-Identifier: MIT */
/* test_mapped.c - whether the code in the process came from a file: the file itself, a file with
 * the same contents (which file systems may show under another number), and others. */
#define _GNU_SOURCE
#include "fixture.h"

#include "open/mapped.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const void *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    const void *function = dlsym(library, "hw_plugin_entry");
    assert_non_null(function);
    return function;
}

static bool came_from(const void *function, const char *path)
{
    struct stat file;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && !fstat(fd, &file));
    const bool same = mapped_from(function, fd, &file);
    close(fd);
    return same;
}

/* The fixture with a changed byte in its manifest, which is a note. */
static void put_changed(const char *path)
{
    static const char name[] = "name=";
    size_t size;
    unsigned char *bytes = read_file(built("good"), &size),
                  *at = memmem(bytes, size, name, sizeof name - 1);
    assert_non_null(at);
    at[sizeof name - 1] ^= 1;
    write_file(path, bytes, size);
    free(bytes);
}

static void put_headers_alone(const char *path)
{
    enum { SOME = 100 };
    size_t size;
    unsigned char *bytes = read_file(built("good"), &size);
    write_file(path, bytes, SOME);
    free(bytes);
}

static void the_file_itself(void **state)
{
    (void)state;
    put_plugin(lair("."), "good");
    assert_true(came_from(load(lair("hw_good.so")), lair("hw_good.so")));
}

static void a_file_with_the_same_contents(void **state)
{
    (void)state;
    assert_true(came_from(load(lair("hw_good.so")), built("good")));
}

static void another_file(void **state)
{
    (void)state;
    const void *function = load(lair("hw_good.so"));
    put_changed(lair("changed"));
    assert_false(came_from(function, lair("changed")));
    put_headers_alone(lair("cut"));
    assert_false(came_from(function, lair("cut")));
    assert_false(came_from(function, built("late")));
    write_file(lair("empty"), "", 0);
    assert_false(came_from(function, lair("empty")));
}

/* For a moment, the path led to another file. The right one was there before and after. */
static void the_path_alone_says_nothing(void **state)
{
    (void)state;
    put_plugin(lair("."), "late");
    const void *function = load(lair("hw_late.so"));
    assert_int_equal(rename(lair("hw_good.so"), lair("hw_late.so")), 0);
    assert_false(came_from(function, lair("hw_late.so")));
}

static void no_library(void **state)
{
    (void)state;
    assert_false(came_from(state, built("good")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_itself), cmocka_unit_test(a_file_with_the_same_contents),
        cmocka_unit_test(another_file),    cmocka_unit_test(the_path_alone_says_nothing),
        cmocka_unit_test(no_library),
    };
    return cmocka_run_group_tests(tests, lair_open, lair_close);
}
