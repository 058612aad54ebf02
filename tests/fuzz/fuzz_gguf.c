/* SPDX-License-Identifier: MIT */
/* fuzz_gguf.c - arbitrary bytes as a model file: the reader, the tokenizer, and text
 * encoded with it. */
#include "model/gguf/shape.h"
#include "model/tokenizer/tokenizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static volatile uint8_t sink;

/* An accepted file is readable from end to end. */
static void read_all(const struct gguf *file)
{
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct gguf_tensor *tensor = &file->tensors[i];
        const uint8_t *data = tensor->data;
        sink = tensor->bytes ? data[0] ^ data[tensor->bytes - 1] : 0;
        if (gguf_type_name(tensor->type)[0] == '?' || tensor->rank < 1)
            abort();
    }
    uint64_t count;
    double real;
    bool flag;
    for (size_t i = 0; i < file->pair_count; i++) {
        const struct gguf_string key = file->pairs[i].key;
        char name[64];
        if (key.length >= sizeof name)
            continue;
        for (size_t j = 0; j < key.length; j++)
            name[j] = key.bytes[j];
        name[key.length] = '\0';
        if (gguf_find(file, name) != &file->pairs[i])
            abort();
        gguf_get_count(file, name, &count, NULL);
        gguf_get_real(file, name, &real, NULL);
        gguf_get_bool(file, name, &flag, NULL);
    }
}

static void use(const struct tokenizer *tokenizer, const char *bytes, size_t size)
{
    struct tokens tokens;
    struct text text = { 0 };
    struct decoder decoder = { 0 };
    if (!tokenizer_encode(tokenizer, bytes, size < 4096 ? size : 4096, &tokens, NULL))
        return;
    for (size_t i = 0; i < tokens.count; i++)
        tokenizer_decode(tokenizer, &decoder, tokens.ids[i], &text);
    for (int32_t id = -1; id < tokenizer_size(tokenizer) && id < 100; id++)
        tokenizer_decode(tokenizer, &decoder, id, &text);
    tokenizer_decode_end(&decoder, &text);
    free(tokens.ids);
    free(text.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fault why = { "" };
    struct gguf *file = gguf_parse(bytes, size, "fuzz", &why);
    if (!file != (why.text[0] != '\0')) /* refused with words, or taken without */
        abort();
    if (!file)
        return 0;
    struct shape shape;
    read_all(file);
    if (shape_read(file, &shape, &why) != (why.text[0] == '\0'))
        abort();
    struct tokenizer *tokenizer = tokenizer_create(file, NULL);
    if (tokenizer)
        use(tokenizer, (const char *)bytes, size);
    tokenizer_destroy(tokenizer);
    gguf_close(file);
    return 0;
}
