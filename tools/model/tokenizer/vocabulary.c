/* SPDX-License-Identifier: MIT */
/* vocabulary.c - see vocabulary.h. */
#include "vocabulary.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of the digit at a place in 0 to 9, A to F, a to f. */
static int hex_value(ptrdiff_t place)
{
    return (int)(place < 16 ? place : place - 6);
}

int vocabulary_byte(struct gguf_string text)
{
    static const char digits[] = "0123456789ABCDEFabcdef";
    if (text.length != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>')
        return -1;
    const char *high = memchr(digits, text.bytes[3], sizeof digits - 1),
               *low = memchr(digits, text.bytes[4], sizeof digits - 1);
    return high && low ? hex_value(high - digits) * 16 + hex_value(low - digits) : -1;
}

static bool read_pieces(struct vocabulary *v, const struct gguf_array *tokens,
                        const struct gguf_array *scores, const struct gguf_array *types,
                        const char *path, struct fault *why)
{
    const uint8_t *cursor = tokens->bytes;
    for (int32_t id = 0; id < v->count; id++) {
        struct piece *piece = &v->pieces[id];
        piece->text = gguf_next_string(&cursor);
        piece->score = scores->count ? gguf_f32_at(scores, (uint64_t)id) : 0;
        const int64_t type = types->bytes ? gguf_integer_at(types, (uint64_t)id) : NORMAL;
        piece->type = type < 0 || type >= TYPES ? TYPES : (int)type;
        if (isnan(piece->score) || piece->type == TYPES ||
            (piece->type == BYTE && vocabulary_byte(piece->text) < 0))
            return fault(why,
                         "%s: token %" PRId32 " has score %g, type %" PRId64
                         " and %zu bytes of text: "
                         "the vocabulary is damaged; convert the model again",
                         path, id, (double)piece->score, type, piece->text.length);
    }
    return true;
}

/* Without types, the tokens that the file names, or that SentencePiece has in any case, are known
 * to be no text. */
static bool find_control(struct vocabulary *v, const struct gguf *file, bool needs_scores,
                         struct fault *why)
{
    static const struct {
        const char *name;
        uint64_t usual; /* in SentencePiece */
    } rows[] = {
        { "unknown", 0 },      { "bos", 1 },          { "eos", 2 },
        { "eot", UINT64_MAX }, { "eom", UINT64_MAX }, { "padding", UINT64_MAX },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t id = needs_scores ? rows[i].usual : UINT64_MAX;
        char key[64];
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", rows[i].name);
        if (!gguf_get_count(file, key, &id, why))
            return false;
        if (id < (uint64_t)v->count)
            v->pieces[id].type = i ? CONTROL : UNKNOWN;
    }
    return true;
}

static bool check_counts(const char *path, uint64_t tokens, const uint64_t *scores,
                         uint64_t types, struct fault *why)
{
    if (tokens > 0 && tokens <= INT32_MAX && types == tokens &&
        (!scores || *scores == tokens))
        return true;
    if (!scores)
        return fault(why,
                     "%s: tokenizer.ggml.tokens and token_type have %" PRIu64
                     " and %" PRIu64 " elements, must have equally many, at least one; "
                     "convert the model again with its tokenizer",
                     path, tokens, types);
    return fault(why,
                 "%s: tokenizer.ggml.tokens, scores and token_type have %" PRIu64
                 ", %" PRIu64 " and %" PRIu64 " elements, must have equally many, at "
                 "least one; convert the model again with its tokenizer",
                 path, tokens, *scores, types);
}

bool vocabulary_read(struct vocabulary *v, const struct gguf *file, bool needs_scores,
                     struct fault *why)
{
    struct gguf_array tokens = { 0 }, scores = { 0 }, types = { 0 };
    const bool scored = needs_scores && gguf_find(file, "tokenizer.ggml.scores");
    const bool typed = gguf_find(file, "tokenizer.ggml.token_type");
    if (!gguf_get_array(file, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, why) ||
        (scored &&
         !gguf_get_array(file, "tokenizer.ggml.scores", GGUF_F32, &scores, why)) ||
        !gguf_get_integers(file, "tokenizer.ggml.token_type", &types, why) ||
        !check_counts(file->path, tokens.count, scored ? &scores.count : NULL,
                      typed ? types.count : tokens.count, why))
        return false;
    v->count = (int32_t)tokens.count;
    v->pieces = calloc((size_t)v->count, sizeof *v->pieces);
    if (!v->pieces)
        return fault(why, "%s: out of memory for %" PRId32 " tokens", file->path, v->count);
    return read_pieces(v, &tokens, &scores, &types, file->path, why) &&
           (typed || find_control(v, file, needs_scores, why));
}

void vocabulary_free(struct vocabulary *v)
{
    free(v->pieces);
    matcher_free(v->whole);
    table_free(&v->words);
    *v = (struct vocabulary){ 0 };
}

/* ---- Words --------------------------------------------------------------------------- */

struct wanted {
    const struct piece *pieces;
    struct gguf_string text;
};

static bool is_wanted(const void *user, uint32_t id)
{
    const struct wanted *wanted = user;
    const struct gguf_string text = wanted->pieces[id].text;
    return text.length == wanted->text.length &&
           memcmp(text.bytes, wanted->text.bytes, text.length) == 0;
}

int32_t vocabulary_find(const struct vocabulary *v, const char *bytes, size_t length)
{
    const struct wanted wanted = { v->pieces, { bytes, length } };
    if (length > v->longest)
        return -1;
    const uint32_t id = table_find(&v->words, table_hash(bytes, length), is_wanted,
                                   &wanted);
    return id == TABLE_NONE ? -1 : (int32_t)id;
}

static bool add_word(struct vocabulary *v, int32_t id)
{
    const struct gguf_string text = v->pieces[id].text;
    if (vocabulary_find(v, text.bytes, text.length) >= 0)
        return true;
    if (text.length > v->longest)
        v->longest = text.length;
    return table_add(&v->words, table_hash(text.bytes, text.length), (uint32_t)id);
}

static bool is_word(const struct piece *piece)
{
    return piece->text.length > 0 && !piece->whole_only &&
           (piece->type == NORMAL || piece->type == UNDEFINED ||
            piece->type == USER_DEFINED);
}

/* ---- Pieces that are matched as a whole ---------------------------------------------- */

static bool is_whole(const struct piece *piece)
{
    return piece->type == USER_DEFINED && piece->text.length > 0;
}

static bool index_whole(struct vocabulary *v)
{
    size_t count = 0, at = 0;
    for (int32_t id = 0; id < v->count; id++)
        count += is_whole(&v->pieces[id]);
    if (count == 0)
        return true;
    struct match_word *words = calloc(count, sizeof *words);
    for (int32_t id = 0; words && id < v->count; id++)
        if (is_whole(&v->pieces[id]))
            words[at++] = (struct match_word){ v->pieces[id].text, id };
    v->whole = words ? matcher_create(words, count) : NULL;
    free(words);
    return v->whole;
}

/* ---- Both ---------------------------------------------------------------------------- */

bool vocabulary_index(struct vocabulary *v, const char *path, struct fault *why)
{
    if (!table_create(&v->words, (size_t)v->count) || !index_whole(v))
        return fault(why, "%s: out of memory for %" PRId32 " tokens", path, v->count);
    for (int32_t id = 0; id < v->count; id++)
        if (is_word(&v->pieces[id]) && !add_word(v, id))
            return fault(why,
                         "%s: token %" PRId32 " collides with too many others in a hash "
                         "table: the vocabulary is made up; use another model",
                         path, id);
    return true;
}
