/* SPDX-License-Identifier: MIT */
/* test_upload.c - more and larger tensors than there are slots and bytes in a piece arrive whole,
 * in their places, converted where the types differ, from memory and from a file; and a failure is
 * reported. */
#define _POSIX_C_SOURCE 200809L
#include "model/llama/upload.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SMALL = 40, ITEMS = SMALL + 3, LARGE_ROWS = 4099, COLS = 1280 };

static struct hw_context *context;
static struct hw_queue *queue;
static struct upload_item items[ITEMS];

static int open_all(void **state)
{
    /* The CPU converts. */
    const struct hw_options options = { .size = sizeof options, .backends = "cpu" };
    (void)state;
    if (hw_open(&options, &context) ||
        hw_queue_open(hw_device_default(context), NULL, &queue))
        return fprintf(stderr, "%s\n", hw_message()), -1;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    hw_close(context);
    return 0;
}

static uint64_t bytes_of(const struct upload_item *item, int32_t dtype)
{
    uint64_t count = 1;
    for (int i = 0; i < item->to.rank; i++)
        count *= (uint64_t)item->to.extent[i];
    return count / (uint64_t)hw_dtype_block(dtype) * (uint64_t)hw_dtype_bytes(dtype);
}

/* Bytes that differ from item to item and along each. As f16 they are small numbers, and as q8_0
 * their scales are, too. */
static void add_item(int index, int32_t from, int32_t to, int64_t rows, int64_t cols)
{
    const int64_t extents[] = { rows, cols };
    struct upload_item *item = &items[index];
    item->dtype = from;
    assert_int_equal(hw_tensor_alloc(hw_queue_device(queue), HW_BUFFER_READ_ONLY, to, 2,
                                     extents, &item->to),
                     HW_OK);
    const uint64_t bytes = bytes_of(item, from);
    uint8_t *data = malloc((size_t)bytes);
    assert_non_null(data);
    uint32_t state = 12345 + (uint32_t)index;
    for (uint64_t i = 0; i < bytes; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = state >> 24 & 0x3b;
    }
    item->from = data;
}

static void add_all(void)
{
    for (int i = 0; i < SMALL; i++)
        add_item(i, HW_F16, i % 2 ? HW_F32 : HW_F16, 1 + i, 32);
    add_item(SMALL, HW_F16, HW_F16, LARGE_ROWS, COLS);
    add_item(SMALL + 1, HW_F16, HW_F32, LARGE_ROWS, COLS);
    add_item(SMALL + 2, HW_Q8_0, HW_Q8_0, 2 * LARGE_ROWS, COLS);
}

static void free_items(void)
{
    for (int i = 0; i < ITEMS; i++) {
        free((void *)(uintptr_t)items[i].from);
        hw_buffer_free(items[i].to.buffer);
    }
    memset(items, 0, sizeof items);
}

/* The expected bytes, made by one copy of the whole. */
static void check_item(const struct upload_item *item)
{
    const uint64_t bytes = bytes_of(item, item->to.dtype);
    void *wanted = malloc((size_t)bytes), *got = malloc((size_t)bytes);
    const struct hw_tensor *to = &item->to;
    const struct hw_copy op = {
        .src = hw_host_2d(item->from, item->dtype, to->extent[0], to->extent[1]),
        .dst = hw_host_2d(wanted, to->dtype, to->extent[0], to->extent[1]),
    };
    assert_non_null(wanted);
    assert_non_null(got);
    assert_int_equal(hw_copy(queue, &op), HW_OK);
    assert_int_equal(hw_tensor_read(queue, to, got, bytes), HW_OK);
    assert_int_equal(hw_queue_wait(queue), HW_OK);
    assert_memory_equal(got, wanted, (size_t)bytes);
    free(wanted);
    free(got);
}

struct progress {
    uint64_t done, total;
    int calls;
};

static void note_progress(void *user, uint64_t done, uint64_t total)
{
    struct progress *progress = user;
    assert_true(done >= progress->done && done <= total);
    assert_true(progress->calls || done == 0);
    *progress = (struct progress){ done, total, progress->calls + 1 };
}

static void test_all_arrive(void **state)
{
    struct progress progress = { 0 };
    struct fault why = { "" };
    uint64_t total = 0;
    (void)state;
    add_all();
    const struct upload upload = { .queue = queue,
                                   .items = items,
                                   .count = ITEMS,
                                   .file = -1,
                                   .progress = note_progress,
                                   .user = &progress };
    if (!upload_run(&upload, &why))
        fail_msg("%s", why.text);
    for (int i = 0; i < ITEMS; i++) {
        check_item(&items[i]);
        total += bytes_of(&items[i], items[i].dtype);
    }
    assert_int_equal(progress.done, total);
    assert_int_equal(progress.total, total);
    assert_true(progress.calls >= 2); /* before the first piece, and after the last one */
    free_items();
}

/* ---- from a file ---- */

/* Writes all items to a file, without its last `missing` bytes, and has them read from there: the
 * memory where they would be mapped is never touched. */
static bool upload_from_file(off_t missing, struct fault *why)
{
    static char nowhere; /* stands for the first byte of the mapping */
    char path[] = "/tmp/hw-upload-XXXXXX";
    struct upload_item there[ITEMS];
    const int file = mkstemp(path);
    off_t at = 4097;
    assert_true(file >= 0);
    unlink(path);
    for (int i = 0; i < ITEMS; i++) {
        const size_t bytes = (size_t)bytes_of(&items[i], items[i].dtype);
        assert_int_equal(pwrite(file, items[i].from, bytes, at), bytes);
        there[i] = items[i];
        there[i].from = (const void *)((uintptr_t)&nowhere + (uintptr_t)at);
        at += (off_t)bytes;
    }
    assert_int_equal(ftruncate(file, at - missing), 0);
    const struct upload upload = { .queue = queue,
                                   .items = there,
                                   .count = ITEMS,
                                   .name = "a.gguf",
                                   .file = file,
                                   .bytes = &nowhere };
    const bool good = upload_run(&upload, why);
    close(file);
    return good;
}

static void test_file(void **state)
{
    struct fault why = { "" };
    (void)state;
    add_all();
    if (!upload_from_file(0, &why))
        fail_msg("%s", why.text);
    for (int i = 0; i < ITEMS; i++)
        check_item(&items[i]);
    free_items();
}

/* As a mapping it would end the process. */
static void test_file_that_became_shorter(void **state)
{
    struct fault why = { "" };
    (void)state;
    add_all();
    assert_false(upload_from_file(1, &why));
    assert_string_equal(
        why.text,
        "a.gguf: has become shorter while it was read: run this again when it is complete");
    free_items();
}

static void test_file_that_cannot_be_read(void **state)
{
    struct fault why = { "" };
    (void)state;
    add_all();
    const struct upload upload = { .queue = queue,
                                   .items = items,
                                   .count = 1,
                                   .name = "a.gguf",
                                   .file = open("/tmp", O_RDONLY | O_DIRECTORY),
                                   .bytes = items[0].from };
    assert_true(upload.file >= 0);
    assert_false(upload_run(&upload, &why));
    assert_string_equal(why.text, "a.gguf: cannot be read: Is a directory");
    close(upload.file);
    free_items();
}

static void test_nothing(void **state)
{
    const struct upload upload = { .queue = queue, .file = -1 };
    struct fault why;
    (void)state;
    assert_true(upload_run(&upload, &why));
}

/* The readers end, too. */
static void test_failure(void **state)
{
    struct fault why = { "" };
    (void)state;
    add_all();
    items[3].dtype = HW_I8; /* which no copy converts */
    const struct upload upload = {
        .queue = queue, .items = items, .count = ITEMS, .file = -1
    };
    assert_false(upload_run(&upload, &why));
    assert_non_null(strstr(why.text, "upload the weights: "));
    free_items();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_arrive),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_that_became_shorter),
        cmocka_unit_test(test_file_that_cannot_be_read),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
