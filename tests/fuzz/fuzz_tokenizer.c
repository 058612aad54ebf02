/* SPDX-License-Identifier: MIT */
/* fuzz_tokenizer.c - arbitrary vocabularies and texts: ids are tokens, and what they decode
 * to is UTF-8 at every step.
 *
 * The input is lines: the kind of tokenizer, the pre-tokenizer, then one line for each token
 * (its type, a digit, and its text) and for each merge ('m' and its text). The text to
 * encode follows an empty line. */
#include "../model/blob.h"
#include "model/tokenizer/tokenizer.h"
#include "util/utf8.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct input {
    const char *bytes;
    size_t size, at;
};

/* The next line, without its end. */
static struct gguf_string next_line(struct input *input)
{
    const char *begin = input->bytes + input->at;
    const size_t left = input->size - input->at;
    const char *end = left ? memchr(begin, '\n', left) : NULL;
    const size_t length = end ? (size_t)(end - begin) : left;
    input->at += length + (end != NULL);
    return (struct gguf_string){ begin, length };
}

static void put_line(struct blob *blob, const char *key, struct gguf_string line)
{
    put_key(blob, key, GGUF_STRING);
    put_u64(blob, line.length);
    put(blob, line.bytes, line.length);
}

static void put_array(struct blob *blob, const char *key, uint32_t kind, uint64_t count,
                      struct blob *elements)
{
    put_key(blob, key, GGUF_ARRAY);
    put_u32(blob, kind);
    put_u64(blob, count);
    put(blob, elements->bytes, elements->size);
    free(elements->bytes);
}

/* A file with the vocabulary that the lines describe. */
static struct blob read_vocabulary(struct input *input)
{
    struct blob file = { 0 }, tokens = { 0 }, types = { 0 }, scores = { 0 }, merges = { 0 };
    uint64_t token_count = 0, merge_count = 0;
    put_header(&file, 0, 6);
    put_line(&file, "tokenizer.ggml.model", next_line(input));
    put_line(&file, "tokenizer.ggml.pre", next_line(input));
    for (struct gguf_string line; (line = next_line(input)).length > 0;) {
        const bool merge = line.bytes[0] == 'm';
        put_u64(merge ? &merges : &tokens, line.length - 1);
        put(merge ? &merges : &tokens, line.bytes + 1, line.length - 1);
        merge_count += merge;
        token_count += !merge;
        if (merge)
            continue;
        put_u32(&types, (uint32_t)(line.bytes[0] - '0'));
        put_f32(&scores, (float)(line.length % 7));
    }
    put_array(&file, "tokenizer.ggml.tokens", GGUF_STRING, token_count, &tokens);
    put_array(&file, "tokenizer.ggml.token_type", GGUF_I32, token_count, &types);
    put_array(&file, "tokenizer.ggml.scores", GGUF_F32, token_count, &scores);
    put_array(&file, "tokenizer.ggml.merges", GGUF_STRING, merge_count, &merges);
    return file;
}

static void check_utf8(const struct text *text)
{
    for (size_t at = 0, length; at < text->length; at += length) {
        length = utf8_at(text->bytes + at, text->length - at);
        if (length == 0)
            abort();
    }
}

static void decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t count)
{
    struct text text = { 0 };
    struct decoder decoder = { 0 };
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || ids[i] >= tokenizer_size(tokenizer) ||
            !tokenizer_decode(tokenizer, &decoder, ids[i], &text))
            abort();
        if (i < 64)
            check_utf8(&text);
    }
    if (!tokenizer_decode_end(&decoder, &text))
        abort();
    check_utf8(&text);
    free(text.bytes);
}

static void use(const struct tokenizer *tokenizer, const char *bytes, size_t size)
{
    struct fault why = { "" };
    struct tokens tokens;
    if (tokenizer_encode(tokenizer, bytes, size, &tokens, &why) != (why.text[0] == '\0') ||
        (why.text[0] && tokens.ids))
        abort();
    decode(tokenizer, tokens.ids, tokens.count);
    free(tokens.ids);
    for (int32_t id = 0; id < tokenizer_size(tokenizer); id++)
        decode(tokenizer, &id, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fault why = { "" };
    struct input input = { .bytes = (const char *)bytes, .size = size };
    struct blob blob = read_vocabulary(&input);
    struct gguf *file = gguf_parse(blob.bytes, blob.size, "fuzz", &why);
    if (!file)
        abort();
    struct tokenizer *tokenizer = tokenizer_create(file, &why);
    if (!tokenizer != (why.text[0] != '\0')) /* refused with words, or taken without */
        abort();
    if (tokenizer)
        use(tokenizer, input.bytes + input.at, size - input.at);
    tokenizer_destroy(tokenizer);
    gguf_close(file);
    free(blob.bytes);
    return 0;
}
