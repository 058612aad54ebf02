/* SPDX-License-Identifier: MIT */
/* test_faults.c - bad files and bad plugins. Each must be reported with its one reason,
 * and the good plugin beside it must still be found and used. */
#define _GNU_SOURCE
#include "faults.h"

#include <dirent.h>
#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The plugins of plugins/: the name and the reason, "" if the plugin is used. */
static const struct {
    const char *name;
    const char *reason;
} plugins[] = {
    { "no_entry", "no-entry" },
    { "entry_hidden", "no-entry" },
    { "entry_data", "bad-entry" },
    { "entry_weak", "bad-entry" },
    { "entry_undefined", "bad-entry" },
    { "manifest_none", "no-manifest" },
    { "manifest_garbage", "bad-manifest" },
    { "manifest_control", "bad-manifest" },
    { "manifest_no_abi", "bad-manifest" },
    { "manifest_no_name", "bad-manifest" },
    { "manifest_backwards", "bad-manifest" },
    { "manifest_rank", "bad-manifest" },
    { "manifest_name", "bad-manifest" },
    { "manifest_title_blank", "bad-manifest" },
    { "manifest_title_empty", "bad-manifest" },
    { "manifest_title_long", "bad-manifest" },
    { "manifest_title_twice", "bad-manifest" },
    { "titled", "" },
    { "manifest_match", "bad-manifest" },
    { "manifest_match_node", "bad-manifest" },
    { "match_later", "" },
    { "match_none", "no-hardware" },
    { "match_one", "" },
    { "manifest_empty", "bad-manifest" },
    { "manifest_twice", "bad-manifest" },
    { "abi_newer", "abi-range" },
    { "abi_wide", "" },
    { "other_name", "name-mismatch" },
    { "needs_missing", "needs-library" },
    { "needs_one_of", "" },
    { "hashed", "" },
    { "packed", "" },
    { "threads", "" },
    { "symbol_undefined", "load-failed" },
    { "libm_missing", "load-failed" },
    { "replaces_itself", "changed-file" },
    { "entry_fails", "entry-failed" },
    { "entry_mute", "abi-answer" },
    { "table_overrun", "table-overrun" },
    { "table_newer", "" },
    { "table_older", "" },
    { "table_size_zero", "bad-table" },
    { "table_size_huge", "bad-table" },
    { "table_half", "bad-table" },
    { "table_abi", "abi-answer" },
    { "table_name", "bad-table" },
    { "table_name_endless", "bad-table" },
    { "table_no_open", "bad-table" },
    { "table_no_transfer", "bad-table" },
    { "table_no_vendor", "bad-table" },
    { "table_no_ops", "bad-table" },
    { "ops_size", "bad-table" },
    { "ops_half", "bad-table" },
    { "ops_newer", "" },
    { "op_count", "bad-table" },
    { "op_sizes", "bad-table" },
    { "changes_cwd", "changed-process" },
    { "changes_locale", "changed-process" },
    { "changes_floats", "changed-process" },
    { "changes_handlers", "changed-process" },
    { "open_no_driver", "no-driver" },
    { "caches", "open-failed" },
    { "open_fails", "open-failed" },
    { "open_mute", "open-failed" },
    { "open_unknown_status", "open-failed" },
    { "open_endless_message", "open-failed" },
    { "open_null_message", "" },
    { "open_reenters", "" },
    { "count_none", "no-device" },
    { "count_negative", "bad-count" },
    { "count_million", "bad-count" },
    { "count_fails", "open-failed" },
    { "info_fails", "bad-device" },
    { "info_endless", "bad-device" },
    { "info_arch_endless", "bad-device" },
    { "info_nameless", "bad-device" },
    { "info_memory", "bad-device" },
    { "info_alignment", "bad-device" },
    { "info_kind", "" },
    { "twins_uuid", "duplicate-device" },
    { "twins_pci", "duplicate-device" },
};

struct fault {
    const char *reason;
    void (*make)(const char *directory,
                 char path[4096]); /* NULL: the built plugin `name` */
    const char *name;
};

static void check_reason(const json_t *entry, const char *reason)
{
    const char *code = text_of(entry, "reason");
    if (strcmp(code, reason) != 0)
        print_error("%s: %s: %s\n", text_of(entry, "file"), code,
                    text_of(entry, "message"));
    assert_string_equal(code, reason);
    assert_string_equal(text_of(entry, "state"), *reason ? "stopped" : "used");
    if (!*reason)
        return;
    assert_true(strlen(text_of(entry, "message")) > 5);
    assert_true(strlen(text_of(entry, "remedy")) > 5);
}

static void check_good(struct hw_context *context, const json_t *json, const char *path)
{
    struct hw_device *device;
    struct hw_device_info info = { .size = sizeof info };
    check_reason(candidate(json, path), "");
    assert_int_equal(hw_device_find(context, "good:0", &device), HW_OK);
    assert_int_equal(hw_device_info(device, &info), HW_OK);
    assert_string_equal(info.name, "a device of good");
}

/* Uses each device, if it can be used, so that what was tried elsewhere is loaded here as well. */
static void use_all(struct hw_context *context)
{
    struct hw_queue *queue; /* hw_close() closes it */
    for (uint32_t i = 0; i < hw_device_count(context); i++)
        hw_queue_open(hw_device_at(context, i), NULL, &queue);
}

/* One fault and the good plugin in one directory. */
static void test_fault(void **state)
{
    const struct fault *fault = *state;
    char path[4096];
    const char *directory = lair("%s", fault->name);
    make_directory(directory);
    snprintf(path, sizeof path, "%s/hw_%s.so", directory, fault->name);
    put_plugin(directory, "good");
    if (fault->make)
        fault->make(directory, path);
    else
        put_plugin(directory, fault->name);

    struct hw_context *context;
    struct hw_options options = { .threads = "1" };
    assert_int_equal(open_on(directory, &options, &context), HW_OK);
    use_all(context);
    json_t *json = report(context);
    const json_t *entry = candidate(json, path);
    assert_non_null(entry);
    check_reason(entry, fault->reason);
    check_good(context, json, lair("%s/hw_good.so", fault->name));
    json_decref(json);
    hw_close(context);
    fesetround(FE_TONEAREST); /* the one change that the library cannot undo */
}

/* All faults at once, in one directory. */
static void test_together(void **state)
{
    (void)state;
    make_directory(lair("together"));
    put_plugin(lair("together"), "good");
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        put_plugin(lair("together"), plugins[i].name);
    struct hw_context *context;
    assert_int_equal(open_on(lair("together"), NULL, &context), HW_OK);
    use_all(context);
    json_t *json = report(context);
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        check_reason(candidate(json, lair("together/hw_%s.so", plugins[i].name)),
                     plugins[i].reason);
    check_good(context, json, lair("together/hw_good.so"));
    json_decref(json);
    hw_close(context);
}

/* The most important parts of messages: what is missing, and what to do. */
static void test_words(void **state)
{
    struct hw_context *context;
    (void)state;
    make_directory(lair("words"));
    put_plugin(lair("words"), "needs_missing");
    assert_int_equal(open_on(lair("words"), NULL, &context), HW_NO_DEVICE);
    assert_null(context);
    assert_non_null(
        strstr(hw_message(), "it needs libhw_nowhere.so.1, which was not found"));
    struct hw_options options = { .backends = "needs_missing" };
    assert_int_equal(open_on(lair("words"), &options, &context), HW_NO_DEVICE);
    assert_non_null(
        strstr(hw_message(), "it needs libhw_nowhere.so.1, which was not found"));
    assert_non_null(strstr(hw_message(), "Install nowhere"));
    assert_non_null(strstr(hw_message(), "HW_DISABLE=needs_missing"));

    options = (struct hw_options){ .flags = HW_OPEN_ANYWAY };
    assert_int_equal(open_on(lair("words"), &options, &context), HW_OK);
    json_t *json = report(context);
    assert_non_null(strstr(text_of(json, "open_error"), "libhw_nowhere.so.1"));
    json_decref(json);
    hw_close(context);
}

/* The time to check a file is bounded. */
static void test_many_relocations(void **state)
{
    struct hw_context *context;
    (void)state;
    assert_int_equal(open_on(lair("elf_rela_sparse"),
                             &(struct hw_options){ .backends = "plain" }, &context),
                     HW_NO_DEVICE);
    assert_non_null(strstr(hw_message(), "it has too many relocations"));
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

/* What a terminal obeys is escaped in the report, also where it is two bytes in UTF-8. */
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
    check_reason(candidate(json, lair("broken/hw_good.so")), "wrong-format");
    check_reason(candidate(json, lair("second/hw_good.so")), "shadowed");
    check_good(context, json, lair("first/hw_good.so"));
    json_decref(json);
    hw_close(context);
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
    check_reason(candidate(json, links[0]), "name-mismatch");
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

/* After fork(), calls in the child return HW_FORKED. The child can open a context of its
 * own. */
static void test_fork(void **state)
{
    struct hw_context *context, *own = NULL;
    (void)state;
    make_directory(lair("fork"));
    put_plugin(lair("fork"), "good");
    assert_int_equal(open_on(lair("fork"), NULL, &context), HW_OK);
    struct hw_device_info info = { .size = sizeof info };
    pid_t child = fork();
    if (child == 0) {
        bool good = hw_device_info(hw_device_default(context), &info) == HW_FORKED;
        hw_close(context);
        good = good && open_on(lair("fork"), NULL, &own) == HW_OK;
        good = good && hw_device_info(hw_device_default(own), &info) == HW_OK;
        hw_close(own);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(hw_device_info(hw_device_default(context), &info), HW_OK);
    hw_close(context);
}

/* Functions that an older table lacks are unsupported. */
static void test_holes(void **state)
{
    struct hw_context *context;
    struct hw_kernel_info row = { .size = sizeof row };
    (void)state;
    make_directory(lair("holes"));
    put_plugin(lair("holes"), "table_older");
    assert_int_equal(open_on(lair("holes"), NULL, &context), HW_OK);
    assert_int_equal(hw_device_kernel(hw_device_default(context), 0, 0, &row),
                     HW_UNSUPPORTED);
    hw_close(context);
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

/* A report lists the plugins of all other directories, whatever is wrong with one entry. */
static void test_bad_path(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .flags = HW_OPEN_ANYWAY, .plugin_path = "relative" };
    (void)state;
    make_directory(lair("bad_path"));
    put_plugin(lair("bad_path"), "good");
    assert_int_equal(open_on(lair("bad_path"), &options, &context), HW_OK);
    json_t *json = report(context);
    assert_non_null(strstr(text_of(json, "open_error"), "must be an absolute path"));
    check_good(context, json, lair("bad_path/hw_good.so"));
    json_decref(json);
    hw_close(context);
}

/* Two contexts at once, on one plugin; then closing and opening again. */
static void test_two_contexts(void **state)
{
    struct hw_context *one, *two;
    (void)state;
    make_directory(lair("two"));
    put_plugin(lair("two"), "good");
    assert_int_equal(open_on(lair("two"), NULL, &one), HW_OK);
    assert_int_equal(open_on(lair("two"), NULL, &two), HW_OK);
    assert_ptr_not_equal(hw_device_default(one), hw_device_default(two));
    hw_close(one);
    struct hw_device_info info = { .size = sizeof info };
    assert_int_equal(hw_device_info(hw_device_default(two), &info), HW_OK);
    hw_close(two);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(open_on(lair("two"), NULL, &one), HW_OK);
        hw_close(one);
    }
}

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
                 { 0644, true, "truncated" } };
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

/* With plugins.lock in its directory, a plugin is loaded only if that lists its content. */
static void test_lock(void **state)
{
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
    static const struct {
        const char *text, *reason;
    } rows[] = { { "", "not-locked" },
                 { ZEROS "  hw_other.so\n", "not-locked" },
                 { ZEROS "  hw_good.so\n", "lock-mismatch" },
                 { ZEROS " *hw_good.so\n", "lock-mismatch" },
                 { ZEROS "  hw_good.so", "bad-lock" },
                 { ZEROS "  hw_good.so\n" ZEROS "  hw_good.so\n", "bad-lock" },
                 { ZEROS "  hw_good.so\n\n", "bad-lock" },
                 { ZEROS "0  hw_good.so\n", "bad-lock" },
                 { ZEROS "  ./hw_good.so\n", "bad-lock" } };
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
        check_reason(entry, rows[i].reason);
        assert_non_null(strstr(text_of(entry, "message"), "/plugins.lock"));
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

/* Other users must not be able to add a library where the plugin's rpath is searched, even
 * if what it needs was found elsewhere. */
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
        check_reason(candidate(json, lair("path/hw_beside.so")), cut ? "truncated" : "");
        json_decref(json);
        hw_close(context);
        assert_int_equal(truncate(lair("elsewhere/libbeside.so.1"), 1000), 0);
    }
    unsetenv("LD_LIBRARY_PATH");
    free(bytes);
}

/* The plugin lacks a library it should have been linked with. The installation is complete. */
static void test_undefined(void **state)
{
    static const char *const rows[][2] = { { "libm_missing", "expf" },
                                           { "symbol_undefined", "hw_nobody_has_this" } };
    struct hw_context *context;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(open_on(lair("%s", rows[i][0]),
                                 &(struct hw_options){ .backends = rows[i][0] }, &context),
                         HW_NO_DEVICE);
        char remedy[128];
        snprintf(remedy, sizeof remedy, "Link it with the library that defines %s",
                 rows[i][1]);
        assert_non_null(strstr(hw_message(), remedy));
    }
}

/* A plugin without hardware is tried if somebody names it: as a backend, or the file itself. */
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

/* A file replaces one whose code is already in the process. That code would run under the
 * name of the new file. */
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
static void *open_all(void *argument)
{
    struct hw_context *context;
    struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    enum hw_status *status = argument;
    *status = open_on(lair("together"), &options, &context);
    use_all(context);
    hw_close(context);
    return NULL;
}

/* hw.h requires 64 KiB of stack: language runtimes call from threads with small stacks. */
static void test_stack(void **state)
{
    const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN), room = 64 << 10;
    enum hw_status status = HW_INTERNAL;
    pthread_attr_t attributes;
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, least > room ? least : room),
                     0);
    assert_int_equal(pthread_create(&thread, &attributes, open_all, &status), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, HW_OK);
    pthread_attr_destroy(&attributes);
}
#else
static void test_stack(void **state)
{
    (void)state;
    print_message("# not applicable: sanitizers need more stack\n");
}
#endif

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* No file descriptor stays open after any fault. */
static void test_descriptors(void **state)
{
    struct hw_context *context;
    (void)state;
    unsigned before = count_descriptors();
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        if (open_on(lair("%s", plugins[i].name), NULL, &context) == HW_OK) {
            use_all(context);
            hw_close(context);
        }
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    enum { PLUGINS = sizeof plugins / sizeof *plugins, MOST = 512 };
    static struct fault faults[MOST];
    static struct CMUnitTest tests[MOST];
    size_t count = 0;
    for (; count < PLUGINS; count++)
        faults[count] = (struct fault){ plugins[count].reason, NULL, plugins[count].name };
    for (const struct made *made = made_faults; made->name; made++)
        if (!made->root || geteuid() == 0)
            faults[count++] = (struct fault){ made->reason, made->make, made->name };
        else
            print_message("# not applicable to anyone but root: %s\n", made->name);
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){ faults[i].name, test_fault, NULL, NULL,
                                        &faults[i] };

    const struct CMUnitTest whole[] = {
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_trust_off),
        cmocka_unit_test(test_shadowed),
        cmocka_unit_test(test_named_file),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_passed_over),
        cmocka_unit_test(test_bad_links),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_two_contexts),
        cmocka_unit_test(test_undefined),
        cmocka_unit_test(test_bad_path),
        cmocka_unit_test(test_default_rank),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_misnamed),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_many_relocations),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_rpath),
        cmocka_unit_test(test_library_path),
        cmocka_unit_test(test_titles),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_descriptors),
    };
    memcpy(tests + count, whole, sizeof whole);
    count += sizeof whole / sizeof *whole;
    return _cmocka_run_group_tests("faults", tests, count, lair_open, lair_close);
}
