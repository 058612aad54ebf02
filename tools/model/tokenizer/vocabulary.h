/* SPDX-License-Identifier: MIT */
/* vocabulary.h - the pieces, the texts of tokens: `tokenizer.ggml.tokens`, `scores` and
 * `token_type` of a file. */
#ifndef HW_MODEL_VOCABULARY_H
#define HW_MODEL_VOCABULARY_H

#include "matcher.h"
#include "model/gguf/gguf.h"
#include "table.h"

/* The token types of the format. */
enum piece_type { UNDEFINED, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE, TYPES };

struct piece {
    struct gguf_string text;
    float score;
    int type;
    bool whole_only; /* text becomes it only where it is matched as a whole */
};

struct vocabulary {
    struct piece *pieces; /* by id */
    int32_t count;
    struct table words;    /* ids of the pieces that text can become, by text */
    size_t longest;        /* bytes of the longest of them */
    struct matcher *whole; /* finds the user-defined pieces; NULL: there are none */
};

/* Reads the pieces. A kind of tokenizer without scores does not read them. A file may have no
 * scores, which are then equal, and no types: then all pieces are normal but those that have a key,
 * such as BOS. The texts are those of the file until vocabulary_index(); a caller may replace them
 * before, and types, too. */
bool vocabulary_read(struct vocabulary *vocabulary, const struct gguf *file,
                     bool needs_scores, struct fault *why);

/* Builds the tables for look-ups. Among pieces with the same text, the first counts. */
bool vocabulary_index(struct vocabulary *vocabulary, const char *path, struct fault *why);
void vocabulary_free(struct vocabulary *vocabulary);

/* The piece with this text, or -1. Text never becomes a control token. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *bytes,
                        size_t length);

/* The value of a piece spelled <0xNN>, with letters of either case, or -1. */
int vocabulary_byte(struct gguf_string text);

#endif
