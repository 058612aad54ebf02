/* SPDX-License-Identifier: MIT */
/* tokenizer_kind.h - the interface between tokenizer.c and the kinds of tokenizers. */
#ifndef HW_MODEL_TOKENIZER_KIND_H
#define HW_MODEL_TOKENIZER_KIND_H

#include "merge.h"
#include "tokenizer.h"
#include "vocabulary.h"

struct tokenizer {
    const struct kind *kind;
    struct vocabulary vocabulary;
    struct bpe *bpe;    /* of that kind only */
    char *texts;        /* of pieces that the file spells otherwise; NULL: none */
    int32_t bytes[256]; /* the token of each byte, for text without a piece of its own */
    int32_t bos, eos, eot, eom, unknown;
    bool add_bos, add_eos, add_space;
};

/* A text on the way to tokens. */
struct encoder {
    const struct tokenizer *tokenizer;
    struct merger merger;
    struct tokens *tokens;
    size_t room; /* for ids */
    struct fault *why;
};

enum { SPACE_MARK_BYTES = 3 };

/* Copies a text with U+2581 for every space, to at most SPACE_MARK_BYTES bytes for each. Returns
 * where the copy ends. */
char *mark_spaces(char *to, const char *text, size_t length);

/* Appends an id. Returns false if out of memory. */
bool encoder_add(struct encoder *encoder, int32_t id);

/* Says that the vocabulary has no token for this byte, and returns false. */
bool encoder_lacks(struct encoder *encoder, unsigned char byte);

struct kind {
    const char *name; /* tokenizer.ggml.model */
    bool marks;       /* the pieces have U+2581 for a space */
    /* the ids of these tokens where the file does not say; -1: none */
    int32_t unknown, bos, eos;
    /* Reads the vocabulary and what belongs to this kind alone. */
    bool (*load)(struct tokenizer *tokenizer, const struct gguf *file, struct fault *why);
    void (*unload)(struct tokenizer *tokenizer); /* also after load() has failed */
    /* Encodes a stretch of text, at least one byte, without pieces that are matched as a whole. */
    bool (*encode)(struct encoder *encoder, const char *text, size_t length);
};

extern const struct kind tokenizer_spm, tokenizer_bpe;

#endif
