/* SPDX-License-Identifier: MIT */
/* matcher.h - finds which of a set of texts begin at each byte of a text, in linear time, however
 * long they are and however much they have in common. */
#ifndef HW_MODEL_MATCHER_H
#define HW_MODEL_MATCHER_H

#include "model/gguf/gguf.h"

struct matcher;

struct match_word {
    struct gguf_string text; /* at least one byte */
    int32_t id;
};

/* Reorders `words`. NULL if out of memory. The texts are not needed afterwards. */
struct matcher *matcher_create(struct match_word *words, size_t count);
void matcher_free(struct matcher *matcher);

/* Writes for each byte of the text the id of the longest word that begins there, of equal words the
 * lowest; -1 if none does. */
void matcher_find(const struct matcher *matcher, const char *text, size_t length,
                  int32_t *ids);

#endif
