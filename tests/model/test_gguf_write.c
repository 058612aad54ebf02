/* SPDX-License-Identifier: MIT */
/* test_gguf_write.c - what the writer writes is what the reader reads; and what is not
 * whole does not appear. Runs in a folder of its own. */
#define _POSIX_C_SOURCE 200809L
#include "blob.h"
#include "model/gguf/gguf.h"
#include "model/gguf/gguf_write.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char path[] = "written.gguf";

/* The feature that the file system seems to lack. The linker puts these functions in front of the C
 * library's. */
static enum missing { NOTHING, NAMELESS_FILES, LINKS } missing;

int __real_access(const char *name, int mode);
int __wrap_access(const char *name, int mode);
int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);

int __wrap_access(const char *name, int mode)
{
    return missing >= NAMELESS_FILES && strcmp(name, "/proc/self/fd") == 0
               ? -1
               : __real_access(name, mode);
}

int __wrap_link(const char *from, const char *to)
{
    if (missing < LINKS)
        return __real_link(from, to);
    errno = EPERM;
    return -1;
}

/* A file with a nested array, and two tensors whose bytes are not a multiple of the
 * alignment. */
static struct gguf *example(struct blob *blob)
{
    struct fault why = { "" };
    const uint64_t first[] = { 5 }, second[] = { 3, 2, 1, 2 };
    *blob = (struct blob){ 0 };
    put_header(blob, 2, 2);
    put_key(blob, "z.array", GGUF_ARRAY);
    put_u32(blob, GGUF_ARRAY);
    put_u64(blob, 1);
    put_u32(blob, GGUF_STRING);
    put_u64(blob, 2);
    put_string(blob, "one");
    put_string(blob, "");
    put_key(blob, "a.number", GGUF_F32);
    put_f32(blob, 0.5F);
    put_tensor(blob, "z", 1, first, GGUF_TYPE_F32, 0);
    put_tensor(blob, "a", 4, second, GGUF_TYPE_I8, 32);
    pad(blob, 32);
    for (uint8_t i = 0; i < 44; i++)
        put_u8(blob, i);
    struct gguf *file = gguf_parse(blob->bytes, blob->size, "example", &why);
    if (!file)
        fail_msg("%s", why.text);
    return file;
}

static struct gguf_writer *create(bool replace, struct fault *why)
{
    return gguf_create(
        &(struct gguf_target){ .path = path, .alignment = 64, .replace = replace }, why);
}

static struct gguf_writer *begin(const struct gguf *file, struct fault *why)
{
    struct gguf_writer *writer = create(false, why);
    if (!writer)
        fail_msg("%s", why->text);
    for (size_t i = 0; i < file->pair_count; i++)
        assert_true(gguf_put_pair(writer, file, &file->pairs[i], why));
    assert_true(gguf_put_u32(writer, "general.alignment", 64, why));
    for (size_t i = 0; i < file->tensor_count; i++)
        assert_true(gguf_put_tensor(writer, &file->tensors[i], file->tensors[i].type, why));
    return writer;
}

static void check(const struct gguf *file, const struct gguf *copy)
{
    uint64_t alignment = 0;
    assert_int_equal(copy->version, 3);
    assert_int_equal(copy->pair_count, file->pair_count + 1);
    assert_true(gguf_get_count(copy, "general.alignment", &alignment, NULL));
    assert_int_equal(alignment, 64);
    for (size_t i = 0; i < file->pair_count; i++) {
        const struct gguf_pair *pair = gguf_find(copy, i ? "z.array" : "a.number");
        assert_non_null(pair);
        assert_int_equal(pair->bytes, file->pairs[i].bytes);
        assert_memory_equal(copy->bytes + pair->offset, file->bytes + file->pairs[i].offset,
                            pair->bytes);
    }
    assert_int_equal(copy->tensor_count, file->tensor_count);
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct gguf_tensor *a = &file->tensors[i], *b = &copy->tensors[i];
        assert_int_equal(gguf_string_compare(a->name, b->name), 0);
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->extents, b->extents, sizeof a->extents);
        assert_int_equal(a->bytes, b->bytes);
        assert_memory_equal(a->data, b->data, a->bytes);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    struct fault why = { "" };
    struct blob blob;
    struct gguf *file = example(&blob);
    struct gguf_writer *writer = begin(file, &why);
    for (size_t i = 0; i < file->tensor_count; i++)
        for (size_t k = 0; k < file->tensors[i].bytes; k++)
            assert_true(
                gguf_put_data(writer, (const char *)file->tensors[i].data + k, 1, &why));
    assert_int_equal(access(path, F_OK), -1);
    assert_true(gguf_finish(writer, &why));
    struct gguf *copy = gguf_open(path, &why);
    if (!copy)
        fail_msg("%s", why.text);
    check(file, copy);
    gguf_close(copy);
    gguf_close(file);
    free(blob.bytes);
    assert_int_equal(unlink(path), 0);
}

static void test_empty(void **state)
{
    (void)state;
    struct fault why = { "" };
    struct gguf_writer *writer = create(false, &why);
    assert_non_null(writer);
    assert_true(gguf_finish(writer, &why));
    struct gguf *copy = gguf_open(path, &why);
    assert_non_null(copy);
    assert_int_equal(copy->pair_count + copy->tensor_count, 0);
    gguf_close(copy);
    assert_int_equal(unlink(path), 0);
}

static void test_not_whole(void **state)
{
    (void)state;
    struct fault why = { "" };
    struct blob blob;
    struct gguf *file = example(&blob);
    static const char zeros[64];
    struct gguf_writer *writer = begin(file, &why);
    assert_true(gguf_put_data(writer, zeros, 11, &why));
    assert_false(gguf_finish(writer, &why));
    assert_non_null(strstr(why.text, "data of 2 tensors are missing"));
    gguf_abandon(writer);
    writer = begin(file, &why);
    assert_false(gguf_put_data(writer, zeros, 13, &why));
    assert_non_null(strstr(why.text, "more data than its tensors have"));
    gguf_abandon(writer);
    assert_null(gguf_create(
        &(struct gguf_target){ .path = "no/such/folder.gguf", .alignment = 32 }, &why));
    assert_non_null(strstr(why.text, "no/such/folder.gguf: cannot be created: "));
    assert_int_equal(access(path, F_OK), -1);
    gguf_close(file);
    free(blob.bytes);
}

/* A file that appears while the writer works stays, unless it may be replaced. */
static void check_race(bool replace)
{
    struct fault why = { "" };
    struct gguf_writer *writer = create(replace, &why);
    assert_non_null(writer);
    FILE *other = fopen(path, "w");
    assert_non_null(other);
    assert_int_equal(fclose(other), 0);
    if (replace) {
        assert_true(gguf_finish(writer, &why));
    } else {
        assert_false(gguf_finish(writer, &why));
        assert_non_null(strstr(why.text, "something else has created it in the meantime"));
        gguf_abandon(writer);
    }
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size > 0, replace);
    assert_int_equal(unlink(path), 0);
}

/* On every kind of file system: with nameless files, with links, with neither. */
static void test_races(void **state)
{
    (void)state;
    for (missing = NOTHING; missing <= LINKS; missing++) {
        check_race(false);
        check_race(true);
        test_empty(NULL);
        test_not_whole(NULL);
    }
    missing = NOTHING;
}

int main(void)
{
    char folder[] = "/tmp/gguf-write-XXXXXX";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_not_whole),
        cmocka_unit_test(test_races),
    };
    if (!mkdtemp(folder) || chdir(folder))
        return 77;
    const int failed = cmocka_run_group_tests_name("gguf write", tests, NULL, NULL);
    return rmdir(folder) ? 1 : failed; /* nothing may be left in it */
}
