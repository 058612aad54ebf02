/* SPDX-License-Identifier: MIT */
/* tokenizer.h - text to token ids and back, with the vocabulary stored in a GGUF file: the
 * SentencePiece-style byte-pair encoding that files call `tokenizer.ggml.model = llama`.
 *
 * Text is any bytes. Spaces become U+2581; what the vocabulary has no piece for, invalid
 * UTF-8 and zero bytes included, is encoded byte by byte as <0xNN>. A tokenizer is
 * immutable and borrows the strings of the file it was made from. */
#ifndef HW_MODEL_TOKENIZER_H
#define HW_MODEL_TOKENIZER_H

#include "gguf.h"
#include "text.h"

struct tokenizer;

/* Reads `tokenizer.ggml.*`; NULL with the reason in `why` if they are missing, disagree, or
 * belong to another kind of tokenizer. `file` must outlive the result. */
struct tokenizer *tokenizer_create(const struct gguf *file, struct fault *why);
void tokenizer_destroy(struct tokenizer *tokenizer);

int32_t tokenizer_size(const struct tokenizer *tokenizer);

/* -1 if the vocabulary has none. */
int32_t tokenizer_bos(const struct tokenizer *tokenizer);

/* True for the tokens that end a text: end of sequence, and end of turn where there is one.
 */
bool tokenizer_is_end(const struct tokenizer *tokenizer, int32_t id);

/* The longest text that is encoded, in bytes. */
enum { TOKENIZER_TEXT = 1 << 28 };

struct tokens {
    int32_t *ids; /* from malloc: the caller frees it */
    size_t count;
};

/* Encodes `length` bytes of text, with BOS before and EOS behind as the file asks. Control
 * tokens are never made from text: "<s>" is three letters. False if memory runs out or the
 * text is longer than TOKENIZER_TEXT; then `tokens` is empty. n log n in the length of the text.
 */
bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length,
                      struct tokens *tokens, struct fault *why);

/* Turns a stream of ids into text that is valid UTF-8 at every step: an incomplete
 * character is held back until its last byte comes, an impossible one becomes U+FFFD. Start
 * from zero. */
struct decoder {
    unsigned char held[4];
    int count;
    bool started; /* until then, the space that encoding put in front is dropped */
};

/* Appends the text that `id` completes; control tokens have none. An id outside the
 * vocabulary is taken for an impossible character. False if memory runs out. */
bool tokenizer_decode(const struct tokenizer *tokenizer, struct decoder *decoder,
                      int32_t id, struct text *out);

/* Ends the stream: what is still held back is an impossible character. */
bool tokenizer_decode_end(struct decoder *decoder, struct text *out);

#endif
