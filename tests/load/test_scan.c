/* SPDX-License-Identifier: MIT */
/* test_scan.c - searching a directory: names, titles, links, permissions, plugins.lock, and
 * files that precede or hide another. */
#define _GNU_SOURCE
#include "fixture.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_inproc(void)
{
    const char *probe = getenv("HW_TEST_PROBE");
    return probe && strcmp(probe, "inproc") == 0;
}

/* Messages about names with invalid characters or too many. */
static void test_long_name(void **state)
{
    struct hw_context *context;
    (void)state;
    make_directory(lair("long"));
    write_file(lair("long/hw_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.so"), "", 0); /* 32 */
    assert_int_equal(open_on(lair("long"), NULL, &context), HW_NO_DEVICE);
    assert_non_null(
        strstr(hw_message(), "the <name> in hw_<name>.so has 32 bytes; at most 31"));
}

/* A file that has a likely mistake in its name is listed with the correct name. Other files
 * in the directory are not listed. */
static void test_misnamed(void **state)
{
    static const char *const others[] = { "libplain.so", "libhw.so.1",
                                          "README",      "hw_plain.so.conf",
                                          "hw_plain.c",  "plain.so.1",
                                          ".so" };
    static const char *const wrong[][2] = {
        { "Mine.so", "Rename it to hw_mine.so" },
        { "libhw_mine.so", "Rename it to hw_mine.so" },
        { "hw-mine.so", "Rename it to hw_mine.so" },
        { "hw_mine.so.1.2", "Rename it to hw_mine.so" },
        { "hw_Mine.so", "Rename it to hw_mine.so" },
        { "hw_m ine.so", "Rename it" },
    };
    struct hw_context *context;
    (void)state;
    make_directory(lair("misnamed_all"));
    put_plugin(lair("misnamed_all"), "good");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        write_file(lair("misnamed_all/%s", others[i]), "", 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        write_file(lair("misnamed_all/%s", wrong[i][0]), "", 0);
    /* Names that ldconfig makes for one plugin. */
    assert_int_equal(symlink("hw_good.so", lair("misnamed_all/hw_good.so.1")), 0);
    assert_int_equal(open_on(lair("misnamed_all"), NULL, &context), HW_OK);
    json_t *json = report(context);
    assert_int_equal(json_array_size(json_object_get(json, "candidates")),
                     1 + sizeof wrong / sizeof *wrong);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const json_t *entry = candidate(json, lair("misnamed_all/%s", wrong[i][0]));
        check_reason(entry, "bad-name");
        assert_string_equal(text_of(entry, "remedy"), wrong[i][1]);
    }
    json_decref(json);
    hw_close(context);
}

/* A directory has more files than are listed. Its listed plugins and those of the next
 * directory can be used. */
static void test_many_files(void **state)
{
    enum { FILES = 4097 };
    struct hw_context *context;
    char path[8192];
    (void)state;
    make_directory(lair("many"));
    make_directory(lair("few"));
    put_plugin(lair("many"), "good");
    put_plugin(lair("few"), "plain");
    for (int i = 0; i < FILES; i++)
        write_file(lair("many/hw_x%04d.so", i), "", 0);
    snprintf(path, sizeof path, "%s:%s", lair("many"), lair("few"));
    assert_int_equal(open_on(path, NULL, &context), HW_OK);
    json_t *json = report(context);
    check_good(context, json, lair("many/hw_good.so"));
    check_reason(candidate(json, lair("few/hw_plain.so")), "");
    assert_null(candidate(json, lair("many/hw_x4096.so")));
    const json_t *entry = json_array_get(json_object_get(json, "directories"), 0);
    assert_string_equal(
        text_of(entry, "state"),
        "read in part: it has 4098 plugin files, and the first 4096 are listed");
    json_decref(json);
    hw_close(context);
}

/* The title comes from the manifest, where an incomplete UTF-8 character becomes U+FFFD.
 * Without a title in the manifest, or if the file was not read, it is the name in capitals.
 * A file without a valid name has no title. */
static void test_titles(void **state)
{
    struct hw_context *context;
    (void)state;
    make_directory(lair("titles"));
    put_plugin(lair("titles"), "titled");
    put_plugin(lair("titles"), "good");
    put_plugin(lair("titles"), "manifest_title_long");
    write_file(lair("titles/hw_No.so"), "", 0);
    assert_int_equal(open_on(lair("titles"), NULL, &context), HW_OK);
    json_t *json = report(context);
    const struct {
        const char *path, *title;
    } rows[] = {
        { lair("titles/hw_titled.so"), "The plugin with the title Zo\u00eb\ufffd" },
        { lair("titles/hw_good.so"), "GOOD" },
        { lair("titles/hw_manifest_title_long.so"), "MANIFEST_TITLE_LONG" },
        { lair("titles/hw_No.so"), "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(text_of(candidate(json, rows[i].path), "title"), rows[i].title);
    json_decref(json);
    hw_close(context);

    struct hw_options options = { .disable = "titled" };
    assert_int_equal(open_on(lair("titles"), &options, &context), HW_OK);
    json = report(context);
    assert_string_equal(text_of(candidate(json, rows[0].path), "title"), "TITLED");
    json_decref(json);
    hw_close(context);
}

/* Terminal control characters are escaped in the report, including those of two bytes in UTF-8. */
static void test_control_characters(void **state)
{
    char text[32768];
    struct hw_context *context;
    (void)state;
    make_directory(lair("control"));
    write_file(lair("control/hw_\x1b\xc2\x9b.so"), "", 0);
    put_plugin(lair("control"), "good");
    assert_int_equal(open_on(lair("control"), NULL, &context), HW_OK);
    assert_true(hw_explain(context, text, sizeof text) < sizeof text);
    assert_non_null(strstr(text, "control/hw_\\u001b\\u009b.so"));
    assert_null(strstr(text, "\xc2\x9b"));
    hw_close(context);
}

/* A file that exists but is not readable by this user. */
static void test_unreadable(void **state)
{
    struct hw_context *context;
    (void)state;
    make_directory(lair("unreadable"));
    put_plugin(lair("unreadable"), "good");
    put_plugin(lair("unreadable"), "plain");
    assert_int_equal(chmod(lair("unreadable/hw_plain.so"), 0), 0);
    bool root = geteuid() == 0; /* root can read every file */
    assert_true(!root || seteuid(65534) == 0);
    enum hw_status status = open_on(lair("unreadable"), NULL, &context);
    assert_true(!root || seteuid(0) == 0);
    assert_int_equal(status, HW_OK);
    json_t *json = report(context);
    check_reason(candidate(json, lair("unreadable/hw_plain.so")), "unreadable");
    check_good(context, json, lair("unreadable/hw_good.so"));
    json_decref(json);
    hw_close(context);
}

/* HW_TRUST=off accepts a file that all users can write to. */
static void test_trust_off(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .trust = "off" };
    (void)state;
    make_directory(lair("trust"));
    put_plugin(lair("trust"), "good");
    assert_int_equal(chmod(lair("trust/hw_good.so"), 0666), 0);
    assert_int_equal(open_on(lair("trust"), NULL, &context), HW_NO_DEVICE);
    assert_int_equal(open_on(lair("trust"), &options, &context), HW_OK);
    hw_close(context);
    assert_int_equal(chmod(lair("trust/hw_good.so"), 0644), 0);
    assert_int_equal(chmod(lair("trust"), 0777), 0);
    assert_int_equal(open_on(lair("trust"), NULL, &context), HW_NO_DEVICE);
    assert_non_null(strstr(hw_message(), "all users can write to the directory"));
    assert_int_equal(open_on(lair("trust"), &options, &context), HW_OK);
    hw_close(context);
}

/* Two directories contain a plugin of the same name: the first one is used, the second one
 * is listed. */
static void test_shadowed(void **state)
{
    struct hw_context *context;
    char path[8192];
    (void)state;
    make_directory(lair("first"));
    make_directory(lair("second"));
    put_plugin(lair("first"), "good");
    put_plugin(lair("second"), "good");
    snprintf(path, sizeof path, "%s:%s:%s", lair("first"), lair("second"),
             lair("first/../first"));
    assert_int_equal(open_on(path, NULL, &context), HW_OK);
    json_t *json = report(context);
    assert_int_equal(json_array_size(json_object_get(json, "candidates")), 2);
    check_reason(candidate(json, lair("second/hw_good.so")), "shadowed");
    check_good(context, json, lair("first/hw_good.so"));
    assert_string_equal(
        text_of(json_array_get(json_object_get(json, "directories"), 2), "state"),
        "searched already");
    json_decref(json);
    hw_close(context);
}

/* An unusable file does not prevent the use of the next file of the same name. */
static void test_passed_over(void **state)
{
    struct hw_context *context;
    char path[8192];
    (void)state;
    make_directory(lair("broken"));
    write_file(lair("broken/hw_good.so"), "MZ", 2);
    snprintf(path, sizeof path, "%s:%s:%s", lair("broken"), lair("first"), lair("second"));
    struct hw_options options = { .backends = "good" };
    assert_int_equal(open_on(path, &options, &context), HW_OK);
    json_t *json = report(context);
    check_reason(candidate(json, lair("broken/hw_good.so")), "wrong-machine");
    check_reason(candidate(json, lair("second/hw_good.so")), "shadowed");
    check_good(context, json, lair("first/hw_good.so"));
    json_decref(json);
    hw_close(context);
}

/* Nor does a file that hw-probe refuses before it loads it: one that needs a missing library. */
static void test_passed_over_by_probe(void **state)
{
    struct hw_context *context;
    char path[8192];
    size_t size;
    /* A plugin with a sanitizer needs the sanitizer's library instead of libc. */
    static const char *const needed[] = { "libc.so.", "libasan.so.", "libtsan.so." };
    unsigned char *bytes = read_file(built("good"), &size), *name = NULL;
    (void)state;
    if (is_inproc()) {
        free(bytes);
        return;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed && !name; i++)
        name = memmem(bytes, size, needed[i], strlen(needed[i]));
    assert_non_null(name);
    name[3] = 'q';
    make_directory(lair("lacking"));
    write_file(lair("lacking/hw_good.so"), bytes, size);
    free(bytes);
    snprintf(path, sizeof path, "%s:%s:%s", lair("lacking"), lair("first"), lair("second"));
    for (int i = 0; i < 2; i++) { /* then with the verdicts of the cache */
        assert_int_equal(open_on(path, NULL, &context), HW_OK);
        json_t *json = report(context);
        check_reason(candidate(json, lair("lacking/hw_good.so")), "needs-library");
        check_reason(candidate(json, lair("second/hw_good.so")), "shadowed");
        check_good(context, json, lair("first/hw_good.so"));
        json_decref(json);
        hw_close(context);
    }
}

/* An unusable link does not prevent the use of its target. */
static void test_bad_links(void **state)
{
    struct hw_context *context;
    char path[8192];
    (void)state;
    make_directory(lair("linked"));
    make_directory(lair("misnamed"));
    make_directory(lair("writable"));
    put_plugin(lair("linked"), "good");
    const char *links[] = { lair("misnamed/hw_best.so"), lair("writable/hw_good.so") };
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(symlink(lair("linked/hw_good.so"), links[i]), 0);
    assert_int_equal(chmod(lair("writable"), 0777), 0);
    snprintf(path, sizeof path, "%s:%s:%s", lair("misnamed"), lair("writable"),
             lair("linked"));
    assert_int_equal(open_on(path, NULL, &context), HW_OK);
    json_t *json = report(context);
    check_reason(candidate(json, links[0]), "bad-manifest");
    check_reason(candidate(json, links[1]), "untrusted-path");
    check_good(context, json, lair("linked/hw_good.so"));
    json_decref(json);
    hw_close(context);
}

/* A plugin file that the settings name may have any file name. Its manifest contains the
 * name of the plugin. */
static void test_named_file(void **state)
{
    struct hw_context *context;
    size_t size;
    unsigned char *bytes = read_file(built("good"), &size);
    (void)state;
    make_directory(lair("named"));
    write_file(lair("named/libanything.so"), bytes, size);
    free(bytes);
    assert_int_equal(open_on(lair("named/libanything.so"), NULL, &context), HW_OK);
    json_t *json = report(context);
    check_good(context, json, lair("named/libanything.so"));
    json_decref(json);
    hw_close(context);
    assert_int_equal(rename(lair("named/libanything.so"), lair("named/anything.bin")), 0);
    assert_int_equal(open_on(lair("named/anything.bin"), NULL, &context), HW_OK);
    json = report(context);
    check_good(context, json, lair("named/anything.bin"));
    const json_t *entry = json_array_get(json_object_get(json, "directories"), 0);
    assert_string_equal(text_of(entry, "path"), lair("named/anything.bin"));
    assert_string_equal(text_of(entry, "state"), "a file");
    json_decref(json);
    hw_close(context);
    make_directory(lair("named/hw_directory.so"));
    assert_int_equal(open_on(lair("named/hw_directory.so"), NULL, &context), HW_NO_DEVICE);
    assert_non_null(strstr(hw_message(), "a directory, not a regular file"));
    struct hw_options options = { .disable = "good" };
    assert_int_equal(open_on(lair("named/anything.bin"), &options, &context), HW_NO_DEVICE);
    assert_int_equal(open_on("named/libanything.so", NULL, &context), HW_INVALID);
    assert_non_null(strstr(hw_message(), "absolute"));
    assert_int_equal(open_on(lair("named/nothing.so"), NULL, &context), HW_NO_DEVICE);
    assert_int_equal(open_on(lair("nowhere"), NULL, &context), HW_NO_DEVICE);
    assert_non_null(strstr(hw_message(), "nowhere"));
}

/* A plugin that states no rank comes after the CPU (rank 90). */
static void test_default_rank(void **state)
{
    struct hw_context *context;
    (void)state;
    make_directory(lair("rank"));
    put_plugin(lair("rank"), "good");
    assert_int_equal(open_on(lair("rank"), NULL, &context), HW_OK);
    json_t *json = report(context);
    const json_t *manifest = json_object_get(candidate(json, lair("rank/hw_good.so")),
                                             "manifest");
    assert_int_equal(json_integer_value(json_object_get(manifest, "rank")), 100);
    json_decref(json);
    hw_close(context);
}

/* A report lists the plugins of all other directories, even if one entry is faulty. */
static void test_bad_path(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    (void)state;
    make_directory(lair("bad_path"));
    put_plugin(lair("bad_path"), "good");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "relative:%s", lair("bad_path"));
    assert_int_equal(open_on(path, &options, &context), HW_OK);
    json_t *json = report(context);
    assert_non_null(strstr(text_of(json, "open_error"), "must be an absolute path"));
    check_good(context, json, lair("bad_path/hw_good.so"));
    json_decref(json);
    hw_close(context);
}

/* With plugins.lock in its directory, a plugin is loaded only if the lock lists its content.
 * HW_PROBE=inproc, which does not read the lock, loads none. */
static void test_lock(void **state)
{
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
    static const struct {
        const char *text, *reason;
    } rows[] = { { "", "not-locked" },
                 { ZEROS "  hw_other.so\n", "not-locked" },
                 { ZEROS "  hw_good.so\n", "not-locked" },
                 { ZEROS " *hw_good.so\n", "not-locked" },
                 { ZEROS "  hw_good.so", "not-locked" },
                 { ZEROS "  hw_good.so\n" ZEROS "  hw_good.so\n", "not-locked" },
                 { ZEROS "  hw_good.so\n\n", "not-locked" },
                 { ZEROS "0  hw_good.so\n", "not-locked" },
                 { ZEROS "  ./hw_good.so\n", "not-locked" } };
#undef ZEROS
    struct hw_context *context;
    struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    (void)state;
    make_directory(lair("lock"));
    put_plugin(lair("lock"), "good");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(lair("lock/plugins.lock"), rows[i].text, strlen(rows[i].text));
        assert_int_equal(open_on(lair("lock"), &options, &context), HW_OK);
        json_t *json = report(context);
        const json_t *entry = candidate(json, lair("lock/hw_good.so"));
        check_reason(entry, is_inproc() ? "not-locked" : rows[i].reason);
        assert_non_null(strstr(text_of(entry, "message"), "/plugins.lock"));
        json_decref(json);
        hw_close(context);
    }
}

/* A lock that is a dangling link stops the plugin, also if its verdict without a lock is known. */
static void test_dangling_lock(void **state)
{
    struct hw_context *context;
    const struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    (void)state;
    make_directory(lair("dangling"));
    put_plugin(lair("dangling"), "good");
    assert_int_equal(open_on(lair("dangling"), &options, &context), HW_OK);
    hw_close(context);
    assert_int_equal(symlink("/nonexistent/lock", lair("dangling/plugins.lock")), 0);
    assert_int_equal(open_on(lair("dangling"), &options, &context), HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("dangling/hw_good.so"));
    assert_string_equal(text_of(entry, "state"), "stopped");
    assert_non_null(strstr(text_of(entry, "message"), "/plugins.lock"));
    json_decref(json);
    hw_close(context);
}

/* A plugin without hardware is tried only if the settings name its backend or its file. */
static void test_idle(void **state)
{
    const char *const directory = lair("idle"), *const file = lair("idle/hw_match_none.so");
    const struct {
        const char *path, *reason;
        struct hw_options options;
    } rows[] = { { directory, "no-hardware", { .backends = "*" } },
                 { directory, "no-hardware", { .backends = "match_*" } },
                 { directory, "", { .backends = "match_none" } },
                 { directory, "", { .require = "match_none" } },
                 { file, "", { .backends = "*" } } };
    (void)state;
    make_directory(directory);
    put_plugin(directory, "match_none");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hw_context *context;
        struct hw_options options = rows[i].options;
        options.flags = HW_OPEN_ANYWAY;
        assert_int_equal(open_on(rows[i].path, &options, &context), HW_OK);
        json_t *json = report(context);
        const json_t *entry = candidate(json, file);
        check_reason(entry, rows[i].reason);
        if (*rows[i].reason)
            assert_non_null(
                strstr(text_of(entry, "remedy"), "HW_BACKENDS=match_none tries"));
        json_decref(json);
        hw_close(context);
    }
}

/* The file replaces one whose code is already loaded in this process. That code would run under the
 * new file's name. */
static void test_replaced(void **state)
{
    struct hw_context *context;
    size_t size;
    unsigned char *bytes = read_file(built("good"), &size);
    (void)state;
    make_directory(lair("replaced"));
    put_plugin(lair("replaced"), "good");
    assert_int_equal(open_on(lair("replaced"), NULL, &context), HW_OK);
    assert_non_null(hw_device_default(context));
    hw_close(context);
    write_file(lair("replaced/new"), bytes, size);
    free(bytes);
    assert_int_equal(rename(lair("replaced/new"), lair("replaced/hw_good.so")), 0);
    assert_int_equal(open_on(lair("replaced"),
                             &(struct hw_options){ .flags = HW_OPEN_ANYWAY }, &context),
                     HW_OK);
    hw_device_default(context);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("replaced/hw_good.so"));
    check_reason(entry, "changed-file");
    assert_string_equal(text_of(entry, "remedy"), "Restart the program");
    json_decref(json);
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_misnamed),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_titles),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_trust_off),
        cmocka_unit_test(test_shadowed),
        cmocka_unit_test(test_passed_over),
        cmocka_unit_test(test_passed_over_by_probe),
        cmocka_unit_test(test_bad_links),
        cmocka_unit_test(test_named_file),
        cmocka_unit_test(test_default_rank),
        cmocka_unit_test(test_bad_path),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_dangling_lock),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_replaced),
    };
    return cmocka_run_group_tests_name("directory", tests, lair_open, lair_close);
}
