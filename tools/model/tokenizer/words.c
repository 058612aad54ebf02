/* SPDX-License-Identifier: MIT */
/* words.c - the expressions run in PCRE2, in Unicode mode and compiled to machine code where
 * the system allows that. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "words.h"
#include "util/utf8.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>

struct words {
    int count;
    pcre2_code *codes[WORDS_MOST];
    pcre2_match_context *limits;
};

static bool refuse(const char *what, int error, struct fault *why)
{
    char text[256] = "unknown error";
    pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
    return fault(why, "%s: %s", what, text);
}

static bool compile(struct words *words, const char *expression, struct fault *why)
{
    int error;
    size_t where;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP, &error, &where, NULL);
    if (!code)
        return refuse("compile the expression of the pre-tokenizer", error, why);
    words->codes[words->count++] = code;
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* otherwise it is interpreted */
    return true;
}

struct words *words_create(const char *const *expressions, int count, struct fault *why)
{
    struct words *words = calloc(1, sizeof *words);
    bool good = words && (words->limits = pcre2_match_context_create(NULL));
    if (!good)
        fault_say(why, "out of memory");
    else /* the default is less than the steps that a long run of spaces needs */
        pcre2_set_match_limit(words->limits, UINT32_MAX);
    for (int i = 0; good && i < count; i++)
        good = compile(words, expressions[i], why);
    if (good)
        return words;
    words_destroy(words);
    return NULL;
}

void words_destroy(struct words *words)
{
    if (!words)
        return;
    for (int i = 0; i < words->count; i++)
        pcre2_code_free(words->codes[i]);
    pcre2_match_context_free(words->limits);
    free(words);
}

struct split {
    const struct words *words;
    pcre2_match_data *match;
    bool (*word)(void *user, const char *bytes, size_t length);
    void *user;
    struct fault *why;
};

/* Passes a part on: to the next expression, or out as a word. */
static bool pass(const struct split *s, int stage, const char *text, size_t length);

/* Splits a part, valid UTF-8, by expression `stage`. */
static bool split_part(const struct split *s, int stage, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        const int found = pcre2_match(s->words->codes[stage], (PCRE2_SPTR)text, length, at,
                                      PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, s->match,
                                      s->words->limits);
        if (found < 0 && found != PCRE2_ERROR_NOMATCH)
            return refuse("split the text into words", found, s->why);
        const size_t *ends = pcre2_get_ovector_pointer(s->match);
        const size_t begin = found < 0 ? length : ends[0];
        const size_t end = found < 0 ? length : ends[1];
        if (!pass(s, stage + 1, text + at, begin - at) ||
            !pass(s, stage + 1, text + begin, end - begin))
            return false;
        at = end;
    }
    return true;
}

static bool pass(const struct split *s, int stage, const char *text, size_t length)
{
    if (length == 0)
        return true;
    return stage < s->words->count ? split_part(s, stage, text, length)
                                   : s->word(s->user, text, length);
}

/* The length of the stretch at `text` that is valid UTF-8 throughout, or nowhere. */
static size_t stretch(const char *text, size_t left, bool valid)
{
    size_t at = 0;
    while (at < left) {
        const size_t length = utf8_at(text + at, left - at);
        if ((length > 0) != valid)
            break;
        at += valid ? length : 1;
    }
    return at;
}

bool words_split(const struct words *words, const char *text, size_t length,
                 bool (*word)(void *user, const char *bytes, size_t length), void *user,
                 struct fault *why)
{
    struct split split = { words, pcre2_match_data_create(1, NULL), word, user, why };
    bool good = split.match || fault(why, "out of memory");
    for (size_t at = 0; good && at < length;) {
        const size_t valid = stretch(text + at, length - at, true);
        good = pass(&split, 0, text + at, valid);
        at += valid;
        const size_t invalid = stretch(text + at, length - at, false);
        good = good && pass(&split, words->count, text + at, invalid);
        at += invalid;
    }
    pcre2_match_data_free(split.match);
    return good;
}
