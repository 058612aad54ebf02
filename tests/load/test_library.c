/* SPDX-License-Identifier: MIT */
/* test_library.c - the loaded file is the one that was checked, even if its path then leads to
 * another file; and the loaded library's name is its path. The linker puts the functions below in
 * front of the system's (--wrap), for the library's objects alone. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the system ---- */

/* When the dynamic loader is called, the other file is moved to the path. */
static char path[512], another[512];
static bool no_proc;
static unsigned loaded; /* libraries */

int __real_stat64(const char *name, struct stat *info);
int __wrap_stat64(const char *name, struct stat *info);
int __wrap_stat64(const char *name, struct stat *info)
{
    const bool missing = no_proc && strncmp(name, "/proc/", 6) == 0;
    return __real_stat64(missing ? "/proc/none" : name, info);
}

char *__wrap_helper_program(const char *name, bool elevated);
char *__wrap_helper_program(const char *name, bool elevated)
{
    (void)elevated;
    return strcmp(name, "hw-probe") == 0 ? strdup(PROBE) : NULL;
}

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    if (flags & RTLD_NOLOAD)
        return __real_dlopen(name, flags);
    loaded++;
    if (path[0]) {
        /* Open for good: no later file gets the number of this one. */
        assert_true(open(path, O_RDONLY | O_CLOEXEC) >= 0);
        assert_int_equal(rename(another, path), 0);
        path[0] = '\0';
    }
    return __real_dlopen(name, flags);
}

/* ---- mapped files ---- */

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

static char message[1024]; /* of the plugin that stopped last */

/* Opens the directory and closes it. The plugin must be rejected for `reason`; "": used. */
static void open_for(const char *directory, const char *plugin, const char *reason)
{
    struct hw_context *context;
    loaded = 0;
    assert_int_equal(
        open_on(directory, &(struct hw_options){ .flags = HW_OPEN_ANYWAY }, &context),
        HW_OK);
    use_all(context);
    json_t *json = report(context);
    const json_t *entry = candidate(json, plugin);
    check_reason(entry, reason);
    snprintf(message, sizeof message, "%s", *reason ? text_of(entry, "message") : "");
    json_decref(json);
    hw_close(context);
}

/* Replaces a plugin by this one after the library's last look at its path. */
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

/* The other file's constructor crashes. */
static void another_file_at_the_last_moment(void **state)
{
    (void)state;
    replace_late("moment", "ends_constructor");
}

/* Without /proc only the path can be loaded: the wrong file is loaded, but not used. */
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

/* The dynamic loader would remember each name. */
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

/* Two files are swapped by rename. */
static void two_change_places(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        make_directory(lair("place-%d", i));
        put_plugin(lair("place-%d", i), "good");
        open_for(lair("place-%d", i), lair("place-%d/hw_good.so", i), "");
    }
    assert_int_equal(renameat2(AT_FDCWD, lair("place-0/hw_good.so"), AT_FDCWD,
                               lair("place-1/hw_good.so"), RENAME_EXCHANGE),
                     0);
    for (int i = 0; i < 2; i++) {
        open_for(lair("place-%d", i), lair("place-%d/hw_good.so", i), "");
        assert_int_equal(loaded, 0);
    }
}

/* It needs a version that the C library does not have. */
static void the_message_has_its_path(void **state)
{
    static const char needed[] = "GLIBC_";
    size_t size;
    unsigned char *bytes = read_file(built("plain"), &size), *at = bytes;
    (void)state;
    while ((at = memmem(at, size - (size_t)(at - bytes), needed, sizeof needed - 1)))
        at[sizeof needed - 3] = 'X';
    make_directory(lair("version"));
    write_file(lair("version/hw_plain.so"), bytes, size);
    free(bytes);
    open_for(lair("version"), lair("version/hw_plain.so"), "load-failed");
    assert_non_null(strstr(message, "GLIBX_"));
    assert_non_null(strstr(message, lair("version/hw_plain.so")));
    assert_null(strstr(message, "/proc/"));
}

/* The copy's descriptors have the same numbers, and the dynamic loader remembers files by name. */
static void another_copy_of_this_library(void **state)
{
    enum hw_status (*open_it)(const struct hw_options *, struct hw_context **);
    void (*close_it)(struct hw_context *);
    struct hw_device *(*use_it)(struct hw_context *);
    struct hw_context *context;
    void *copy = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    (void)state;
    assert_non_null(copy);
    *(void **)&open_it = dlsym(copy, "hw_open");
    *(void **)&close_it = dlsym(copy, "hw_close");
    *(void **)&use_it = dlsym(copy, "hw_device_default");
    static const char *const names[] = { "view", "titled" };
    for (int i = 0; i < 2; i++) {
        make_directory(lair("copy-%s", names[i]));
        put_plugin(lair("copy-%s", names[i]), names[i]);
    }
    open_for(lair("copy-view"), lair("copy-view/hw_view.so"), "");
    assert_int_equal(open_it(&(struct hw_options){ .size = sizeof(struct hw_options),
                                                   .plugin_path = lair("copy-titled:!"),
                                                   .cache_dir = "off" },
                             &context),
                     HW_OK);
    assert_non_null(use_it(context));
    close_it(context);
    assert_true(process_has(lair("copy-view/hw_view.so")));
    assert_true(process_has(lair("copy-titled/hw_titled.so")));
}

/* The dynamic loader searches beside the file name that it is given. */
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
        cmocka_unit_test(two_change_places),
        cmocka_unit_test(the_message_has_its_path),
        cmocka_unit_test(another_copy_of_this_library),
        cmocka_unit_test(it_is_linked_with_one_beside_it),
    };
    return cmocka_run_group_tests(tests, lair_open, lair_close);
}
