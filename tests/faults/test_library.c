/* SPDX-License-Identifier: MIT */
/* test_library.c - the file that was checked is the one that is loaded, whatever is at its path at
 * that moment; and the library has its path as its name. The linker puts the functions below in
 * front of the system's (--wrap), for the library's objects alone. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the system ---- */

static char path[512],
    another[512]; /* as the loader is called, the other file takes that path */
static bool no_proc;
static unsigned loaded; /* libraries */

int __real_stat64(const char *name, struct stat *info);
int __wrap_stat64(const char *name, struct stat *info);
int __wrap_stat64(const char *name, struct stat *info)
{
    const bool missing = no_proc && strncmp(name, "/proc/", 6) == 0;
    return __real_stat64(missing ? "/proc/none" : name, info);
}

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    if (flags & RTLD_NOLOAD)
        return __real_dlopen(name, flags);
    loaded++;
    if (path[0]) {
        assert_int_equal(rename(another, path), 0);
        path[0] = '\0';
    }
    return __real_dlopen(name, flags);
}

/* ---- what is open ---- */

struct seen {
    const char *path;
    bool there, odd;
};

static int see(struct dl_phdr_info *info, size_t size, void *user)
{
    struct seen *seen = user;
    (void)size;
    seen->there |= strcmp(info->dlpi_name, seen->path) == 0;
    seen->odd |= strncmp(info->dlpi_name, "/proc/", 6) == 0;
    return 0;
}

static bool process_has(const char *library)
{
    struct seen seen = { .path = library };
    dl_iterate_phdr(see, &seen);
    assert_false(seen.odd);
    return seen.there;
}

/* Opens the directory and closes it. The plugin stops for `reason`; "": it is used. */
static void open_for(const char *directory, const char *plugin, const char *reason)
{
    struct hw_context *context;
    loaded = 0;
    assert_int_equal(
        open_on(directory, &(struct hw_options){ .flags = HW_OPEN_ANYWAY }, &context),
        HW_OK);
    json_t *json = report(context);
    check_reason(candidate(json, plugin), reason);
    json_decref(json);
    hw_close(context);
}

/* A plugin is replaced by this one after the library's last look at its path. */
static void replace_late(const char *directory, const char *other)
{
    make_directory(lair("%s", directory));
    put_plugin(lair("%s", directory), "good");
    put_plugin(lair("."), other);
    snprintf(path, sizeof path, "%s", lair("%s/hw_good.so", directory));
    snprintf(another, sizeof another, "%s", lair("hw_%s.so", other));
    open_for(lair("%s", directory), lair("%s/hw_good.so", directory), "changed-file");
    assert_int_equal(loaded, 1);
    assert_int_equal(access(another, F_OK), -1);
}

/* ---- tests ---- */

/* The constructor of the other one crashes. */
static void another_file_at_the_last_moment(void **state)
{
    (void)state;
    replace_late("moment", "ends_constructor");
}

/* Then the path is all there is: the wrong file is loaded, and not used. */
static void the_same_without_proc(void **state)
{
    (void)state;
    no_proc = true;
    replace_late("path", "view");
    no_proc = false;
}

static void its_name_is_its_path(void **state)
{
    (void)state;
    make_directory(lair("name"));
    put_plugin(lair("name"), "good");
    open_for(lair("name"), lair("name/hw_good.so"), "");
    assert_true(process_has(lair("name/hw_good.so")));
}

/* The system's loader would remember each name. */
static void it_is_loaded_once(void **state)
{
    (void)state;
    open_for(lair("name"), lair("name/hw_good.so"), "");
    assert_int_equal(loaded, 0);
    make_directory(lair("link"));
    assert_int_equal(symlink(lair("name/hw_good.so"), lair("link/hw_good.so")), 0);
    open_for(lair("link"), lair("link/hw_good.so"), "");
    assert_int_equal(loaded, 0);
}

static void the_program_has_loaded_it(void **state)
{
    (void)state;
    make_directory(lair("own"));
    put_plugin(lair("own"), "good");
    assert_non_null(dlopen(lair("own/hw_good.so"), RTLD_NOW | RTLD_LOCAL));
    open_for(lair("own"), lair("own/hw_good.so"), "");
    assert_int_equal(loaded, 1);
    assert_true(process_has(lair("own/hw_good.so")));
}

/* The system's loader searches beside the name that it is given. */
static void it_is_linked_with_one_beside_it(void **state)
{
    size_t size;
    unsigned char *bytes = read_file(FIXTURES "/libfriend.so", &size);
    (void)state;
    make_directory(lair("linked"));
    put_plugin(lair("linked"), "linked");
    write_file(lair("linked/libfriend.so"), bytes, size);
    free(bytes);
    open_for(lair("linked"), lair("linked/hw_linked.so"), "");
    assert_true(process_has(lair("linked/hw_linked.so")));
    assert_true(process_has(lair("linked/libfriend.so")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_file_at_the_last_moment),
        cmocka_unit_test(the_same_without_proc),
        cmocka_unit_test(its_name_is_its_path),
        cmocka_unit_test(it_is_loaded_once),
        cmocka_unit_test(the_program_has_loaded_it),
        cmocka_unit_test(it_is_linked_with_one_beside_it),
    };
    return cmocka_run_group_tests(tests, lair_open, lair_close);
}
