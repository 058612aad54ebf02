/* SPDX-License-Identifier: MIT */
/* test_tokenizer.c - the ids of the golden file; agreement with a slow encoder written
 * from the definition; text that survives encoding and decoding; streams cut anywhere;
 * invalid vocabularies. */
#include "blob.h"
#include "model/gguf/shape.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <jansson.h>

static struct gguf *file;
static struct tokenizer *tokenizer;
static const char *model_path, *golden_path;

static int open_model(void **state)
{
    (void)state;
    struct fault why = { "" };
    file = gguf_open(model_path, &why);
    tokenizer = file ? tokenizer_create(file, &why) : NULL;
    if (!tokenizer)
        fprintf(stderr, "%s\n", why.text);
    return tokenizer ? 0 : -1;
}

static int close_model(void **state)
{
    (void)state;
    tokenizer_destroy(tokenizer);
    gguf_close(file);
    return 0;
}

static struct tokens encode(const char *text, size_t length)
{
    struct fault why = { "" };
    struct tokens tokens;
    if (!tokenizer_encode(tokenizer, text, length, &tokens, &why))
        fail_msg("%s", why.text);
    return tokens;
}

/* ---- The golden file ----------------------------------------------------------------- */

static void check_golden(const json_t *entry)
{
    const char *prompt = json_string_value(json_object_get(entry, "prompt"));
    const json_t *ids = json_object_get(entry, "prompt_ids");
    const json_t *answer = json_object_get(entry, "greedy_ids");
    struct tokens tokens = encode(prompt, strlen(prompt));
    assert_int_equal(tokens.count, json_array_size(ids));
    for (size_t i = 0; i < tokens.count; i++)
        assert_int_equal(tokens.ids[i], json_integer_value(json_array_get(ids, i)));
    free(tokens.ids);

    struct text text = { 0 };
    struct decoder decoder = { .started = true };
    for (size_t i = 0; i < json_array_size(answer); i++) {
        const json_int_t id = json_integer_value(json_array_get(answer, i));
        assert_true(tokenizer_decode(tokenizer, &decoder, (int32_t)id, &text));
    }
    assert_true(tokenizer_decode_end(&decoder, &text));
    assert_string_equal(text.bytes, json_string_value(json_object_get(entry, "text")));
    free(text.bytes);
}

static void test_golden(void **state)
{
    (void)state;
    json_error_t error;
    json_t *golden = json_load_file(golden_path, 0, &error), *entries;
    const char *type;
    size_t index, checked = 0;
    json_t *entry;
    if (!golden)
        fail_msg("%s: %s", golden_path, error.text);
    json_object_foreach (golden, type, entries)
        json_array_foreach (entries, index, entry) {
            check_golden(entry);
            checked++;
        }
    assert_true(checked >= 4);
    json_decref(golden);
}

/* ---- A slow encoder by definition ---------------------------------------------------- */

/* Splits text into characters, then repeatedly joins the best pair, the leftmost first, by
 * a full search. For valid UTF-8 of at most 200 bytes and a vocabulary without pieces that
 * are matched whole. */
struct slow {
    char text[700];
    size_t start[701]; /* start of each symbol; the last is the end */
    size_t count;
};

static int32_t slow_find(const char *bytes, size_t length)
{
    struct gguf_array tokens, types;
    gguf_get_array(file, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, NULL);
    gguf_get_array(file, "tokenizer.ggml.token_type", GGUF_I32, &types, NULL);
    const uint8_t *cursor = tokens.bytes;
    for (uint64_t id = 0; id < tokens.count; id++) {
        const struct gguf_string piece = gguf_next_string(&cursor);
        if (piece.length == length && gguf_i32_at(&types, id) == 1 &&
            memcmp(piece.bytes, bytes, length) == 0)
            return (int32_t)id;
    }
    return -1;
}

static bool slow_join(struct slow *slow)
{
    struct gguf_array scores;
    size_t best = SIZE_MAX;
    float best_score = 0;
    gguf_get_array(file, "tokenizer.ggml.scores", GGUF_F32, &scores, NULL);
    for (size_t i = 0; i + 1 < slow->count; i++) {
        const size_t start = slow->start[i], end = slow->start[i + 2];
        const int32_t id = slow_find(slow->text + start, end - start);
        const float score = id < 0 ? 0 : gguf_f32_at(&scores, (uint64_t)id);
        if (id >= 0 && (best == SIZE_MAX || score > best_score)) {
            best = i;
            best_score = score;
        }
    }
    if (best == SIZE_MAX)
        return false;
    memmove(&slow->start[best + 1], &slow->start[best + 2],
            (slow->count - best - 1) * sizeof *slow->start);
    slow->count--;
    return true;
}

static size_t slow_encode(const char *text, int32_t *ids)
{
    struct slow slow = { .text = "\xe2\x96\x81" };
    size_t length = *text ? 3 : 0, count = 0;
    for (; *text; text++)
        if (*text == ' ') {
            memcpy(slow.text + length, "\xe2\x96\x81", 3);
            length += 3;
        } else
            slow.text[length++] = *text;
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)slow.text[i] & 0xc0) != 0x80)
            slow.start[slow.count++] = i;
    slow.start[slow.count] = length;
    while (slow_join(&slow))
        ;
    ids[count++] = 1;
    for (size_t i = 0; i < slow.count; i++) {
        const size_t end = slow.start[i + 1];
        const int32_t id = slow_find(slow.text + slow.start[i], end - slow.start[i]);
        for (size_t b = slow.start[i]; id < 0 && b < end; b++)
            ids[count++] =
                3 + (unsigned char)slow.text[b]; /* <0x00> is token 3 of this model */
        if (id >= 0)
            ids[count++] = id;
    }
    return count;
}

static uint32_t dice(uint32_t *state, uint32_t sides)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % sides;
}

static void test_definition(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "the",  "king",   " ",    "  ",  "and",      "ROMEO", ":", "\n",
        "aaaa", "e",      "th",   "ing", "\xc3\xa9", "z",     "'", "\xf0\x9f\x91\x91",
        "<s>",  "<0x41>", "I'll", "ss",  "\t"
    };
    const uint32_t count = sizeof parts / sizeof *parts;
    const int rounds = getenv("HW_TEST_QUICK") ? 20 : 200;
    uint32_t random = 1;
    for (int round = 0; round < rounds; round++) {
        char text[201] = "";
        for (uint32_t i = dice(&random, 20); i-- > 0;)
            strcat(text, parts[dice(&random, count)]);
        int32_t wanted[700];
        const size_t wanted_count = slow_encode(text, wanted);
        struct tokens tokens = encode(text, strlen(text));
        if (tokens.count != wanted_count ||
            memcmp(tokens.ids, wanted, wanted_count * sizeof *wanted) != 0)
            fail_msg("the encoding of '%s' differs from the definition", text);
        free(tokens.ids);
    }
}

/* ---- Round trips --------------------------------------------------------------------- */

static char *there_and_back(const char *bytes, size_t size, size_t *length)
{
    struct tokens tokens = encode(bytes, size);
    struct text text = { 0 };
    struct decoder decoder = { 0 };
    for (size_t i = 0; i < tokens.count; i++)
        assert_true(tokenizer_decode(tokenizer, &decoder, tokens.ids[i], &text));
    assert_true(tokenizer_decode_end(&decoder, &text));
    free(tokens.ids);
    *length = text.length;
    return text.bytes;
}

static void test_round_trip(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        { " ", 1 },
        { "  two  spaces  ", 15 },
        { "\n\t\r\001\177", 5 },
        { "zero \0 inside\0", 14 },
        { "caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x91\x91", 17 },
        { "<s>hello</s><0x41><unk>", 23 },
        { "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", 10 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length;
        char *back = there_and_back(rows[i].bytes, rows[i].size, &length);
        assert_int_equal(length, rows[i].size);
        assert_memory_equal(back, rows[i].bytes, length);
        free(back);
    }
}

/* Invalid UTF-8 is encoded byte by byte, and decoded as U+FFFD. */
static void test_invalid_utf8(void **state)
{
    (void)state;
    static const char mark[] = "\xef\xbf\xbd";
    static const char *const rows[] = {
        "\x80",         "\xff",         "\xc0\x80",     "\xc1\xbf",
        "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf", "\xf4\x90\x80\x80",
        "\xf5",         "\xc3",         "\xe2\x96",     "\xf0\x9f\x91",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tokens tokens = encode(rows[i], strlen(rows[i]));
        assert_int_equal(tokens.count, 2 + strlen(rows[i])); /* BOS, U+2581, the bytes */
        for (size_t b = 0; b < strlen(rows[i]); b++)
            assert_int_equal(tokens.ids[2 + b], 3 + (unsigned char)rows[i][b]);
        free(tokens.ids);
        size_t length;
        char *back = there_and_back(rows[i], strlen(rows[i]), &length);
        assert_true(length >= 3 && length % 3 == 0);
        for (size_t b = 0; b < length; b++)
            assert_int_equal(back[b], mark[b % 3]);
        free(back);
    }
}

/* A character is printed in one piece after its last byte, however its bytes are split. */
static void test_stream(void **state)
{
    (void)state;
    struct decoder decoder = { .started = true };
    struct text text = { 0 };
    const unsigned char crown[] = { 0xf0, 0x9f, 0x91, 0x91 };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(text.length, 0);
        assert_true(tokenizer_decode(tokenizer, &decoder, 3 + crown[i], &text));
    }
    assert_int_equal(text.length, 4);
    assert_memory_equal(text.bytes, crown, 4);

    /* Control tokens print nothing. An interrupted character and an unknown id print
     * U+FFFD. */
    assert_true(tokenizer_decode(tokenizer, &decoder, 1, &text));
    assert_true(tokenizer_decode(tokenizer, &decoder, 2, &text));
    assert_int_equal(text.length, 4);
    assert_true(tokenizer_decode(tokenizer, &decoder, 3 + 0xe2, &text));
    assert_int_equal(text.length, 4);
    assert_true(tokenizer_decode(tokenizer, &decoder, 3 + 'A', &text));
    assert_string_equal(text.bytes + 4, "\xef\xbf\xbd"
                                        "A");
    assert_true(tokenizer_decode(tokenizer, &decoder, 1 << 20, &text));
    assert_true(tokenizer_decode(tokenizer, &decoder, -5, &text));
    assert_string_equal(text.bytes + 8, "\xef\xbf\xbd\xef\xbf\xbd");
    free(text.bytes);
}

static void test_edges(void **state)
{
    (void)state;
    struct tokens tokens = encode("", 0);
    assert_int_equal(tokens.count, 1);
    assert_int_equal(tokens.ids[0], tokenizer_bos(tokenizer));
    free(tokens.ids);
    assert_true(tokenizer_is_end(tokenizer, 2));
    assert_false(tokenizer_is_end(tokenizer, 1));
    assert_false(tokenizer_is_end(tokenizer, -1));

    struct fault why = { "" };
    assert_false(tokenizer_encode(tokenizer, "", (size_t)1 << 40, &tokens, &why));
    assert_null(tokens.ids);
    assert_non_null(strstr(why.text, "split it"));

    /* In a long text of equal characters, every merge ties with its neighbours. Quadratic
     * work would take too long. */
    const size_t size = 1 << 20;
    char *long_text = malloc(size);
    assert_non_null(long_text);
    memset(long_text, 'e', size);
    tokens = encode(long_text, size);
    assert_true(tokens.count > 1000);
    free(tokens.ids);
    free(long_text);
}

/* ---- Vocabularies of few pieces ------------------------------------------------------ */

struct entry {
    const char *text;
    int32_t type;
    float score;
};

#define ABSENT UINT64_MAX

/* Writes `tokens` of the pieces, and the given numbers of scores and types, valid or not, or none
 * if they are ABSENT. */
static void put_vocabulary(struct blob *blob, const char *kind, const struct entry *pieces,
                           uint64_t tokens, uint64_t scores, uint64_t types, uint32_t eos)
{
    put_header(blob, 0, 3u + (scores != ABSENT) + (types != ABSENT));
    put_key(blob, "tokenizer.ggml.model", GGUF_STRING);
    put_string(blob, kind);
    put_key(blob, "tokenizer.ggml.tokens", GGUF_ARRAY);
    put_u32(blob, GGUF_STRING);
    put_u64(blob, tokens);
    for (uint64_t i = 0; i < tokens; i++)
        put_string(blob, pieces[i].text);
    if (scores != ABSENT) {
        put_key(blob, "tokenizer.ggml.scores", GGUF_ARRAY);
        put_u32(blob, GGUF_F32);
        put_u64(blob, scores);
        for (uint64_t i = 0; i < scores; i++)
            put_f32(blob, pieces[i].score);
    }
    if (types != ABSENT) {
        put_key(blob, "tokenizer.ggml.token_type", GGUF_ARRAY);
        put_u32(blob, GGUF_I32);
        put_u64(blob, types);
        for (uint64_t i = 0; i < types; i++)
            put_u32(blob, (uint32_t)pieces[i].type);
    }
    put_key(blob, "tokenizer.ggml.eos_token_id", GGUF_U32);
    put_u32(blob, eos);
}

static void test_bad_vocabularies(void **state)
{
    (void)state;
    const float nan = (float)strtod("nan", NULL);
    const struct {
        const char *kind;
        uint64_t tokens, scores, types; /* the number of each */
        int32_t type;
        float score;
        uint32_t eos;
        const char *words; /* NULL: unusual, but valid */
    } rows[] = {
        { "bert", 3, 3, 3, 1, 0, 2, "is 'bert', supported are 'llama'" },
        { "", 3, 3, 3, 1, 0, 2, "is '', supported are 'llama'" },
        { "llama", 0, 0, 0, 1, 0, 0, "have 0, 0 and 0 elements" },
        { "llama", 3, 2, 3, 1, 0, 2, "have 3, 2 and 3 elements" },
        { "llama", 3, 3, 4, 1, 0, 2, "have 3, 3 and 4 elements" },
        { "llama", 3, 3, 3, 7, 0, 2, "token 0 has score 0, type 7" },
        { "llama", 3, 3, 3, -1, 0, 2, "token 0 has score 0, type -1" },
        { "llama", 3, 3, 3, 6, 0, 2, "token 0 has score 0, type 6" },
        { "llama", 3, 3, 3, 1, nan, 2, "token 0 has score" },
        { "llama", 3, 3, 3, 1, 0, 3, "'tokenizer.ggml.eos_token_id' is 3" },
        { "llama", 3, 3, 3, 1, 0, 2, NULL },
        { "llama", 2, 2, 2, 4, 0, 1, NULL },
        { "llama", 1, 1, 1, 3, 0, 0, NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct entry piece = { "piece", rows[i].type, rows[i].score };
        const struct entry pieces[] = {
            { "", piece.type, piece.score }, piece, piece, piece
        };
        struct blob blob = { 0 };
        struct fault why = { "" };
        put_vocabulary(&blob, rows[i].kind, pieces, rows[i].tokens, rows[i].scores,
                       rows[i].types, rows[i].eos);
        struct gguf *small = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
        assert_non_null(small);
        struct tokenizer *made = tokenizer_create(small, &why);
        if (rows[i].words) {
            assert_null(made);
            if (!strstr(why.text, rows[i].words) || !strstr(why.text, "some.gguf: "))
                fail_msg("expected '%s', got: %s", rows[i].words, why.text);
        } else {
            struct tokens tokens;
            assert_non_null(made);
            assert_true(tokenizer_encode(made, "a piecepiece", 12, &tokens, &why));
            free(tokens.ids);
        }
        tokenizer_destroy(made);
        gguf_close(small);
        free(blob.bytes);
    }
}

/* A key that is not there is reported as that. */
static void test_missing_kind(void **state)
{
    (void)state;
    struct blob blob = { 0 };
    struct fault why = { "" };
    struct shape shape;
    put_header(&blob, 0, 0);
    struct gguf *empty = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
    assert_non_null(empty);
    assert_null(tokenizer_create(empty, &why));
    assert_non_null(strstr(why.text, "some.gguf: key 'tokenizer.ggml.model' is missing; "));
    assert_false(shape_read(empty, &shape, &why));
    assert_non_null(strstr(why.text, "some.gguf: key 'general.architecture' is missing; "));
    gguf_close(empty);
    free(blob.bytes);
}

/* User-defined pieces are matched whole, the longest first. */
static void test_taken_whole(void **state)
{
    (void)state;
    static const struct entry pieces[] = {
        { "<unk>", 2, 0 }, { "<s>", 3, 0 },    { "</s>", 3, 0 },
        { "a", 1, -1 },    { "b", 1, -2 },     { "ab", 1, 5 },
        { "<|x|>", 4, 0 }, { "<|x|>b", 4, 0 }, { "\xe2\x96\x81", 1, -3 },
    };
    static const int32_t wanted[] = { 1, 8, 5, 6, 5, 7, 3 };
    struct blob blob = { 0 };
    struct fault why = { "" };
    put_vocabulary(&blob, "llama", pieces, 9, 9, 9, 2);
    struct gguf *small = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
    assert_non_null(small);
    struct tokenizer *made = tokenizer_create(small, &why);
    struct tokens tokens;
    assert_non_null(made);
    assert_true(tokenizer_encode(made, "ab<|x|>ab<|x|>ba", 16, &tokens, &why));
    assert_int_equal(tokens.count, sizeof wanted / sizeof *wanted);
    assert_memory_equal(tokens.ids, wanted, sizeof wanted);
    free(tokens.ids);
    tokenizer_destroy(made);
    gguf_close(small);
    free(blob.bytes);
}

/* Files have user-defined pieces with spaces or, from older converters, with U+2581. Both are
 * matched on the text as it is, which the space added in front is not a part of. */
static void test_spaces_in_whole(void **state)
{
    (void)state;
    static const struct entry pieces[] = {
        { "<unk>", 2, 0 },
        { "<s>", 3, 0 },
        { "</s>", 3, 0 },
        { "a", 1, -1 },
        { "b", 1, -2 },
        { "\xe2\x96\x81", 1, -3 },
        { "  ", 4, 0 },
        { "a b", 4, 0 },
        { "\xe2\x96\x81\xe2\x96\x81\xe2\x96\x81\xe2\x96\x81", 4, 0 },
        { "<role> ", 4, 0 },
    };
    static const struct {
        const char *text;
        int32_t ids[8]; /* without BOS */
        size_t count;
    } rows[] = {
        { "ab  b", { 5, 3, 4, 6, 4 }, 5 },
        { "ba ba", { 5, 4, 7, 3 }, 4 },
        { "a    b", { 5, 3, 8, 4 }, 4 },
        { "a   b", { 5, 3, 6, 5, 4 }, 5 },
        { " b", { 5, 5, 4 }, 3 },
        { "  b", { 5, 6, 4 }, 3 },
        { "b<role> a", { 5, 4, 9, 3 }, 4 },
        { "    ", { 5, 8 }, 2 },
        { "a\xe2\x96\x81"
          "b",
          { 5, 7 },
          2 },
    };
    struct blob blob = { 0 };
    struct fault why = { "" };
    put_vocabulary(&blob, "llama", pieces, 10, 10, 10, 2);
    struct gguf *small = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
    assert_non_null(small);
    struct tokenizer *made = tokenizer_create(small, &why);
    assert_non_null(made);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tokens tokens;
        struct decoder decoder = { 0 };
        struct text text = { 0 };
        assert_true(
            tokenizer_encode(made, rows[i].text, strlen(rows[i].text), &tokens, &why));
        if (tokens.count != 1 + rows[i].count ||
            memcmp(tokens.ids + 1, rows[i].ids, rows[i].count * sizeof *tokens.ids) != 0)
            fail_msg("the tokens of '%s' differ", rows[i].text);
        for (size_t k = 0; k < tokens.count; k++)
            assert_true(tokenizer_decode(made, &decoder, tokens.ids[k], &text));
        assert_string_equal(text.bytes, i == 8 ? "a b" : rows[i].text);
        free(tokens.ids);
        free(text.bytes);
    }
    /* A text may begin with such a piece, and loses no space then. */
    struct decoder decoder = { 0 };
    struct text text = { 0 };
    assert_true(tokenizer_decode(made, &decoder, 6, &text));
    assert_string_equal(text.bytes, "  ");
    free(text.bytes);
    tokenizer_destroy(made);
    gguf_close(small);
    free(blob.bytes);
}

/* The format allows files without scores and types, and some have bytes as normal tokens. */
static void test_few_facts(void **state)
{
    (void)state;
    static const struct entry pieces[] = {
        { "</s>", 1, 0 }, { "<0x61>", 1, 0 }, { "<0xfF>", 1, 0 },
        { "b", 1, 0 },    { "bb", 1, 0 },     { "\xe2\x96\x81", 1, 0 },
    };
    static const int32_t wanted[] = { 5, 4, 3, 1, 2 };
    static const struct {
        uint64_t scores, types;
    } rows[] = { { 6, 6 }, { ABSENT, 6 }, { 6, ABSENT }, { ABSENT, ABSENT } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct blob blob = { 0 };
        struct fault why = { "" };
        struct tokens tokens;
        struct text text = { 0 };
        struct decoder decoder = { .started = true };
        put_vocabulary(&blob, "llama", pieces, 6, rows[i].scores, rows[i].types, 0);
        count_pairs(&blob, 2);
        put_key(&blob, "tokenizer.ggml.bos_token_id", GGUF_U32);
        put_u32(&blob, UINT32_MAX); /* none */
        put_key(&blob, "tokenizer.ggml.unknown_token_id", GGUF_U32);
        put_u32(&blob, UINT32_MAX);
        struct gguf *small = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
        assert_non_null(small);
        struct tokenizer *made = tokenizer_create(small, &why);
        if (!made)
            fail_msg("%s", why.text);
        assert_int_equal(tokenizer_bos(made), -1);
        assert_true(tokenizer_encode(made, "bbba\xff", 5, &tokens, &why));
        assert_int_equal(tokens.count, 5);
        assert_memory_equal(tokens.ids, wanted, sizeof wanted);
        free(tokens.ids);
        assert_false(tokenizer_encode(made, "bc", 2, &tokens, &why));
        assert_non_null(strstr(why.text, "the text has byte 0x63, for which"));
        assert_true(tokenizer_decode(made, &decoder, 1, &text));
        assert_true(tokenizer_decode(made, &decoder, 0, &text));
        assert_string_equal(text.bytes, rows[i].types == ABSENT ? "a" : "a</s>");
        free(text.bytes);
        tokenizer_destroy(made);
        gguf_close(small);
        free(blob.bytes);
    }
}

/* ---- Settings ------------------------------------------------------------------------ */

static void test_settings(void **state)
{
    (void)state;
    static const struct entry pieces[] = {
        { "<unk>", 2, 0 }, { "<s>", 3, 0 }, { "</s>", 3, 0 }, { "<e>", 3, 0 }, { "a", 1, 0 }
    };
    static const struct {
        const char *key;
        uint32_t kind, value; /* an array of as many bytes */
        const char *words;    /* NULL: accepted */
    } rows[] = {
        { "eom_token_id", GGUF_U32, 3, NULL },
        { "eom_token_id", GGUF_U32, 5, "'tokenizer.ggml.eom_token_id' is 5 but" },
        { "remove_extra_whitespaces", GGUF_BOOL, 0, NULL },
        { "remove_extra_whitespaces", GGUF_BOOL, 1, "is not supported, and changes the" },
        { "add_sep_token", GGUF_BOOL, 1, "key 'tokenizer.ggml.add_sep_token' is not" },
        { "precompiled_charsmap", GGUF_ARRAY, 0, NULL },
        { "precompiled_charsmap", GGUF_ARRAY, 3, "precompiled_charsmap' is not supported" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct blob blob = { 0 };
        struct fault why = { "" };
        char key[64];
        put_vocabulary(&blob, "llama", pieces, 5, 5, 5, 2);
        count_pairs(&blob, 1);
        snprintf(key, sizeof key, "tokenizer.ggml.%s", rows[i].key);
        put_key(&blob, key, rows[i].kind);
        if (rows[i].kind == GGUF_U32)
            put_u32(&blob, rows[i].value);
        else if (rows[i].kind == GGUF_BOOL)
            put_u8(&blob, (uint8_t)rows[i].value);
        else {
            put_u32(&blob, GGUF_U8);
            put_u64(&blob, rows[i].value);
            put(&blob, "abc", rows[i].value);
        }
        struct gguf *small = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
        assert_non_null(small);
        struct tokenizer *made = tokenizer_create(small, &why);
        if (!made != !!rows[i].words || (rows[i].words && !strstr(why.text, rows[i].words)))
            fail_msg("row %zu: expected '%s', got: %s", i, rows[i].words, why.text);
        if (i == 0)
            assert_true(tokenizer_is_end(made, 3) && !tokenizer_is_end(made, 4));
        tokenizer_destroy(made);
        gguf_close(small);
        free(blob.bytes);
    }
}

/* ---- Pieces that are matched whole, against the definition --------------------------- */

static int32_t slow_whole(const struct vocabulary *v, const char *text, size_t left)
{
    int32_t best = -1;
    for (int32_t id = 0; id < v->count; id++) {
        const struct piece *piece = &v->pieces[id];
        const size_t length = piece->text.length;
        if (piece->type == USER_DEFINED && length > 0 && length <= left &&
            memcmp(piece->text.bytes, text, length) == 0 &&
            (best < 0 || length > v->pieces[best].text.length))
            best = id;
    }
    return best;
}

/* Few letters, so that pieces are equal or begin others, and one byte that fgets() would not
 * read. */
static void fill(char *text, size_t length, uint32_t *random)
{
    for (size_t i = 0; i < length; i++)
        text[i] = "ab\xff\0"[dice(random, 4)];
}

static void test_whole_definition(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 300; round++) {
        char texts[40][8], text[24];
        struct piece pieces[40];
        struct vocabulary v = { .pieces = pieces, .count = (int32_t)dice(&random, 41) };
        for (int32_t id = 0; id < v.count; id++) {
            const size_t length = dice(&random, 7);
            fill(texts[id], length, &random);
            pieces[id] = (struct piece){ .text = { texts[id], length }, .type = NORMAL };
            if (dice(&random, 4) > 0)
                pieces[id].type = USER_DEFINED;
        }
        assert_true(vocabulary_index(&v, "some.gguf", NULL));
        fill(text, sizeof text, &random);
        int32_t ids[sizeof text];
        memset(ids, 0xff, sizeof ids);
        if (v.whole)
            matcher_find(v.whole, text, sizeof text, ids);
        for (size_t at = 0; at < sizeof text; at++)
            assert_int_equal(ids[at], slow_whole(&v, text + at, sizeof text - at));
        v.pieces = NULL; /* not allocated */
        vocabulary_free(&v);
    }
}

/* Many pieces that begin with one letter, in a text of that letter. Looking at each of them
 * at each byte would take too long. */
static void test_many_whole(void **state)
{
    (void)state;
    enum { PIECES = 1 << 18, LENGTH = 8 };
    static char texts[PIECES][LENGTH + 1];
    struct vocabulary v = { .count = PIECES };
    v.pieces = calloc(PIECES, sizeof *v.pieces);
    char *text = malloc(PIECES);
    assert_true(v.pieces && text);
    memset(text, 'a', PIECES);
    for (int i = 0; i < PIECES; i++) {
        snprintf(texts[i], sizeof texts[i], "a%07d", i);
        v.pieces[i] = (struct piece){ .text = { texts[i], LENGTH }, .type = USER_DEFINED };
    }
    int32_t *ids = malloc(PIECES * sizeof *ids);
    assert_non_null(ids);
    memcpy(text + 5000, "a0123456", LENGTH);
    assert_true(vocabulary_index(&v, "some.gguf", NULL));
    matcher_find(v.whole, text, PIECES, ids);
    for (size_t at = 0; at < PIECES; at++)
        assert_int_equal(ids[at], at == 5000 ? 123456 : -1);
    vocabulary_free(&v);
    free(ids);
    free(text);
}

/* A long piece of one letter, and one that begins or ends otherwise, in a long text of that letter.
 * Comparing them at each byte would take hours. */
static void test_long_whole(void **state)
{
    (void)state;
    enum { LONG = 1 << 20, TEXT = LONG + LONG / 2 };
    static const int ends[] = { -1, 0, LONG - 1 }; /* where the piece has another letter */
    char *piece = malloc(LONG), *text = malloc(TEXT);
    int32_t *ids = malloc(TEXT * sizeof *ids);
    assert_true(piece && text && ids);
    memset(text, 'z', TEXT);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct vocabulary v = { .count = 2 };
        v.pieces = calloc(2, sizeof *v.pieces);
        assert_non_null(v.pieces);
        memset(piece, 'z', LONG);
        if (ends[i] >= 0)
            piece[ends[i]] = 'y';
        v.pieces[0] = (struct piece){ .text = { piece, LONG }, .type = USER_DEFINED };
        v.pieces[1] = (struct piece){ .text = { "zz", 2 }, .type = USER_DEFINED };
        assert_true(vocabulary_index(&v, "some.gguf", NULL));
        matcher_find(v.whole, text, TEXT, ids);
        for (int at = 0; at < TEXT; at++)
            assert_int_equal(ids[at], at == TEXT - 1                     ? -1
                                      : ends[i] < 0 && at <= TEXT - LONG ? 0
                                                                         : 1);
        vocabulary_free(&v);
    }
    free(ids);
    free(text);
    free(piece);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.gguf GOLDEN.json\n", argv[0]);
        return 2;
    }
    model_path = argv[1];
    golden_path = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),       cmocka_unit_test(test_definition),
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_invalid_utf8),
        cmocka_unit_test(test_stream),       cmocka_unit_test(test_edges),
        cmocka_unit_test(test_taken_whole),  cmocka_unit_test(test_bad_vocabularies),
        cmocka_unit_test(test_missing_kind), cmocka_unit_test(test_whole_definition),
        cmocka_unit_test(test_many_whole),   cmocka_unit_test(test_spaces_in_whole),
        cmocka_unit_test(test_settings),     cmocka_unit_test(test_long_whole),
        cmocka_unit_test(test_few_facts),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, open_model, close_model);
}
