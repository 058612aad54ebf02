/* SPDX-License-Identifier: MIT */
/* tokenizer.h - converts text to token ids and back, with the vocabulary in a GGUF file. Two
 * kinds of byte-pair encoding: SentencePiece (`tokenizer.ggml.model = llama`) and the
 * byte-level one of GPT-2, Llama 3 and Qwen (`gpt2`).
 *
 * A text may have any bytes, invalid UTF-8 and zero bytes included. A tokenizer is immutable
 * and borrows the strings of its file. */
#ifndef HW_MODEL_TOKENIZER_H
#define HW_MODEL_TOKENIZER_H

#include "model/gguf/gguf.h"
#include "util/text.h"

struct tokenizer;

/* Reads `tokenizer.ggml.*`. Returns NULL with the reason in `why` if keys are missing,
 * contradict each other, or belong to another kind of tokenizer. `file` must outlive the
 * result. */
struct tokenizer *tokenizer_create(const struct gguf *file, struct fault *why);
void tokenizer_destroy(struct tokenizer *tokenizer);

int32_t tokenizer_size(const struct tokenizer *tokenizer);

/* Returns -1 if the vocabulary has none. */
int32_t tokenizer_bos(const struct tokenizer *tokenizer);

/* Whether the token ends a text: end of sequence, of turn, or of message. */
bool tokenizer_is_end(const struct tokenizer *tokenizer, int32_t id);

/* The longest text that can be encoded, in bytes. */
enum { TOKENIZER_TEXT = 1 << 28 };

struct tokens {
    int32_t *ids; /* from malloc: the caller frees it */
    size_t count;
};

/* Encodes `length` bytes of text, with BOS before and EOS after it as the file asks. Text
 * never becomes a control token: "<s>" is three letters. Returns false, with empty `tokens`,
 * if out of memory, if the text is longer than TOKENIZER_TEXT, or if it has a byte for which
 * the vocabulary has no token. Takes n log n time in the length of the text. */
bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length,
                      struct tokens *tokens, struct fault *why);

/* Turns a stream of ids into text that is valid UTF-8 at every step: an incomplete
 * character waits for its last byte, and an invalid one becomes U+FFFD. Initialise with
 * zeros. */
struct decoder {
    unsigned char held[4];
    int count;
    bool started; /* until then, the space that encoding adds in front is dropped */
};

/* Appends the text that `id` completes; control tokens have none. An id outside of the
 * vocabulary is an invalid character. Returns false if out of memory. */
bool tokenizer_decode(const struct tokenizer *tokenizer, struct decoder *decoder,
                      int32_t id, struct text *out);

/* Ends the stream: an incomplete character is invalid. */
bool tokenizer_decode_end(struct decoder *decoder, struct text *out);

#endif
