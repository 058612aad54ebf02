/* SPDX-License-Identifier: MIT */
/* fixture.c - see fixture.h. FIXTURES is the directory of the built plugins. */
#define _GNU_SOURCE
#include "fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void clear_environment(void)
{
    static const char *const names[] = {
        "HW_BACKENDS",      "HW_DISABLE",      "HW_REQUIRE",          "HW_FALLBACK",
        "HW_PLUGIN_PATH",   "HW_TRUST",        "HW_PLUGIN_PATH_ONLY", "HW_PROBE",
        "HW_PROBE_TIMEOUT", "HW_THREADS",      "HW_PRECISION",        "HW_MEMORY_LIMIT",
        "HW_CONFIG",        "HW_CACHE_DIR",    "HW_KERNEL",           "HW_LOG",
        "HW_SHADOW",        "OMP_NUM_THREADS", "LD_LIBRARY_PATH"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    unsetenv("HW_WORKER");
    setenv("HOME", root, 1);
    setenv("XDG_CONFIG_HOME", root, 1);
    unsetenv("XDG_CACHE_HOME");
}

int lair_open(void **state)
{
    (void)state;
    umask(022);
    strcpy(root, "/tmp/hw-test-XXXXXX");
    if (!mkdtemp(root) || chmod(root, 0755))
        return -1;
    clear_environment();
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

int lair_close(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *lair(const char *format, ...)
{
    static char buffers[8][4096];
    static unsigned turn;
    char *text = buffers[turn++ % 8];
    int length = snprintf(text, sizeof buffers[0], "%s/", root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, sizeof buffers[0] - (size_t)length, format, arguments);
    va_end(arguments);
    return text;
}

void make_directory(const char *path)
{
    assert_int_equal(mkdir(path, 0755), 0);
}

void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

unsigned char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = calloc(1, *size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

const char *built(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/hw_%s.so", FIXTURES, name);
    return path;
}

void put_plugin(const char *directory, const char *name)
{
    size_t size;
    unsigned char *bytes = read_file(built(name), &size);
    char path[4096];
    snprintf(path, sizeof path, "%s/hw_%s.so", directory, name);
    write_file(path, bytes, size);
    free(bytes);
}

void tally_begin(void)
{
    setenv("HW_TEST_TALLY", lair("tally.txt"), 1);
    write_file(lair("tally.txt"), "", 0);
}

struct tally tallied(void)
{
    struct tally tally = { 0 };
    size_t size;
    unsigned char *bytes = read_file(lair("tally.txt"), &size);
    for (size_t i = 0; i < size; i++) {
        tally.tried += bytes[i] == 'p';
        tally.bound += bytes[i] == 'b';
    }
    free(bytes);
    tally_begin();
    return tally;
}

static void no_log(void *user, int32_t level, const char *text)
{
    (void)user, (void)level, (void)text;
}

enum hw_status open_on(const char *path, const struct hw_options *more,
                       struct hw_context **context)
{
    struct hw_options options = { 0 };
    if (more)
        options = *more;
    options.size = sizeof options;
    options.plugin_path_only = path;
    if (!options.probe) /* without it, the default */
        options.probe = getenv("HW_TEST_PROBE");
    if (!options.log_fn)
        options.log_fn = no_log;
    return hw_open(&options, context);
}

json_t *report(struct hw_context *context)
{
    size_t size = hw_explain(context, NULL, 0);
    char *text = malloc(size + 1);
    assert_non_null(text);
    assert_int_equal(hw_explain(context, text, size + 1), size);
    assert_int_equal(strlen(text), size);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        print_error("%s\n%s\n", text, error.text);
    assert_non_null(json);
    free(text);
    return json;
}

const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

const json_t *candidate(const json_t *report, const char *path)
{
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(report, "candidates"), i, entry) {
        if (strcmp(text_of(entry, "file"), path) == 0)
            return entry;
    }
    return NULL;
}

void check_reason(const json_t *entry, const char *reason)
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

void check_good(struct hw_context *context, const json_t *json, const char *path)
{
    struct hw_device *device;
    struct hw_device_info info = { .size = sizeof info };
    check_reason(candidate(json, path), "");
    assert_int_equal(hw_device_find(context, "good:0", &device), HW_OK);
    assert_int_equal(hw_device_info(device, &info), HW_OK);
    assert_string_equal(info.name, "a device of good");
}

void use_all(struct hw_context *context)
{
    struct hw_queue *queue; /* hw_close() closes it */
    for (uint32_t i = 0; i < hw_device_count(context); i++)
        hw_queue_open(hw_device_at(context, i), NULL, &queue);
}
