/* SPDX-License-Identifier: MIT */
/* words.h - splits text into words by regular expressions; byte-pair encoding then joins
 * symbols inside each word. */
#ifndef HW_MODEL_WORDS_H
#define HW_MODEL_WORDS_H

#include "util/fault.h"

#include <stddef.h>

struct words;

/* Compiles `count` expressions, 1 to WORDS_MOST. Each splits the parts made by the previous one
 * into its matches and the text between them. NULL, with the reason in `why`, if one is not
 * valid. */
enum { WORDS_MOST = 2 };
struct words *words_create(const char *const *expressions, int count, struct fault *why);
void words_destroy(struct words *words);

/* Calls `word` with every word of the text, in order; together they are the text. Bytes
 * that are not UTF-8 form words of their own. Returns false if `word` does, or with the
 * reason in `why` if the text cannot be split. */
bool words_split(const struct words *words, const char *text, size_t length,
                 bool (*word)(void *user, const char *bytes, size_t length), void *user,
                 struct fault *why);

#endif
