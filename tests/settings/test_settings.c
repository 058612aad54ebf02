/* SPDX-License-Identifier: MIT */
/* test_settings.c - the settings: which source wins, which values are valid, and the messages about
 * invalid ones. */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char warned[4096];

static void collect(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level <= HW_LOG_WARN)
        snprintf(warned + strlen(warned), sizeof warned - strlen(warned), "%s\n", text);
}

static enum hw_status open_good(struct hw_options options, struct hw_context **context)
{
    warned[0] = '\0';
    options.log_fn = collect;
    return open_on(lair("good"), &options, context);
}

/* Checks the value and the source of a setting in a report. */
static void check_setting(struct hw_context *context, const char *name, const char *value,
                          const char *source)
{
    json_t *json = report(context), *row;
    size_t i;
    bool there = false;
    json_array_foreach (json_object_get(json, "settings"), i, row) {
        if (strcmp(text_of(row, "name"), name) != 0)
            continue;
        assert_string_equal(text_of(row, "value"), value);
        assert_string_equal(text_of(row, "source"), source);
        there = true;
    }
    assert_int_equal(json_array_size(json_object_get(json, "settings")), 17);
    assert_true(there);
    json_decref(json);
}

static void write_config(const char *text)
{
    write_file(lair("hw.conf"), text, strlen(text));
}

/* ---- precedence ---- */

static void test_precedence(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .config = lair("hw.conf") };
    char from_file[4200];
    (void)state;
    write_config("# a comment\n\n  precision =  fp16 \r\nthreads=3\n");
    snprintf(from_file, sizeof from_file, "%s:3", lair("hw.conf"));

    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    check_setting(context, "precision", "fp32", "default");
    hw_close(context);
    assert_int_equal(open_good(options, &context), HW_OK);
    check_setting(context, "precision", "fp16", from_file);
    check_setting(context, "config", lair("hw.conf"), "option");
    hw_close(context);
    setenv("HW_PRECISION", "int8", 1);
    assert_int_equal(open_good(options, &context), HW_OK);
    check_setting(context, "precision", "int8", "HW_PRECISION");
    hw_close(context);
    options.precision = "fp32";
    assert_int_equal(open_good(options, &context), HW_OK);
    check_setting(context, "precision", "fp32", "option");
    hw_close(context);
    unsetenv("HW_PRECISION");
}

static void test_empty_is_unset(void **state)
{
    struct hw_context *context;
    (void)state;
    setenv("HW_PRECISION", "", 1);
    setenv("HW_BACKENDS", "", 1);
    assert_int_equal(open_good((struct hw_options){ .precision = "" }, &context), HW_OK);
    check_setting(context, "precision", "fp32", "default");
    check_setting(context, "backends", "*", "default");
    hw_close(context);
    unsetenv("HW_PRECISION");
    unsetenv("HW_BACKENDS");
}

static void test_threads(void **state)
{
    struct hw_context *context;
    (void)state;
    setenv("OMP_NUM_THREADS", "5,2", 1);
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    check_setting(context, "threads", "5", "OMP_NUM_THREADS");
    hw_close(context);
    setenv("HW_THREADS", "7", 1);
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    check_setting(context, "threads", "7", "HW_THREADS");
    hw_close(context);
    unsetenv("HW_THREADS");
    setenv("OMP_NUM_THREADS", "many", 1); /* not a setting of the library */
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    check_setting(context, "threads", "", "default");
    hw_close(context);
    unsetenv("OMP_NUM_THREADS");
}

/* Without a configured file, $XDG_CONFIG_HOME/hw/hw.conf is read, or else
 * ~/.config/hw/hw.conf. */
static void test_default_file(void **state)
{
    struct hw_context *context;
    char source[4200];
    (void)state;
    make_directory(lair("hw"));
    write_file(lair("hw/hw.conf"), "threads=2\n", 10);
    snprintf(source, sizeof source, "%s:1", lair("hw/hw.conf"));
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    check_setting(context, "threads", "2", source);
    hw_close(context);
    unlink(lair("hw/hw.conf"));

    unsetenv("XDG_CONFIG_HOME");
    make_directory(lair(".config"));
    make_directory(lair(".config/hw"));
    write_file(lair(".config/hw/hw.conf"), "threads=4", 9);
    snprintf(source, sizeof source, "%s:1", lair(".config/hw/hw.conf"));
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    check_setting(context, "threads", "4", source);
    hw_close(context);
    unlink(lair(".config/hw/hw.conf"));
    setenv("XDG_CONFIG_HOME", lair("."), 1);
}

/* Checks the directory that the host gives to the plugin "caches". The plugin is started here,
 * since a kept verdict would contain an earlier directory. */
static void check_cache_dir(const char *option, const char *expected)
{
    struct hw_context *context;
    const struct hw_options options = { .cache_dir = option,
                                        .probe = "inproc",
                                        .flags = HW_OPEN_ANYWAY };
    char reason[4200];
    open_on(lair("caches"), &options, &context);
    json_t *json = report(context);
    snprintf(reason, sizeof reason, "[%s]", expected);
    const char *said = text_of(candidate(json, lair("caches/hw_caches.so")), "message");
    if (!strstr(said, reason))
        fail_msg("\"%s\" does not contain \"%s\"", said, reason);
    json_decref(json);
    hw_close(context);
}

/* The cache is $XDG_CACHE_HOME/hw, or else ~/.cache/hw, unless the setting names another
 * directory or turns it off. Each plugin gets a directory in it, which the library does not
 * create. */
static void test_cache_dir(void **state)
{
    char home[64];
    (void)state;
    snprintf(home, sizeof home, "%s", getenv("HOME"));
    make_directory(lair("caches"));
    put_plugin(lair("caches"), "caches");
    check_cache_dir(NULL, lair(".cache/hw/caches"));
    setenv("XDG_CACHE_HOME", lair("xdg"), 1);
    check_cache_dir(NULL, lair("xdg/hw/caches"));
    setenv("XDG_CACHE_HOME", "relative", 1);
    check_cache_dir(NULL, lair(".cache/hw/caches"));
    setenv("HW_CACHE_DIR", "/elsewhere", 1);
    check_cache_dir(NULL, "/elsewhere/caches");
    check_cache_dir("/option", "/option/caches");
    check_cache_dir("off", "");
    setenv("HW_CACHE_DIR", "off", 1);
    check_cache_dir(NULL, "");
    unsetenv("HW_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/line\nbreak", 1); /* not a valid value */
    check_cache_dir(NULL, "");
    unsetenv("HOME");
    check_cache_dir(NULL, "");
    setenv("HOME", home, 1);
    assert_int_not_equal(access(lair(".cache/hw/caches"), F_OK), 0);
}

/* A caller that was built against an older header has a shorter struct. */
static void test_old_options(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .size = offsetof(struct hw_options, disable),
                                  .backends = "good",
                                  .disable = (const char *)1 };
    (void)state;
    setenv("HW_PLUGIN_PATH", lair("good:!"), 1);
    assert_int_equal(hw_open(&options, &context), HW_OK);
    check_setting(context, "backends", "good", "option");
    hw_close(context);
    unsetenv("HW_PLUGIN_PATH");
    options.size = 0;
    assert_int_equal(hw_open(&options, &context), HW_INVALID);
    assert_int_equal(hw_open(&options, NULL), HW_INVALID);
    options = (struct hw_options){ .size = sizeof options, .flags = 0x80 };
    assert_int_equal(hw_open(&options, &context), HW_INVALID);
}

/* ---- valid values ---- */

struct value {
    const char *variable, *value;
    const char *words; /* part of the error message; NULL: valid */
};

static const struct value values[] = {
    { "HW_FALLBACK", "allow", NULL },
    { "HW_FALLBACK", "never", "allow, warn or error" },
    { "HW_FALLBACK", "Allow", "allow, warn or error" },
    { "HW_TRUST", "yes", "on or off" },
    { "HW_PROBE", "inproc", NULL },
    { "HW_PROBE", "child", NULL },
    { "HW_PROBE", "thread", "must be child, full or inproc" },
    { "HW_PROBE_TIMEOUT", "3600", NULL },
    { "HW_PROBE_TIMEOUT", "0", "seconds, 1 to 3600" },
    { "HW_PROBE_TIMEOUT", "10s", "seconds, 1 to 3600" },
    { "HW_PROBE_TIMEOUT", "-1", "seconds, 1 to 3600" },
    { "HW_PROBE_TIMEOUT", "99999999999999999999999", "seconds, 1 to 3600" },
    { "HW_THREADS", "1", NULL },
    { "HW_THREADS", "0", "a number of threads" },
    { "HW_THREADS", "4097", "a number of threads" },
    { "HW_THREADS", "0x10", "a number of threads" },
    { "HW_THREADS", " 4", "a number of threads" },
    { "HW_PRECISION", "fp64", "fp32, fp16 or int8" },
    { "HW_MEMORY_LIMIT", "8G", NULL },
    { "HW_MEMORY_LIMIT", "0", NULL },
    { "HW_MEMORY_LIMIT", "8g", NULL },
    { "HW_MEMORY_LIMIT", "512 MiB", NULL },
    { "HW_MEMORY_LIMIT", "1073741824", NULL },
    { "HW_MEMORY_LIMIT", "1073741824B", NULL },
    { "HW_MEMORY_LIMIT", "G", "8G" },
    { "HW_MEMORY_LIMIT", "8GG", "8G" },
    { "HW_MEMORY_LIMIT", "8X", "8G" },
    { "HW_MEMORY_LIMIT", "-8G", "8G" },
    { "HW_MEMORY_LIMIT", "1.5G", "8G" },
    { "HW_MEMORY_LIMIT", "99999999T", "8G" },
    { "HW_MEMORY_LIMIT", "99999999999999999999", "8G" },
    { "HW_CACHE_DIR", "/var/cache/hw", NULL },
    { "HW_CACHE_DIR", "off", NULL },
    { "HW_CACHE_DIR", "cache", "an absolute path, or off" },
    { "HW_LOG", "verbose", "off, error, warn, info or debug" },
    { "HW_KERNEL", "a\nb", "control character 0x0a" },
    { "HW_BACKENDS", "\x1b[31m", "control character 0x1b" },
    { "HW_KERNEL", "portable,matmul_v3,silu=silu_v3,matmul=portable", NULL },
    { "HW_KERNEL", "silly=portable", "portable, <row> or <op>=<row>" },
    { "HW_KERNEL", "silu=", "portable, <row> or <op>=<row>" },
    { "HW_KERNEL", "portable,,silu", "portable, <row> or <op>=<row>" },
    { "HW_KERNEL", "portable,", "portable, <row> or <op>=<row>" },
    { "HW_PLUGIN_PATH", "!", NULL }, /* the option says the same */
    { "HW_WORKER", "none?", "! and ? are allowed in HW_BACKENDS only" },
    { "HW_WORKER", "none=60,more*=0,last", NULL },
    { "HW_WORKER", "none=86400", NULL },
    { "HW_WORKER", "none=86401", "the seconds of a call must be 0 to 86400" },
    { "HW_WORKER", "none=99999999999999999999",
      "the seconds of a call must be 0 to 86400" },
    { "HW_WORKER", "none=", "the seconds of a call must be 0 to 86400" },
    { "HW_WORKER", "none=1m", "the seconds of a call must be 0 to 86400" },
    { "HW_WORKER", "=60", "an entry is empty" },
    { "HW_DISABLE", "none=60", "letters, digits, _ and -" },
    { "HW_CONFIG", "/nowhere/hw.conf", "No such file or directory; correct it, or set" },
    { "HW_CONFIG", "/nowhere.conf", "configuration file /nowhere.conf: No such file" },
    { "HW_CONFIG", "/dev/null", "not a regular file; correct it, or set" },
    { "HW_CONFIG", "/", "not a regular file; correct it, or set" },
};

static void test_value(void **state)
{
    const struct value *row = *state;
    struct hw_context *context;
    setenv(row->variable, row->value, 1);
    enum hw_status status = open_good((struct hw_options){ 0 }, &context);
    if (!row->words) {
        assert_int_equal(status, HW_OK);
        hw_close(context);
    } else {
        assert_int_not_equal(status, HW_OK);
        assert_null(context);
        if (!strstr(hw_message(), row->words))
            print_error("%s\n", hw_message());
        assert_non_null(strstr(hw_message(), row->words));
        bool file = strcmp(row->variable, "HW_CONFIG") == 0;
        assert_int_equal(status, file ? HW_IO : HW_INVALID);
        if (!file) {
            assert_non_null(strstr(hw_message(), row->variable));
        }
        /* A report uses the default value, and contains the error. */
        assert_int_equal(
            open_good((struct hw_options){ .flags = HW_OPEN_ANYWAY }, &context), HW_OK);
        json_t *json = report(context);
        assert_non_null(strstr(text_of(json, "open_error"), row->words));
        json_decref(json);
        hw_close(context);
    }
    unsetenv(row->variable);
}

static void test_long_value(void **state)
{
    struct hw_context *context;
    char *text = calloc(1, 200000);
    (void)state;
    memset(text, 'a', 199999);
    setenv("HW_BACKENDS", text, 1);
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_INVALID);
    assert_non_null(strstr(hw_message(), "at most"));
    unsetenv("HW_BACKENDS");
    free(text);
}

/* ---- the file ---- */

struct file {
    const char *name, *text;
    const char *words; /* part of the error message; NULL: valid */
};

static const struct file files[] = {
    { "nothing", "", NULL },
    { "comments", "# a\n   # b\n\n\n", NULL },
    { "no last newline", "log = error", NULL },
    { "empty value", "log =\n", NULL },
    { "equals in the value", "kernel = matmul=portable\n", NULL },
    { "no equals", "log error\n", ":1: \"log error\" does not have the form" },
    { "unknown key", "\nlogg = error\n",
      ":2: there is no setting \"logg\"; did you mean \"log\"?" },
    { "far key", "unicorn_of_the_day = error\n", "docs/settings.md" },
    { "variable as key", "HW_LOG = error\n", "there is no setting" },
    { "twice", "log=warn\nlog=warn\n", ":2: \"log\" is already set in line 1" },
    { "itself", "config=/etc/passwd\n", "\"config\" is not allowed" },
    { "bad value", "#\n#\nthreads=none\n", ":3: \"none\" is not a value of HW_THREADS" },
    { "no key", "= 3\n", ":1: there is no setting" },
    { "escape", "kernel = \x1b[31m\n", "control character" },
    { "long key",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1\n",
      "no setting" },
};

static void test_file(void **state)
{
    const struct file *row = *state;
    struct hw_context *context;
    write_config(row->text);
    enum hw_status status = open_good((struct hw_options){ .config = lair("hw.conf") },
                                      &context);
    assert_int_equal(status, row->words ? HW_INVALID : HW_OK);
    if (row->words) {
        if (!strstr(hw_message(), row->words))
            print_error("%s\n", hw_message());
        assert_non_null(strstr(hw_message(), row->words));
        assert_non_null(strstr(hw_message(), lair("hw.conf")));
    }
    hw_close(context);
}

static void test_file_size(void **state)
{
    struct hw_context *context;
    char *text = calloc(1, 70000);
    (void)state;
    memset(text, '\n', 70000);
    write_file(lair("hw.conf"), text, 65536);
    assert_int_equal(open_good((struct hw_options){ .config = lair("hw.conf") }, &context),
                     HW_OK);
    hw_close(context);
    write_file(lair("hw.conf"), text, 70000);
    assert_int_equal(open_good((struct hw_options){ .config = lair("hw.conf") }, &context),
                     HW_INVALID);
    assert_non_null(strstr(hw_message(), "larger than 65536 bytes; correct it, or set"));
    write_file(lair("hw.conf"), "log\0=x", 6);
    assert_int_equal(open_good((struct hw_options){ .config = lair("hw.conf") }, &context),
                     HW_INVALID);
    assert_non_null(strstr(hw_message(), "NUL"));
    free(text);
}

/* The file can turn off the checks of plugins, so the file itself is checked. */
static void test_file_trust(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .config = lair("hw.conf") };
    (void)state;
    write_config("trust = off\n");
    assert_int_equal(chmod(lair("hw.conf"), 0666), 0);
    assert_int_equal(open_good(options, &context), HW_UNTRUSTED);
    assert_non_null(
        strstr(hw_message(), "all users can write to it (mode 0666). Remedy: Run chmod"));
    options.trust = "off";
    assert_int_equal(open_good(options, &context), HW_OK);
    hw_close(context);
    assert_int_equal(chmod(lair("hw.conf"), 0644), 0);
    if (chown(lair("hw.conf"), 12345, (gid_t)-1) == 0) { /* root can change the owner */
        options.trust = "on";
        assert_int_equal(open_good(options, &context), HW_UNTRUSTED);
        assert_non_null(
            strstr(hw_message(), "it belongs to user 12345. Remedy: Run chown"));
        assert_int_equal(chown(lair("hw.conf"), geteuid(), 12345), 0);
        assert_int_equal(chmod(lair("hw.conf"), 0664), 0);
        assert_int_equal(open_good(options, &context), HW_UNTRUSTED);
        assert_non_null(strstr(hw_message(), "the members of its group can write to it"));
        assert_int_equal(chown(lair("hw.conf"), geteuid(), getegid()), 0);
    }
    assert_int_equal(chmod(lair("hw.conf"), 0644), 0);
}

/* The directories on the path are checked too: other users must not be able to replace the
 * file. */
static void test_file_path_trust(void **state)
{
    struct hw_context *context;
    char config[4096];
    struct hw_options options = { .config = strcpy(config, lair("etc/hw.conf")) };
    (void)state;
    make_directory(lair("etc"));
    make_directory(lair("etc/open"));
    write_file(lair("etc/open/hw.conf"), "", 0);
    assert_int_equal(symlink("open/hw.conf", lair("etc/hw.conf")), 0);
    assert_int_equal(open_good(options, &context), HW_OK);
    hw_close(context);
    assert_int_equal(chmod(lair("etc/open"), 0777), 0);
    assert_int_equal(open_good(options, &context), HW_UNTRUSTED);
    assert_non_null(strstr(hw_message(), "all users can write to the directory"));
    options.trust = "off";
    assert_int_equal(open_good(options, &context), HW_OK);
    hw_close(context);
}

/* A relative path is relative to the working directory. */
static void test_file_relative(void **state)
{
    struct hw_context *context;
    (void)state;
    write_file(lair("relative.conf"), "threads = none\n", 15);
    int back = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(back >= 0 && chdir(lair(".")) == 0);
    enum hw_status status = open_good((struct hw_options){ .config = "relative.conf" },
                                      &context);
    assert_int_equal(fchdir(back), 0);
    close(back);
    assert_int_equal(status, HW_INVALID);
    assert_non_null(strstr(hw_message(), "relative.conf:1: \"none\""));
}

/* ---- messages ---- */

static void test_unknown_variable(void **state)
{
    struct hw_context *context;
    (void)state;
    setenv("HW_BACKEND", "good", 1);
    setenv("HW_UNICORN_OF_THE_DAY", "1", 1);
    setenv("HW_FOO", "1", 1); /* as long as HW_LOG, but not similar to it */
    setenv("HW_THRAEDS", "1", 1);
    setenv("HW_TEST_SOMETHING", "1", 1);
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    assert_non_null(
        strstr(warned, "HW_BACKEND: there is no such setting; did you mean HW_BACKENDS?"));
    assert_non_null(strstr(warned, "HW_UNICORN_OF_THE_DAY: there is no such setting\n"));
    assert_null(strstr(warned, "HW_LOG"));
    assert_non_null(strstr(warned, "did you mean HW_THREADS?"));
    assert_null(strstr(warned, "HW_TEST_"));
    json_t *json = report(context);
    assert_int_equal(json_array_size(json_object_get(json, "warnings")), 4);
    json_decref(json);
    hw_close(context);
    assert_int_equal(open_good((struct hw_options){ .log = "error" }, &context), HW_OK);
    assert_string_equal(warned, "");
    hw_close(context);
    unsetenv("HW_BACKEND");
    unsetenv("HW_UNICORN_OF_THE_DAY");
    unsetenv("HW_FOO");
    unsetenv("HW_THRAEDS");
    unsetenv("HW_TEST_SOMETHING");
}

/* An invalid value counts as unset, even if it begins with a number. */
static void test_invalid_limit(void **state)
{
    struct hw_context *context;
    struct hw_pool_stats stats = { .size = sizeof stats };
    const struct hw_options options = { .memory_limit = "8X", .flags = HW_OPEN_ANYWAY };
    (void)state;
    assert_int_equal(open_good(options, &context), HW_OK);
    check_setting(context, "memory_limit", "", "default");
    assert_int_equal(hw_pool_stats(hw_device_default(context), &stats), HW_OK);
    assert_int_equal(stats.limit, 0);
    hw_close(context);
}

/* Programs of before use HW_PLUGIN_PATH_ONLY and HW_WORKER_TIMEOUT. */
static void test_older_spellings(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .size = sizeof options, .flags = HW_OPEN_ANYWAY };
    (void)state;
    warned[0] = '\0';
    options.log_fn = collect;
    options.worker = "a, b=5 ,c ";
    setenv("HW_PLUGIN_PATH_ONLY", lair("good"), 1);
    setenv("HW_WORKER_TIMEOUT", "7", 1);
    assert_int_equal(hw_open(&options, &context), HW_OK);
    check_setting(context, "plugin_path", lair("good:!"), "HW_PLUGIN_PATH_ONLY");
    check_setting(context, "worker", "a=7, b=5 ,c=7", "HW_WORKER_TIMEOUT");
    assert_null(strstr(warned, "option worker"));
    assert_null(strstr(warned, "there is no such setting"));
    hw_close(context);
    options.plugin_path = "/nonexistent";
    options.plugin_path_only = "/other";
    options.worker_timeout = "0";
    assert_int_equal(hw_open(&options, &context), HW_OK);
    check_setting(context, "plugin_path", "/nonexistent:/other:!", "option");
    check_setting(context, "worker", "a=0, b=5 ,c=0", "option");
    hw_close(context);
    unsetenv("HW_PLUGIN_PATH_ONLY");
    unsetenv("HW_WORKER_TIMEOUT");
}

/* Turning off the checks causes a warning in the log and in the report. */
static void test_trust_warning(void **state)
{
    struct hw_context *context;
    (void)state;
    setenv("HW_TRUST", "off", 1);
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    assert_non_null(
        strstr(warned, "HW_TRUST=off (HW_TRUST): plugins are loaded no matter"));
    json_t *json = report(context);
    assert_int_equal(json_array_size(json_object_get(json, "warnings")), 1);
    json_decref(json);
    hw_close(context);
    unsetenv("HW_TRUST");
}

/* A broken plugin is logged by default. A missing vendor driver is not. */
static void test_broken_warning(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .log_fn = collect };
    (void)state;
    make_directory(lair("broken"));
    put_plugin(lair("broken"), "good");
    put_plugin(lair("broken"), "open_no_driver");
    put_plugin(lair("broken"), "needs_missing");
    put_plugin(lair("broken"), "count_none");
    warned[0] = '\0';
    assert_int_equal(open_on(lair("broken"), &options, &context), HW_OK);
    assert_string_equal(warned, "");
    hw_close(context);
    write_file(lair("broken/hw_cut.so"), "\177ELF", 4);
    for (int named = 0; named < 2; named++) {
        options.backends = named ? "cut,good" : "";
        warned[0] = '\0';
        assert_int_equal(open_on(lair("broken"), &options, &context), HW_OK);
        assert_non_null(strstr(
            warned, "hw_cut.so is not used, stopped at preflight: the "
                    "file is truncated: it ends within its header. Remedy: Install it"));
        assert_ptr_equal(strchr(warned, '\n') + 1, strrchr(warned, '\0')); /* once */
        hw_close(context);
    }
}

/* Log lines contain no control characters in any encoding, so they cannot move the cursor
 * or change colours. */
static void test_log_lines(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .log_fn = collect };
    (void)state;
    make_directory(lair("lines"));
    put_plugin(lair("lines"), "good");
    write_file(lair("lines/hw_\302\23331m.so"), "", 0);
    write_file(lair("lines/hw_\233\377\033.so"), "", 0);
    write_file(lair("lines/hw_\303\266.so"), "", 0);
    warned[0] = '\0';
    assert_int_equal(open_on(lair("lines"), &options, &context), HW_OK);
    assert_non_null(strstr(warned, "hw_  31m.so"));
    assert_non_null(strstr(warned, "hw_?? .so"));
    assert_non_null(strstr(warned, "hw_\303\266.so"));
    hw_close(context);
}

static char started[4096];

static void collect_start(void *user, const char *path)
{
    const char *name = path ? strrchr(path, '/') + 1 : "done";
    assert_ptr_equal(user, started);
    snprintf(started + strlen(started), sizeof started - strlen(started), "%s ", name);
}

/* A crash handler needs to know which plugin is running. */
static void test_starting(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .start_fn = collect_start,
                                  .start_user = started,
                                  .probe = "inproc" };
    (void)state;
    make_directory(lair("starting"));
    put_plugin(lair("starting"), "good");
    put_plugin(lair("starting"), "abi_newer"); /* its code never runs */
    put_plugin(lair("starting"), "open_no_driver");
    started[0] = '\0';
    assert_int_equal(open_on(lair("starting"), &options, &context), HW_OK);
    assert_string_equal(started, "hw_good.so done hw_open_no_driver.so done ");
    hw_close(context);
    /* A plugin that failed in hw-probe is never loaded here. */
    options.probe = "child";
    started[0] = '\0';
    assert_int_equal(open_on(lair("starting"), &options, &context), HW_OK);
    assert_string_equal(started, "");
    assert_non_null(hw_device_default(context)); /* which is used now */
    assert_string_equal(started, "hw_good.so done ");
    hw_close(context);
}

/* The report is cut and its size returned as by snprintf(). A NULL context is accepted. */
static void test_report_size(void **state)
{
    struct hw_context *context;
    char little[16];
    (void)state;
    assert_int_equal(open_good((struct hw_options){ 0 }, &context), HW_OK);
    size_t whole = hw_explain(context, NULL, 0);
    memset(little, 'x', sizeof little);
    assert_true(hw_explain(context, little, 8) >= whole - 32);
    assert_int_equal(little[7], '\0');
    assert_int_equal(little[8], 'x');
    hw_close(context);
    assert_true(hw_explain(NULL, little, sizeof little) > 0);
}

static int open_good_lair(void **state)
{
    if (lair_open(state))
        return -1;
    make_directory(lair("good"));
    put_plugin(lair("good"), "good");
    return 0;
}

int main(void)
{
    enum { VALUES = sizeof values / sizeof *values, FILES = sizeof files / sizeof *files };
    static struct CMUnitTest tests[VALUES + FILES + 32];
    static char names[VALUES + FILES][96];
    size_t count = 0;
    for (size_t i = 0; i < VALUES; i++, count++) {
        snprintf(names[count], sizeof names[0], "%s row %zu", values[i].variable, i);
        tests[count] = (struct CMUnitTest){ names[count], test_value, NULL, NULL,
                                            (void *)(uintptr_t)&values[i] };
    }
    for (size_t i = 0; i < FILES; i++, count++) {
        snprintf(names[count], sizeof names[0], "file: %s", files[i].name);
        tests[count] = (struct CMUnitTest){ names[count], test_file, NULL, NULL,
                                            (void *)(uintptr_t)&files[i] };
    }
    const struct CMUnitTest whole[] = {
        cmocka_unit_test(test_precedence),      cmocka_unit_test(test_empty_is_unset),
        cmocka_unit_test(test_threads),         cmocka_unit_test(test_default_file),
        cmocka_unit_test(test_cache_dir),       cmocka_unit_test(test_old_options),
        cmocka_unit_test(test_long_value),      cmocka_unit_test(test_file_size),
        cmocka_unit_test(test_file_trust),      cmocka_unit_test(test_file_path_trust),
        cmocka_unit_test(test_file_relative),   cmocka_unit_test(test_unknown_variable),
        cmocka_unit_test(test_older_spellings), cmocka_unit_test(test_invalid_limit),
        cmocka_unit_test(test_report_size),     cmocka_unit_test(test_trust_warning),
        cmocka_unit_test(test_broken_warning),  cmocka_unit_test(test_starting),
        cmocka_unit_test(test_log_lines),
    };
    memcpy(tests + count, whole, sizeof whole);
    count += sizeof whole / sizeof *whole;
    return _cmocka_run_group_tests("settings", tests, count, open_good_lair, lair_close);
}
