/* SPDX-License-Identifier: MIT */
/* test_cache.c - the verdict cache: a stored verdict is returned until one of its dependencies
 * changes. A damaged entry or directory counts as missing. */
#define _GNU_SOURCE
#include "cache_world.h"

#include "cache/depends.h"
#include "load/loaded.h"
#include "probe/depends_write.h"
#include "settings/config.h"

#include "fixture.h" /* after those: cmocka has a macro fail */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

/* ---- entries that are found ---- */

static void comes_back(void **state)
{
    struct world w;
    struct stat file;
    (void)state;
    begin(&w);
    assert_false(is_there(&w));
    assert_int_not_equal(access(cache, F_OK), 0); /* looking makes no directory */
    struct cached stored = store(&w, CACHE_SUCCESS);
    assert_int_equal(stored.written, clock_time);
    assert_int_equal(stored.expires, 0);
    assert_true(is_there(&w));
    assert_int_equal(stat(place, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0700);
    assert_int_equal(stat(entry(), &file), 0);
    assert_int_equal(file.st_mode & 07777, 0600);
    assert_int_equal(told, 0);
    end(&w);
}

/* The format that cache.h documents. The command reads it, too. */
static void entry_has_this_form(void **state)
{
    struct world w;
    size_t size;
    char expected[256];
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    store(&w, CACHE_BACKOFF);
    unsigned char *bytes = read_file(entry(), &size);
    const int length = snprintf(expected, sizeof expected,
                                " good ok 2 1 1000000 1000010 %zu %zu\n",
                                strlen(w.candidate.key), (size_t)VERDICT_BYTES);
    assert_memory_equal(bytes, "hw-verdict 1 ", 13);
    assert_memory_equal(bytes + 29, expected, (size_t)length);
    assert_memory_equal(bytes + 29 + length, w.candidate.key, strlen(w.candidate.key));
    assert_memory_equal(w.candidate.key, "file ", 5);
    assert_int_equal(strlen(strrchr(entry(), '/')), 1 + 5 + 16);
    free(bytes);
    end(&w);
}

/* Another context, like another process, gets the same key. */
static void key_is_stable(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    char *before = strdup(w.candidate.key);
    setenv("UNRELATED", "1", 1);
    free(w.found.key);
    w.found.key = NULL;
    look(&w);
    assert_string_equal(w.candidate.key, before);
    free(before);
    unsetenv("UNRELATED");
    end(&w);
}

static void expect_other_key(struct world *w, const char *what)
{
    free(w->found.key);
    w->found.key = NULL;
    look(w);
    if (is_there(w))
        fail_msg("%s is not in the key", what);
    store(w, CACHE_SUCCESS);
    assert_true(is_there(w));
}

static void depends_on_file_and_settings(void **state)
{
    static const enum setting settings[] = { SETTING_threads, SETTING_precision,
                                             SETTING_memory_limit, SETTING_probe_timeout,
                                             SETTING_trust };
    struct world w;
    char *copy, text[64];
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    const struct timespec times[2] = { { 1, 1 }, { 1, 1 } };
    assert_int_equal(utimensat(AT_FDCWD, w.candidate.path, times, 0), 0);
    expect_other_key(&w, "the time of the last change");
    /* The same contents and time in another inode. */
    size_t size;
    copy = (char *)read_file(w.candidate.path, &size);
    assert_int_equal(rename(w.candidate.path, lair("old")), 0);
    write_file(w.candidate.path, copy, size);
    assert_int_equal(utimensat(AT_FDCWD, w.candidate.path, times, 0), 0);
    free(copy);
    expect_other_key(&w, "the inode");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        set(&w, settings[i], "7");
        expect_other_key(&w, setting_variables[settings[i]]);
    }
    setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
    expect_other_key(&w, "LD_LIBRARY_PATH");
    unsetenv("LD_LIBRARY_PATH");
    snprintf(text, sizeof text, "\nuser %u %u ", (unsigned)geteuid(), (unsigned)getegid());
    assert_non_null(strstr(w.candidate.key, text));
    assert_non_null(strstr(w.candidate.key, "\nversion "));
    assert_non_null(strstr(w.candidate.key, "\nboot "));
    assert_non_null(strstr(w.candidate.key, "\nlibraries "));
    assert_non_null(strstr(w.candidate.key, "\nprocessors "));
    end(&w);
}

/* Recomputes the key with these lines in the manifest. */
static void look_with(struct world *w, const char *driver, const char *variable)
{
    struct manifest *manifest = w->candidate.manifest;
    manifest->driver_count = driver != NULL;
    manifest->drivers[0] = driver;
    manifest->variable_count = variable != NULL;
    manifest->variables[0] = variable;
    key_begin(&w->candidate);
    key_end(&w->context, &w->candidate);
}

static void expect_change(struct world *w, const char *driver, const char *variable,
                          bool change)
{
    char *before = strdup(w->candidate.key);
    look_with(w, driver, variable);
    if ((strcmp(before, w->candidate.key) != 0) != change)
        fail_msg("%s %s", driver ? driver : variable,
                 change ? "is not in the key" : "changes the key");
    free(before);
}

static void depends_on_driver(void **state)
{
    struct world w;
    char version[4096], vendors[4096], inside[4200], big[5000] = { 0 };
    (void)state;
    begin(&w);
    snprintf(version, sizeof version, "%s", lair("version"));
    look_with(&w, version, NULL);
    expect_change(&w, version, NULL, false);
    write_file(version, "550.54\n", 7);
    expect_change(&w, version, NULL, true);
    expect_change(&w, version, NULL, false);
    /* Only the contents of a small file count: kernels invent the dates of virtual files. */
    const struct timespec times[2] = { { 1, 1 }, { 1, 1 } };
    assert_int_equal(utimensat(AT_FDCWD, version, times, 0), 0);
    expect_change(&w, version, NULL, false);
    write_file(version, "550.55\n", 7);
    expect_change(&w, version, NULL, true);
    write_file(version, big, sizeof big);
    expect_change(&w, version, NULL, true);
    assert_int_equal(utimensat(AT_FDCWD, version, times, 0), 0);
    expect_change(&w, version, NULL, true);

    snprintf(vendors, sizeof vendors, "%s", lair("vendors"));
    snprintf(inside, sizeof inside, "%s/one.icd", vendors);
    make_directory(vendors);
    expect_change(&w, vendors, NULL, true);
    write_file(inside, "libone.so.1\n", 12);
    expect_change(&w, vendors, NULL, true);
    expect_change(&w, vendors, NULL, false);
    write_file(inside, "libtwo.so.1\n", 12);
    expect_change(&w, vendors, NULL, true);
    assert_int_equal(unlink(inside), 0);
    expect_change(&w, vendors, NULL, true);

    /* The access rights of a device count. */
    snprintf(inside, sizeof inside, "%s", lair("fifo"));
    assert_int_equal(mkfifo(inside, 0600), 0);
    expect_change(&w, inside, NULL, true);
    assert_int_equal(chmod(inside, 0644), 0);
    expect_change(&w, inside, NULL, true);
    end(&w);
}

static void depends_on_variables(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    look_with(&w, NULL, "VENDOR_VISIBLE");
    setenv("VENDOR_VISIBLE", "0", 1);
    expect_change(&w, NULL, "VENDOR_VISIBLE", true);
    setenv("VENDOR_VISIBLE", "1", 1);
    expect_change(&w, NULL, "VENDOR_VISIBLE", true);
    setenv("VENDOR_VISIBLE_TOO", "1", 1);
    expect_change(&w, NULL, "VENDOR_VISIBLE", false);
    expect_change(&w, NULL, "VENDOR_*", true);
    setenv("VENDOR_ORDER", "1", 1);
    expect_change(&w, NULL, "VENDOR_*", true);
    unsetenv("VENDOR_ORDER");
    expect_change(&w, NULL, "VENDOR_*", true);
    assert_null(strstr(w.candidate.key, "VENDOR_VISIBLE")); /* nor any value */
    unsetenv("VENDOR_VISIBLE");
    unsetenv("VENDOR_VISIBLE_TOO");
    end(&w);
}

/* ---- the files that hw-probe lists ---- */

static void depends_on_listed_files(void **state)
{
    (void)state;
    make_directory(lair("listed"));
    const char *file = lair("listed/libone.so"), *none = lair("listed/libtwo.so");
    write_file(file, "1", 1);
    char *lines = strdup("");
    depends_add_file(&lines, file);
    depends_add_file(&lines, none);
    depends_add_library(&lines, "libone.so", file, file);
    depends_add_library(&lines, "libtwo.so", NULL, NULL);
    assert_true(depends_hold(lines));
    write_file(none, "2", 1);
    assert_false(depends_hold(lines));
    assert_int_equal(unlink(none), 0);
    assert_true(depends_hold(lines));
    write_file(file, "22", 2);
    assert_false(depends_hold(lines));
    free(lines);
}

/* libc is loaded, so its path does not matter. */
static void depends_on_loaded_library(void **state)
{
    char *lines = strdup(""), *path;
    (void)state;
    assert_true(loaded_find("libc.so.6", &path));
    assert_non_null(path);
    depends_add_library(&lines, "libc.so.6", path, NULL);
    assert_true(depends_hold(lines));
    depends_add_library(&lines, "libc.so.6", lair("."), path);
    assert_false(depends_hold(lines));
    free(lines);
    free(path);
}

/* Only a change of a directory's owner or rights lets others put a library there. */
static void depends_on_rights_of_directory(void **state)
{
    char *lines = strdup("");
    (void)state;
    make_directory(lair("rights"));
    depends_add_file(&lines, lair("rights"));
    write_file(lair("rights/more"), "1", 1);
    assert_true(depends_hold(lines));
    assert_int_equal(chmod(lair("rights"), 0777), 0);
    assert_false(depends_hold(lines));
    free(lines);
}

static void damaged_lines_do_not_hold(void **state)
{
    static const char *const texts[] = { "x",        "file",          "file -",
                                         "file -\n", "library - one", "other - /x\n" };
    char *lines = strdup("");
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(depends_hold(texts[i]));
    assert_false(depends_hold(NULL));
    assert_true(depends_hold(""));
    depends_add_file(&lines, "/two\nlines");
    assert_null(lines);
    depends_add_file(&lines, "/one");
    assert_null(lines);
}

/* The file was replaced while the probe ran. */
static void changed_file_is_not_stored(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    const struct timespec times[2] = { { 1, 1 }, { 1, 1 } };
    assert_int_equal(utimensat(AT_FDCWD, w.candidate.path, times, 0), 0);
    store(&w, CACHE_SUCCESS);
    assert_int_not_equal(access(place, F_OK), 0);
    look(&w);
    store(&w, CACHE_SUCCESS);
    assert_true(is_there(&w));
    end(&w);
}

/* ---- entries that must not be found ---- */

static void damaged_entry_is_missing(void **state)
{
    struct world w;
    size_t size;
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    unsigned char *bytes = read_file(entry(), &size);
    const int fd = open(entry(), O_WRONLY);
    for (size_t i = 0; i < size; i++) {
        const unsigned char other = bytes[i] ^ 1;
        assert_int_equal(pwrite(fd, &other, 1, (off_t)i), 1);
        if (is_there(&w))
            fail_msg("byte %zu is not protected", i);
        assert_int_equal(pwrite(fd, &bytes[i], 1, (off_t)i), 1);
    }
    close(fd);
    assert_true(is_there(&w));
    for (size_t i = 0; i < size; i += 7) {
        write_file(entry(), bytes, i);
        assert_false(is_there(&w));
    }
    unsigned char *longer = calloc(1, 2 * size);
    memcpy(longer, bytes, size);
    write_file(entry(), longer, size + 1);
    assert_false(is_there(&w));
    write_file(entry(), longer, 2 * size);
    assert_false(is_there(&w));
    write_file(entry(), bytes, size);
    assert_true(is_there(&w));
    write_file(entry(), longer, 10);
    store(&w, CACHE_SUCCESS); /* replaces it */
    assert_true(is_there(&w));
    free(longer);
    free(bytes);
    end(&w);
}

/* Another key's whole entry under the name of this one. */
static void alien_entry_is_missing(void **state)
{
    struct world w;
    char *name, *other;
    (void)state;
    begin(&w);
    set(&w, SETTING_threads, "8"); /* a key of the same length */
    look(&w);
    store(&w, CACHE_SUCCESS);
    name = strdup(entry());
    other = strdup(lair("other-%d", (int)getpid()));
    assert_int_equal(rename(name, other), 0);
    set(&w, SETTING_threads, "7");
    look(&w);
    store(&w, CACHE_SUCCESS);
    free(name);
    name = strdup(entry());
    assert_int_equal(rename(other, name), 0);
    assert_false(is_there(&w));
    free(name);
    free(other);
    end(&w);
}

static void writable_by_others_is_missing(void **state)
{
    static const mode_t modes[] = { 0620, 0602 };
    struct world w;
    (void)state;
    begin(&w);
    for (size_t i = 0; i < 2; i++) {
        store(&w, CACHE_SUCCESS);
        assert_int_equal(chmod(entry(), modes[i]), 0);
        assert_false(is_there(&w));
        store(&w, CACHE_SUCCESS);
        assert_true(is_there(&w));
        assert_int_equal(chmod(place, modes[i] | 0100), 0);
        assert_false(is_there(&w));
        assert_int_equal(chmod(place, 0700), 0);
        assert_true(is_there(&w));
    }
    /* The directory is not written either. The log reports it once, with a remedy. */
    assert_int_equal(unlink(entry()), 0);
    assert_int_equal(chmod(place, 0702), 0);
    store(&w, CACHE_SUCCESS);
    store(&w, CACHE_SUCCESS);
    assert_int_equal(count_files(place), 0);
    assert_int_equal(told, 1);
    assert_int_equal(told_level, HW_LOG_WARN);
    end(&w);
}

static void of_another_user_is_missing(void **state)
{
    struct world w;
    (void)state;
    if (geteuid() != 0)
        skip();
    begin(&w);
    store(&w, CACHE_SUCCESS);
    assert_int_equal(chown(entry(), NOBODY, 0), 0);
    assert_false(is_there(&w));
    store(&w, CACHE_SUCCESS);
    assert_true(is_there(&w));
    assert_int_equal(chown(place, NOBODY, 0), 0);
    assert_false(is_there(&w));
    /* Root writes nothing to another user's home directory. */
    set(&w, SETTING_cache_dir, lair("home/.cache/hw"));
    make_directory(lair("home"));
    assert_int_equal(chown(lair("home"), NOBODY, 0), 0);
    store(&w, CACHE_SUCCESS);
    assert_int_equal(count_files(lair("home")), 0);
    assert_int_not_equal(access(lair("home/.cache"), F_OK), 0);
    assert_int_equal(told, 1);
    end(&w);
}

static void links_and_pipes_are_missing(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    char *name = strdup(entry()), *away = strdup(lair("away-%d", (int)getpid()));
    assert_int_equal(rename(name, away), 0);
    assert_int_equal(symlink(away, name), 0);
    assert_false(is_there(&w));
    store(&w, CACHE_SUCCESS); /* replaces the link, not the file behind it */
    assert_true(is_there(&w));
    assert_int_equal(unlink(name), 0);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_false(is_there(&w));
    store(&w, CACHE_SUCCESS);
    assert_true(is_there(&w));
    assert_int_equal(unlink(name), 0);
    make_directory(name); /* in which nothing is lost */
    assert_false(is_there(&w));
    store(&w, CACHE_SUCCESS);
    assert_true(is_there(&w));
    assert_int_equal(told, 0);
    assert_int_equal(unlink(name), 0);
    char *inside = malloc(strlen(name) + sizeof "/thesis");
    sprintf(inside, "%s/thesis", name);
    make_directory(name);
    write_file(inside, "42", 2);
    store(&w, CACHE_SUCCESS);
    assert_false(is_there(&w));
    assert_int_equal(told, 1);
    assert_int_equal(unlink(inside), 0);
    free(inside);
    /* The directory itself is a link. */
    store(&w, CACHE_SUCCESS);
    assert_true(is_there(&w));
    assert_int_equal(rename(place, lair("elsewhere")), 0);
    assert_int_equal(symlink(lair("elsewhere"), place), 0);
    assert_false(is_there(&w));
    free(name);
    free(away);
    end(&w);
}

static void elevated_has_no_cache(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    w.context.settings.elevated = true;
    assert_false(is_there(&w));
    assert_int_equal(unlink(entry()), 0);
    store(&w, CACHE_SUCCESS);
    assert_int_equal(count_files(place), 0);
    assert_int_equal(told, 0);
    end(&w);
}

static void works_without_a_cache(void **state)
{
    static const char *const values[] = { "", "off", "relative" };
    struct world w;
    (void)state;
    begin(&w);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        set(&w, SETTING_cache_dir, values[i]);
        struct cached stored = store(&w, CACHE_FAILURE);
        assert_int_equal(stored.expires, clock_time + 60); /* for the report */
        assert_false(is_there(&w));
    }
    assert_int_equal(told, 0);
    write_file(lair("file"), "", 0);
    set(&w, SETTING_cache_dir, lair("file/hw"));
    store(&w, CACHE_SUCCESS);
    store(&w, CACHE_SUCCESS);
    assert_false(is_there(&w));
    assert_int_equal(told, 1);
    end(&w);
}

/* After a failed write, such as on a full disk, the old entry is intact. */
static void failed_write_leaves_nothing(void **state)
{
    struct world w;
    struct rlimit limit, small;
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    store(&w, CACHE_SUCCESS);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_true(is_there(&w));
    assert_int_equal(count_files(place), 1);
    assert_int_equal(told, 1);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(entry_has_this_form),
        cmocka_unit_test(key_is_stable),
        cmocka_unit_test(depends_on_file_and_settings),
        cmocka_unit_test(depends_on_driver),
        cmocka_unit_test(depends_on_variables),
        cmocka_unit_test(depends_on_listed_files),
        cmocka_unit_test(depends_on_loaded_library),
        cmocka_unit_test(depends_on_rights_of_directory),
        cmocka_unit_test(damaged_lines_do_not_hold),
        cmocka_unit_test(changed_file_is_not_stored),
        cmocka_unit_test(damaged_entry_is_missing),
        cmocka_unit_test(alien_entry_is_missing),
        cmocka_unit_test(writable_by_others_is_missing),
        cmocka_unit_test(of_another_user_is_missing),
        cmocka_unit_test(links_and_pipes_are_missing),
        cmocka_unit_test(elevated_has_no_cache),
        cmocka_unit_test(works_without_a_cache),
        cmocka_unit_test(failed_write_leaves_nothing),
    };
    return cmocka_run_group_tests_name("cache", tests, lair_open, lair_close);
}
