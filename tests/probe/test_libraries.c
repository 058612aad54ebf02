/* SPDX-License-Identifier: MIT */
/* test_libraries.c - the libraries that a plugin needs: where they are searched, and who may write
 * there. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A library beside the plugin must be complete, and other users must not be able to write
 * to it. */
static void test_beside(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    const struct {
        mode_t mode;
        bool cut;
        const char *reason;
    } rows[] = { { 0644, false, "" },
                 { 0646, false, "untrusted-mode" },
                 { 0644, true, "malformed" } };
    size_t size;
    unsigned char *bytes = read_file(built("plain"), &size);
    (void)state;
    make_directory(lair("beside"));
    put_plugin(lair("beside"), "beside");
    assert_int_equal(open_on(lair("beside"), NULL, &context), HW_NO_DEVICE);
    assert_non_null(strstr(hw_message(), "libbeside.so.1"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(lair("beside/libbeside.so.1"), bytes, rows[i].cut ? size / 2 : size);
        assert_int_equal(chmod(lair("beside/libbeside.so.1"), rows[i].mode), 0);
        assert_int_equal(open_on(lair("beside"), &options, &context), HW_OK);
        json_t *json = report(context);
        const json_t *entry = candidate(json, lair("beside/hw_beside.so"));
        check_reason(entry, rows[i].reason);
        if (*rows[i].reason)
            assert_non_null(strstr(text_of(entry, "message"), "/libbeside.so.1: "));
        json_decref(json);
        hw_close(context);
    }
    free(bytes);
}

/* A library loaded in the process is known by its own SONAME, whatever its file is called. */
static void test_loaded(void **state)
{
    struct hw_context *context;
    const struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    char path[4096];
    size_t size;
    (void)state;
    make_directory(lair("loaded"));
    put_plugin(lair("loaded"), "needs_bundled");
    const char *build = built("plain");
    snprintf(path, sizeof path, "%.*s/libhw_bundled.so.1",
             (int)(strrchr(build, '/') - build), build);
    unsigned char *bytes = read_file(path, &size);
    write_file(lair("loaded/of-another-name"), bytes, size);
    free(bytes);
    for (int i = 0; i < 2; i++) {
        if (i && !dlopen(lair("loaded/of-another-name"), RTLD_NOW | RTLD_LOCAL))
            fail_msg("%s", dlerror());
        assert_int_equal(open_on(lair("loaded"), &options, &context), HW_OK);
        json_t *json = report(context);
        check_reason(candidate(json, lair("loaded/hw_needs_bundled.so")),
                     i ? "" : "needs-library");
        json_decref(json);
        hw_close(context);
    }
}

static void check_more(mode_t mode, const char *reason)
{
    struct hw_context *context;
    struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    if (mode)
        assert_int_equal(chmod(lair("rpath/more"), mode), 0);
    assert_int_equal(open_on(lair("rpath"), &options, &context), HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("rpath/hw_beside.so"));
    check_reason(entry, reason);
    if (*reason)
        assert_non_null(strstr(text_of(entry, "message"), lair("rpath/more")));
    json_decref(json);
    hw_close(context);
}

/* Other users must not be able to add a library in the plugin's rpath, even if the needed one was
 * found elsewhere. */
static void test_rpath(void **state)
{
    struct stat info;
    size_t size;
    unsigned char *bytes = read_file(built("plain"), &size);
    (void)state;
    make_directory(lair("rpath"));
    put_plugin(lair("rpath"), "beside");
    write_file(lair("rpath/libbeside.so.1"), bytes, size);
    free(bytes);
    check_more(0, ""); /* there is no such directory, and only this user can make it */
    make_directory(lair("rpath/more"));
    check_more(0755, "");
    check_more(0777, "untrusted-path");
    check_more(01777, "untrusted-path");
    assert_int_equal(rmdir(lair("rpath/more")), 0);
    assert_int_equal(symlink("/tmp/hw-no-such-directory", lair("rpath/more")), 0);
    if (stat("/tmp", &info) == 0 && info.st_mode & S_IWOTH) {
        struct hw_context *context;
        struct hw_options options = { .flags = HW_OPEN_ANYWAY };
        assert_int_equal(open_on(lair("rpath"), &options, &context), HW_OK);
        json_t *json = report(context);
        check_reason(candidate(json, lair("rpath/hw_beside.so")), "untrusted-path");
        json_decref(json);
        hw_close(context);
    }
}

/* A library found by LD_LIBRARY_PATH is used by every program, so the only check is that it
 * is complete. */
static void test_library_path(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    size_t size;
    unsigned char *bytes = read_file(built("plain"), &size);
    (void)state;
    make_directory(lair("path"));
    make_directory(lair("elsewhere"));
    put_plugin(lair("path"), "beside");
    write_file(lair("elsewhere/libbeside.so.1"), bytes, size);
    assert_int_equal(chmod(lair("elsewhere/libbeside.so.1"), 0666), 0);
    setenv("LD_LIBRARY_PATH", lair("elsewhere"), 1);
    for (int cut = 0; cut < 2; cut++) {
        assert_int_equal(open_on(lair("path"), &options, &context), HW_OK);
        json_t *json = report(context);
        check_reason(candidate(json, lair("path/hw_beside.so")), cut ? "malformed" : "");
        json_decref(json);
        hw_close(context);
        assert_int_equal(truncate(lair("elsewhere/libbeside.so.1"), 1000), 0);
    }
    unsetenv("LD_LIBRARY_PATH");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_loaded),
        cmocka_unit_test(test_rpath),
        cmocka_unit_test(test_library_path),
    };
    return cmocka_run_group_tests_name("libraries", tests, lair_open, lair_close);
}
