/* SPDX-License-Identifier: MIT */
/* test_bpe.c - byte-level tokenizers: the ids that tiny_bpe.py computed for each
 * pre-tokenizer; text that survives encoding and decoding; streams cut anywhere; long texts;
 * invalid vocabularies. */
#include "blob.h"
#include "model/tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <jansson.h>

static const char *directory;

static struct gguf *open_file(const char *pre)
{
    struct fault why = { "" };
    char path[4096];
    snprintf(path, sizeof path, "%s/bpe-%s.gguf", directory, pre);
    struct gguf *file = gguf_open(path, &why);
    if (!file)
        fail_msg("%s", why.text);
    return file;
}

static struct tokenizer *make(const struct gguf *file)
{
    struct fault why = { "" };
    struct tokenizer *tokenizer = tokenizer_create(file, &why);
    if (!tokenizer)
        fail_msg("%s", why.text);
    return tokenizer;
}

static struct tokens encode(const struct tokenizer *tokenizer, const char *text,
                            size_t length)
{
    struct fault why = { "" };
    struct tokens tokens;
    if (!tokenizer_encode(tokenizer, text, length, &tokens, &why))
        fail_msg("%s", why.text);
    return tokens;
}

static struct text decode(const struct tokenizer *tokenizer, const struct tokens *tokens)
{
    struct text text = { 0 };
    struct decoder decoder = { 0 };
    for (size_t i = 0; i < tokens->count; i++)
        assert_true(tokenizer_decode(tokenizer, &decoder, tokens->ids[i], &text));
    assert_true(tokenizer_decode_end(&decoder, &text));
    return text;
}

/* ---- The golden file ----------------------------------------------------------------- */

static size_t unhex(const char *hex, char *bytes)
{
    size_t count = strlen(hex) / 2;
    for (size_t i = 0; i < count; i++) {
        char pair[3] = { hex[2 * i], hex[2 * i + 1] };
        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return count;
}

static bool has_mark(const struct text *text)
{
    for (size_t i = 0; i + 3 <= text->length; i++)
        if (memcmp(text->bytes + i, "\xef\xbf\xbd", 3) == 0)
            return true;
    return false;
}

/* Text that has U+FFFD in it after decoding had bytes that are not UTF-8: the golden texts
 * have no U+FFFD of their own. */
static void check_round_trip(const struct tokenizer *tokenizer, const struct tokens *tokens,
                             const char *bytes, size_t length)
{
    struct text back = decode(tokenizer, tokens);
    if (length > 0 && !has_mark(&back)) {
        assert_int_equal(back.length, length);
        assert_memory_equal(back.bytes, bytes, length);
    }
    free(back.bytes);
}

static void check_text(const struct tokenizer *tokenizer, const char *pre, const char *hex,
                       const json_t *ids)
{
    char bytes[8192];
    assert_true(strlen(hex) / 2 < sizeof bytes);
    const size_t length = unhex(hex, bytes);
    struct tokens tokens = encode(tokenizer, bytes, length);
    bool same = tokens.count == json_array_size(ids);
    for (size_t i = 0; same && i < tokens.count; i++)
        same = tokens.ids[i] == json_integer_value(json_array_get(ids, i));
    if (!same)
        fail_msg("%s: the ids of the text %s differ", pre, hex);
    check_round_trip(tokenizer, &tokens, bytes, length);
    free(tokens.ids);
}

static void test_golden(void **state)
{
    (void)state;
    char path[4096];
    json_error_t error;
    const char *pre;
    json_t *rows, *row;
    size_t index, checked = 0;
    snprintf(path, sizeof path, "%s/bpe.json", directory);
    json_t *golden = json_load_file(path, 0, &error);
    if (!golden)
        fail_msg("%s: %s", path, error.text);
    json_object_foreach (golden, pre, rows) {
        struct gguf *file = open_file(pre);
        struct tokenizer *tokenizer = make(file);
        json_array_foreach (rows, index, row) {
            check_text(tokenizer, pre, json_string_value(json_array_get(row, 0)),
                       json_array_get(row, 1));
            checked++;
        }
        tokenizer_destroy(tokenizer);
        gguf_close(file);
    }
    assert_true(checked > 1000);
    json_decref(golden);
}

/* ---- Texts --------------------------------------------------------------------------- */

/* Bytes that are not UTF-8 survive as tokens: one for each byte, and U+FFFD in the text. */
static void test_invalid_utf8(void **state)
{
    (void)state;
    struct gguf *file = open_file("qwen2");
    struct tokenizer *tokenizer = make(file);
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    for (int i = 128; i < 256; i++) {
        const char one = (char)i;
        struct tokens tokens = encode(tokenizer, &one, 1);
        assert_int_equal(tokens.count, 1);
        assert_int_equal(tokens.ids[0] * 7 % 256, i); /* the order of tiny_bpe.py */
        struct text back = decode(tokenizer, &tokens);
        assert_string_equal(back.bytes, "\xef\xbf\xbd");
        free(back.bytes);
        free(tokens.ids);
    }
    struct tokens tokens = encode(tokenizer, all, sizeof all);
    struct text back = decode(tokenizer, &tokens);
    assert_int_equal(back.length, 128 + 3 * 128);
    free(back.bytes);
    free(tokens.ids);
    tokenizer_destroy(tokenizer);
    gguf_close(file);
}

/* Nothing is printed of a character until its last byte is there. Control tokens have no
 * text, and their names in a text are letters. */
static void test_stream(void **state)
{
    (void)state;
    struct gguf *file = open_file("llama-bpe");
    struct tokenizer *tokenizer = make(file);
    struct tokens tokens = encode(tokenizer, "\xf0\x9f\x91\x91", 4);
    struct text text = { 0 };
    struct decoder decoder = { 0 };
    assert_int_equal(tokens.count, 5);
    assert_int_equal(tokens.ids[0], tokenizer_bos(tokenizer));
    for (size_t i = 0; i < tokens.count; i++) {
        assert_int_equal(text.length, 0);
        assert_true(tokenizer_decode(tokenizer, &decoder, tokens.ids[i], &text));
    }
    assert_string_equal(text.bytes, "\xf0\x9f\x91\x91");
    free(text.bytes);
    free(tokens.ids);

    tokens = encode(tokenizer, "<|end|>", 7);
    for (size_t i = 0; i < tokens.count; i++)
        assert_false(tokenizer_is_end(tokenizer, tokens.ids[i]));
    assert_true(tokenizer_is_end(tokenizer, tokenizer_size(tokenizer) - 1));
    free(tokens.ids);
    tokenizer_destroy(tokenizer);
    gguf_close(file);
}

/* Long runs, where going back one character at a time, or one word at a time, would take
 * quadratic time. */
static void test_long_texts(void **state)
{
    (void)state;
    static const char *const parts[] = { "e",
                                         " ",
                                         "\n",
                                         " \n",
                                         "7",
                                         "'",
                                         "\xc3\xa9",
                                         "\377",
                                         "\377e",
                                         "<tool",
                                         "the king's men, " };
    const size_t size = getenv("HW_TEST_QUICK") ? 1 << 17 : 1 << 20;
    char *text = malloc(size + 16);
    struct gguf *file = open_file("qwen2");
    struct tokenizer *tokenizer = make(file);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t length = 0;
        for (const size_t part = strlen(parts[i]); length < size; length += part)
            memcpy(text + length, parts[i], part);
        struct tokens tokens = encode(tokenizer, text, length);
        assert_true(tokens.count > 0 && tokens.count <= length);
        check_round_trip(tokenizer, &tokens, text, length);
        free(tokens.ids);
    }
    tokenizer_destroy(tokenizer);
    gguf_close(file);
    free(text);
}

/* ---- Small vocabularies -------------------------------------------------------------- */

struct small {
    const char *pre;       /* NULL: the key is missing */
    const char *merges[3]; /* NULL after the last; none at all: the key is missing */
    uint64_t types;        /* how many */
};

static const char *const pieces[] = { "a", "b", "ab", "\304\240a", "<x>" };
enum { PIECES = sizeof pieces / sizeof *pieces };

static struct blob put_small(const struct small *small)
{
    struct blob blob = { 0 };
    uint64_t merges = 0;
    while (merges < 3 && small->merges[merges])
        merges++;
    put_header(&blob, 0, 3u + (small->pre != NULL) + (merges > 0));
    put_key(&blob, "tokenizer.ggml.model", GGUF_STRING);
    put_string(&blob, "gpt2");
    if (small->pre) {
        put_key(&blob, "tokenizer.ggml.pre", GGUF_STRING);
        put_string(&blob, small->pre);
    }
    put_key(&blob, "tokenizer.ggml.tokens", GGUF_ARRAY);
    put_u32(&blob, GGUF_STRING);
    put_u64(&blob, PIECES);
    for (int i = 0; i < PIECES; i++)
        put_string(&blob, pieces[i]);
    put_key(&blob, "tokenizer.ggml.token_type", GGUF_ARRAY);
    put_u32(&blob, GGUF_I32);
    put_u64(&blob, small->types);
    for (uint64_t i = 0; i < small->types; i++)
        put_u32(&blob, i == 4 ? 3 : 1);
    if (merges) {
        put_key(&blob, "tokenizer.ggml.merges", GGUF_ARRAY);
        put_u32(&blob, GGUF_STRING);
        put_u64(&blob, merges);
        for (uint64_t i = 0; i < merges; i++)
            put_string(&blob, small->merges[i]);
    }
    return blob;
}

static void test_bad_vocabularies(void **state)
{
    (void)state;
    static const char merge[] =
        "element 0 of 'tokenizer.ggml.merges' is not a token in two";
    const struct {
        struct small small;
        const char *words; /* NULL: unusual, but valid */
    } rows[] = {
        { { "gpt-2", { "a b" }, PIECES }, NULL },
        { { "gpt-2", { "a b", "a b" }, PIECES }, NULL },
        { { NULL, { "a b" }, PIECES }, "key 'tokenizer.ggml.pre' is missing; " },
        { { "default", { "a b" }, PIECES }, "key 'tokenizer.ggml.pre' is 'default'" },
        { { "gpt-2", { NULL }, PIECES }, "'tokenizer.ggml.merges' has 0 elements" },
        { { "gpt-2", { "a b" }, 4 }, "tokens and token_type have 5 and 4 elements" },
        { { "gpt-2", { "ab" }, PIECES }, merge },
        { { "gpt-2", { "a" }, PIECES }, merge },
        { { "gpt-2", { " b" }, PIECES }, merge },
        { { "gpt-2", { "a " }, PIECES }, merge },
        { { "gpt-2", { "b a" }, PIECES }, merge },
        { { "gpt-2", { "a b b" }, PIECES }, merge },
        { { "gpt-2", { "<x >" }, PIECES }, merge },
        { { "gpt-2", { "a \xe2\x96\x81" }, PIECES }, merge },
        { { "gpt-2", { "a b", "a c" }, PIECES }, "element 1 of 'tokenizer.ggml.merges'" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fault why = { "" };
        struct blob blob = put_small(&rows[i].small);
        struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
        assert_non_null(file);
        struct tokenizer *tokenizer = tokenizer_create(file, &why);
        if (!tokenizer != !!rows[i].words ||
            (rows[i].words &&
             (!strstr(why.text, rows[i].words) || !strstr(why.text, "some.gguf: "))))
            fail_msg("row %zu: expected '%s', got: %s", i, rows[i].words, why.text);
        tokenizer_destroy(tokenizer);
        gguf_close(file);
        free(blob.bytes);
    }
}

/* A vocabulary may lack bytes. A text that has one is refused, and not shortened. */
static void test_missing_byte(void **state)
{
    (void)state;
    static const int32_t wanted[] = { 2, 1, 0 };
    const struct small small = { "gpt-2", { "a b" }, PIECES };
    struct blob blob = put_small(&small);
    struct fault why = { "" };
    struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
    struct tokenizer *tokenizer = make(file);
    struct tokens tokens = encode(tokenizer, "abba", 4);
    assert_int_equal(tokens.count, 3);
    assert_memory_equal(tokens.ids, wanted, sizeof wanted);
    free(tokens.ids);
    assert_false(tokenizer_encode(tokenizer, "abc", 3, &tokens, &why));
    assert_non_null(strstr(why.text, "the text has byte 0x63, for which"));
    assert_null(tokens.ids);
    tokenizer_destroy(tokenizer);
    gguf_close(file);
    free(blob.bytes);
}

/* A space is added in front only if the file asks for it, and the text does not begin with one. */
static void test_space_prefix(void **state)
{
    (void)state;
    static const struct small small = { "gpt-2", { "\304\240 a" }, PIECES };
    struct blob blob = put_small(&small);
    struct fault why = { "" };
    count_pairs(&blob, 1);
    put_key(&blob, "tokenizer.ggml.add_space_prefix", GGUF_BOOL);
    put_u8(&blob, 1);
    struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
    assert_non_null(file);
    struct tokenizer *tokenizer = make(file);
    for (int i = 0; i < 2; i++) {
        struct tokens tokens = encode(tokenizer, &" a"[i], 2 - (size_t)i);
        /* without a piece for the space itself */
        assert_int_equal(tokens.count, 1);
        assert_int_equal(tokens.ids[0], 3);
        free(tokens.ids);
    }
    tokenizer_destroy(tokenizer);
    gguf_close(file);
    free(blob.bytes);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    directory = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),       cmocka_unit_test(test_invalid_utf8),
        cmocka_unit_test(test_stream),       cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_missing_byte), cmocka_unit_test(test_bad_vocabularies),
        cmocka_unit_test(test_space_prefix),
    };
    return cmocka_run_group_tests_name("bpe", tests, NULL, NULL);
}
