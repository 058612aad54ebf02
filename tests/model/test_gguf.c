/* SPDX-License-Identifier: MIT */
/* test_gguf.c - the GGUF reader accepts a good file and rejects each bad one with one
 * sentence that names file, place and reason. Bad files end where readable memory ends:
 * reading one byte too far crashes, with or without sanitizers. */
#define _DEFAULT_SOURCE
#include "blob.h"
#include "model/gguf/gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { I8 = GGUF_TYPE_I8, F32 = GGUF_TYPE_F32, Q8_0 = GGUF_TYPE_Q8_0 };

static const char *model;
static uint8_t *fence; /* the first unreadable byte; a file can be placed in front of it */
static const size_t room = 4 << 20;

static int build_fence(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *start = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return -1;
    fence = start + room;
    return mprotect(fence, page, PROT_NONE);
}

/* Parses a copy that ends at the fence. */
static struct gguf *parse(const void *bytes, size_t size, struct fault *why)
{
    assert_true(size <= room);
    if (size)
        memcpy(fence - size, bytes, size);
    why->text[0] = '\0';
    return gguf_parse(fence - size, size, "some.gguf", why);
}

/* The message is one sentence and begins with the file name. */
static void assert_explained(const struct fault *why)
{
    assert_int_equal(strncmp(why->text, "some.gguf: ", 11), 0);
    assert_null(strchr(why->text, '\n'));
    assert_true(strlen(why->text) > 30);
}

static void assert_refused(struct blob *blob, const char *words)
{
    struct fault why;
    const struct gguf *file = parse(blob->bytes, blob->size, &why);
    if (file || !strstr(why.text, words))
        fail_msg("expected '%s', got: %s", words, file ? "(accepted)" : why.text);
    assert_explained(&why);
    free(blob->bytes);
}

/* ---- The good file ------------------------------------------------------------------- */

static void test_real_file(void **state)
{
    (void)state;
    struct fault why = { "" };
    struct gguf *file = gguf_open(model, &why);
    if (!file)
        fail_msg("%s", why.text);
    uint64_t blocks = 0;
    double eps = 0;
    bool bos = false;
    struct gguf_string name = { 0 };
    struct gguf_array tokens = { 0 };
    assert_true(gguf_get_count(file, "llama.block_count", &blocks, &why));
    assert_true(gguf_get_real(file, "llama.attention.layer_norm_rms_epsilon", &eps, &why));
    assert_true(gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &bos, &why));
    assert_true(gguf_get_string(file, "general.architecture", &name, &why));
    assert_true(gguf_get_array(file, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, &why));
    assert_int_equal(blocks, 4);
    assert_true(eps > 0.99e-5 && eps < 1.01e-5);
    assert_true(bos);
    assert_true(gguf_string_is(name, "llama"));
    assert_int_equal(tokens.count, 1024);
    const uint8_t *cursor = tokens.bytes;
    assert_true(gguf_string_is(gguf_next_string(&cursor), "<unk>"));
    assert_true(gguf_string_is(gguf_next_string(&cursor), "<s>"));

    assert_int_equal(file->pair_count, 27);
    assert_int_equal(file->tensor_count, 38);
    const struct gguf_tensor *up = gguf_tensor(file, "blk.3.ffn_up.weight");
    assert_non_null(up);
    assert_string_equal(gguf_type_name(up->type), "Q8_0");
    assert_int_equal(up->rank, 2);
    assert_int_equal(up->extents[0], 256);
    assert_int_equal(up->extents[1], 768);
    assert_int_equal(up->bytes, 768 * 256 / 32 * 34);
    assert_int_equal((uintptr_t)up->data % 32, 0);
    assert_null(gguf_tensor(file, "blk.3.ffn_u"));
    assert_null(gguf_find(file, "llama"));
    gguf_close(file);
}

/* Version 2 has the same bytes. */
static void test_version_2(void **state)
{
    (void)state;
    struct fault why = { "" };
    size_t size;
    uint8_t *bytes = slurp(model, &size);
    assert_non_null(bytes);
    bytes[4] = 2;
    struct gguf *file = gguf_parse(bytes, size, "some.gguf", &why);
    if (!file)
        fail_msg("%s", why.text);
    assert_int_equal(file->version, 2);
    assert_int_equal(file->tensor_count, 38);
    gguf_close(file);
    free(bytes);
}

static void test_wrong_kinds(void **state)
{
    (void)state;
    struct fault why = { "" };
    struct gguf *file = gguf_open(model, &why);
    uint64_t count = 7;
    double real = 0;
    struct gguf_array array;
    assert_non_null(file);
    assert_true(gguf_get_count(file, "no.such.key", &count, &why));
    assert_int_equal(count, 7);
    assert_false(gguf_get_count(file, "general.name", &count, &why));
    assert_non_null(strstr(why.text, "key 'general.name'"));
    assert_non_null(strstr(why.text, "is a string, must be an integer"));
    assert_false(gguf_get_real(file, "llama.block_count", &real, &why));
    assert_non_null(strstr(why.text, "is a u32, must be f32"));
    assert_false(gguf_get_array(file, "tokenizer.ggml.tokens", GGUF_F32, &array, &why));
    assert_non_null(strstr(why.text, "is an array of string, must be f32"));
    gguf_close(file);
}

/* Integers of every width, signed or unsigned, are accepted as counts unless they are
 * negative. */
static void test_integers(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        size_t bytes;
    } kinds[] = { { GGUF_U8, 1 },  { GGUF_I8, 1 },  { GGUF_U16, 2 }, { GGUF_I16, 2 },
                  { GGUF_U32, 4 }, { GGUF_I32, 4 }, { GGUF_U64, 8 }, { GGUF_I64, 8 } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int negative = 0; negative < 2; negative++) {
            struct blob blob = { 0 };
            const uint64_t value = negative ? UINT64_MAX : 100;
            put_header(&blob, 0, 1);
            put_key(&blob, "n", kinds[i].kind);
            put(&blob, &value, kinds[i].bytes);
            struct fault why = { "" };
            struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
            uint64_t count = 0;
            const bool is_signed = i & 1,
                       taken = file && gguf_get_count(file, "n", &count, &why);
            if (!negative)
                assert_true(taken && count == 100);
            else if (is_signed || kinds[i].bytes == 8)
                assert_false(taken);
            else
                assert_true(taken && count == UINT64_MAX >> (64 - 8 * kinds[i].bytes));
            gguf_close(file);
            free(blob.bytes);
        }
}

/* ---- Truncated files and changed bytes ----------------------------------------------- */

/* The size of the metadata and tensor descriptions of the real file. */
static size_t end_of_metadata(const uint8_t *bytes, size_t size)
{
    struct fault why;
    struct gguf *file = gguf_parse(bytes, size, "some.gguf", &why);
    assert_non_null(file);
    const struct gguf_tensor *last = &file->tensors[0];
    for (size_t i = 0; i < file->tensor_count; i++)
        if (file->tensors[i].offset > last->offset)
            last = &file->tensors[i];
    const size_t end = last->offset + 8 + last->name.length + 4 + 8 * (size_t)last->rank +
                       12;
    gguf_close(file);
    return end;
}

static void test_truncated(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = slurp(model, &size);
    assert_non_null(bytes);
    const size_t metadata = end_of_metadata(bytes, size);
    const size_t step = getenv("HW_TEST_QUICK") ? 3 : 1;
    for (size_t end = 0; end < size; end += end < metadata + 40 ? step : 40009) {
        struct fault why;
        if (parse(bytes, end, &why))
            fail_msg("accepted with %zu of %zu bytes", end, size);
        assert_explained(&why);
    }
    free(bytes);
}

static void test_damaged(void **state)
{
    (void)state;
    static const uint8_t masks[] = { 0xff, 0x80, 0x01 };
    size_t size;
    uint8_t *bytes = slurp(model, &size);
    assert_non_null(bytes);
    const size_t metadata = end_of_metadata(bytes, size);
    const size_t step = getenv("HW_TEST_QUICK") ? 7 : 1;
    for (size_t at = 0; at < metadata; at += step)
        for (size_t i = 0; i < sizeof masks; i++) {
            struct fault why = { "" };
            bytes[at] ^= masks[i];
            struct gguf *file = gguf_parse(bytes, size, "some.gguf", &why);
            if (!file)
                assert_explained(&why);
            gguf_close(file);
            bytes[at] ^= masks[i];
        }
    free(bytes);
}

/* ---- One invalid field each ---------------------------------------------------------- */

static void test_header(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *words;
    } rows[] = {
        { "", 0, "is empty" },
        { "GG", 2, "is not a GGUF file" },
        { "\x7f"
          "ELF\2\1\1",
          7, "is not a GGUF file" },
        { "lmgg\1\0\0\0", 8, "GGML file of before" },
        { "tjgg\3\0\0\0", 8, "GGJT file of before" },
        { "PK\3\4....", 8, "zip archive" },
        { "\x1f\x8b\x08", 3, "gzip" },
        { "version https://git-lfs.github.com/spec/v1\n", 43, "git lfs pull" },
        { "<!DOCTYPE html>", 15, "web page" },
        { "GGUF", 4, "header at byte 4" },
        { "GGUF\1\0\0\0", 8, "version 1 is not supported" },
        { "GGUF\4\0\0\0", 8, "version 4 is not supported, only versions 2 and 3 are" },
        { "GGUF\4\0\0\0", 8, "a newer hw may support it" },
        { "GGUF\0\0\0\3", 8, "big endian" },
        { "GGUF\0\0\0\0", 8, "version 0 is not supported" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct blob blob = { 0 };
        put(&blob, rows[i].bytes, rows[i].size);
        assert_refused(&blob, rows[i].words);
    }
}

/* Invalid counts: the file must be rejected before anything is allocated for them, not
 * because an allocation fails. */
static void test_counts(void **state)
{
    (void)state;
    static const uint64_t counts[] = {
        1, 2, 1000, UINT32_MAX, UINT64_MAX / 33, UINT64_MAX
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct blob tensors = { 0 }, pairs = { 0 }, array = { 0 }, string = { 0 };
        put_header(&tensors, counts[i], 0);
        assert_refused(&tensors, "cannot fit");
        put_header(&pairs, 0, counts[i]);
        assert_refused(&pairs, "cannot fit");
        put_header(&array, 0, 1);
        put_key(&array, "a", GGUF_ARRAY);
        put_u32(&array, GGUF_F64);
        put_u64(&array, counts[i]);
        assert_refused(&array, "key 'a' at byte 41: a count of");
        put_header(&string, 0, 1);
        put_key(&string, "s", GGUF_STRING);
        put_u64(&string, counts[i]);
        assert_refused(&string, "key 's' at byte 37: its length");
    }
}

static void test_pairs(void **state)
{
    (void)state;
    struct blob kind = { 0 }, element = { 0 }, boolean = { 0 }, empty = { 0 },
                unprintable = { 0 };
    struct blob twice = { 0 };

    put_header(&kind, 0, 1);
    put_key(&kind, "key", 13);
    put_u64(&kind, 0);
    assert_refused(&kind, "key 'key' at byte 35: value type 13 is unknown");

    put_header(&element, 0, 1);
    put_key(&element, "key", GGUF_ARRAY);
    put_u32(&element, 99);
    put_u64(&element, 0);
    assert_refused(&element, "value type 99 is unknown");

    put_header(&boolean, 0, 1);
    put_key(&boolean, "key", GGUF_BOOL);
    put_u8(&boolean, 2);
    assert_refused(&boolean, "a bool is 2");

    put_header(&empty, 0, 1);
    put_key(&empty, "", GGUF_U32);
    put_u64(&empty, 0);
    assert_refused(&empty, "its name has 0 bytes");

    put_header(&unprintable, 0, 1);
    put_key(&unprintable, "a\033[2J", GGUF_U32);
    put_u64(&unprintable, 0);
    assert_refused(&unprintable, "is 0x1b, not printable");

    put_header(&twice, 0, 3);
    for (int i = 0; i < 3; i++) {
        put_key(&twice, i == 1 ? "other" : "same", GGUF_U32);
        put_u32(&twice, 1);
    }
    assert_refused(&twice, "duplicate");
}

static void test_nesting(void **state)
{
    (void)state;
    for (int depth = 1; depth < 100000; depth *= 3) {
        struct blob blob = { 0 };
        put_header(&blob, 0, 1);
        put_key(&blob, "deep", GGUF_ARRAY);
        for (int i = 0; i < depth; i++) {
            put_u32(&blob, GGUF_ARRAY);
            put_u64(&blob, 1);
        }
        put_u32(&blob, GGUF_U8);
        put_u64(&blob, 1);
        put_u8(&blob, 1);
        if (depth > 4)
            assert_refused(&blob, "nested deeper");
        else {
            struct fault why = { "" };
            struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
            assert_string_equal(why.text, "");
            assert_non_null(file);
            gguf_close(file);
            free(blob.bytes);
        }
    }
}

static void test_alignment(void **state)
{
    (void)state;
    static const uint32_t wrong[] = { 0, 1, 4, 7, 9, 33, 48, 0x80000001, UINT32_MAX };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct blob blob = { 0 };
        put_header(&blob, 0, 1);
        put_key(&blob, "general.alignment", GGUF_U32);
        put_u32(&blob, wrong[i]);
        assert_refused(&blob, "'general.alignment' at byte 24");
    }
    struct blob text = { 0 }, huge = { 0 };
    put_header(&text, 0, 1);
    put_key(&text, "general.alignment", GGUF_STRING);
    put_string(&text, "32");
    assert_refused(&text, "is a string, must be an integer");

    put_header(&huge, 1, 1);
    put_key(&huge, "general.alignment", GGUF_U32);
    put_u32(&huge, 0x80000000);
    put_tensor(&huge, "t", 1, (const uint64_t[]){ 1 }, I8, 0);
    put_u64(&huge, 0);
    assert_refused(&huge, "reach past the end");
}

static void test_tensors(void **state)
{
    (void)state;
    static const uint64_t past_32 = (uint64_t)1 << 32, huge = (uint64_t)1 << 63;
    static const struct {
        const char *name;
        uint32_t rank;
        uint64_t extents[5];
        uint32_t type;
        uint64_t start;
        const char *words;
    } rows[] = {
        { "", 1, { 1 }, I8, 0, "its name has 0 bytes" },
        { "1234567890123456789012345678901234567890123456789012345678901234+",
          1,
          { 1 },
          I8,
          0,
          "its name has 65 bytes" },
        { "t\n", 1, { 1 }, I8, 0, "is 0x0a, not printable" },
        { "t", 0, { 0 }, I8, 0, "has 0 dimensions" },
        { "t", 5, { 1, 1, 1, 1, 1 }, I8, 0, "has 5 dimensions" },
        { "t", 2, { 32, 0 }, I8, 0, "extent 1 is zero" },
        { "t", 1, { 32 }, 4, 0, "has type Q4_2, which the format no longer has; use" },
        { "t", 1, { 32 }, 31, 0, "has type Q4_0_4_4, which the format no longer has; use" },
        { "t", 1, { 32 }, 35, 0, "not whole TQ2_0 blocks of 256" },
        { "t", 1, { 32 }, 38, 0, "has type IQ4_NL_8_8, which the format no longer" },
        { "t", 1, { 32 }, 42, 0, "ggml type 42 is unknown" },
        { "t", 1, { 32 }, UINT32_MAX, 0, "ggml type 4294967295 is unknown" },
        { "t", 1, { 33 }, Q8_0, 0, "not whole Q8_0 blocks of 32" },
        { "t", 1, { 128 }, 12, 0, "not whole Q4_K blocks of 256" },
        { "t", 3, { past_32, past_32, past_32 }, I8, 0, "overflows" },
        { "t", 4, { 1 << 16, 1 << 16, 1 << 16, 1 << 16 }, I8, 0, "overflows" },
        { "t", 1, { huge }, F32, 0, "overflows" },
        { "t", 1, { huge }, I8, 0, "overflows" },
        { "t", 1, { 32 }, I8, 16, "not a multiple of the alignment 32" },
        { "t", 1, { 65 }, I8, 0, "reach past the end of the file" },
        { "t", 1, { 1 }, I8, 64, "reach past the end of the file" },
        { "t", 1, { 64 }, I8, UINT64_MAX - 31, "reach past the end of the file" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct blob blob = { 0 };
        put_header(&blob, 1, 0);
        put_tensor(&blob, rows[i].name, rows[i].rank, rows[i].extents, rows[i].type,
                   rows[i].start);
        pad(&blob, 32);
        for (int j = 0; j < 64; j++)
            put_u8(&blob, (uint8_t)j);
        assert_refused(&blob, rows[i].words);
    }
}

static void test_tensors_apart(void **state)
{
    (void)state;
    static const struct {
        const char *second;
        uint64_t start;
        const char *words; /* NULL: both tensors are valid */
    } rows[] = { { "b", 64, NULL },
                 { "b", 0, "overlap" },
                 { "b", 32, "overlap" },
                 { "a", 64, "duplicate" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct blob blob = { 0 };
        put_header(&blob, 2, 0);
        put_tensor(&blob, "a", 1, (const uint64_t[]){ 33 }, I8, 0);
        put_tensor(&blob, rows[i].second, 1, (const uint64_t[]){ 1 }, I8, rows[i].start);
        pad(&blob, 32);
        for (int j = 0; j < 65; j++)
            put_u8(&blob, (uint8_t)j);
        if (rows[i].words) {
            assert_refused(&blob, rows[i].words);
            continue;
        }
        struct fault why = { "" };
        struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
        assert_non_null(file);
        assert_int_equal(*(const uint8_t *)gguf_tensor(file, "b")->data, 64);
        gguf_close(file);
        free(blob.bytes);
    }
}

static void test_paths(void **state)
{
    (void)state;
    static const struct {
        const char *path, *words;
    } rows[] = { { "no/such/model.gguf", "cannot be opened" },
                 { ".", "is a directory" },
                 { "/dev/null", "is not a regular file" },
                 { "", "the name of the file is empty" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fault why = { "" };
        assert_null(gguf_open(rows[i].path, &why));
        assert_int_equal(strncmp(why.text, rows[i].path, strlen(rows[i].path)), 0);
        assert_non_null(strstr(why.text, rows[i].words));
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
        return 2;
    }
    model = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_file), cmocka_unit_test(test_wrong_kinds),
        cmocka_unit_test(test_integers),  cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),   cmocka_unit_test(test_header),
        cmocka_unit_test(test_counts),    cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_nesting),   cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_tensors),   cmocka_unit_test(test_tensors_apart),
        cmocka_unit_test(test_paths),     cmocka_unit_test(test_version_2),
    };
    return cmocka_run_group_tests_name("gguf", tests, build_fence, NULL);
}
