/* SPDX-License-Identifier: MIT */
/* tokenizer.c - the parts common to all kinds of tokenizers: settings, pieces that are matched
 * as a whole, tokens at the ends of a text, and decoding. */
#include "tokenizer_kind.h"
#include "util/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A space in the vocabulary, of one kind and of the other. */
static const char space_mark[] = "\xe2\x96\x81"; /* U+2581 */
static const char space[] = " ";
static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
enum { MARK_BYTES = SPACE_MARK_BYTES };

/* ---- Loading ------------------------------------------------------------------------- */

static const struct kind *const kinds[] = {
    &tokenizer_spm,
#ifdef HW_HAS_PCRE2
    &tokenizer_bpe,
#endif
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *find_kind(const struct gguf *file, struct fault *why)
{
    struct gguf_string model;
    char list[64];
    size_t at = 0;
    if (!gguf_need_string(file, "tokenizer.ggml.model", &model, why))
        return NULL;
    for (size_t i = 0; i < KINDS; i++) {
        if (gguf_string_is(model, kinds[i]->name))
            return kinds[i];
        at += (size_t)snprintf(list + at, sizeof list - at, "%s'%s'", i ? ", " : "",
                               kinds[i]->name);
    }
    fault_say(why,
              "%s: key 'tokenizer.ggml.model' is '%s', supported are %s%s; use a model "
              "with one of these tokenizers",
              file->path, gguf_quote(model).text, list,
              KINDS > 1 ? "" : " (this build has no PCRE2, which 'gpt2' needs)");
    return NULL;
}

/* Reads an id from `tokenizer.ggml.*`; if absent, `fallback`, or none if the vocabulary is
 * smaller. Some converters write -1, as a u32, for none. */
static bool read_id(const struct tokenizer *t, const struct gguf *file, const char *key,
                    int32_t fallback, int32_t *id, struct fault *why)
{
    uint64_t number = (uint64_t)fallback;
    const bool given = gguf_find(file, key) != NULL;
    *id = -1;
    if (!gguf_get_count(file, key, &number, why))
        return false;
    if (given && number == UINT32_MAX)
        return true;
    if (number < (uint64_t)t->vocabulary.count && (given || fallback >= 0))
        *id = (int32_t)number;
    return *id >= 0 || !given ||
           fault(why,
                 "%s: key '%s' is %" PRIu64 " but the vocabulary has %" PRId32
                 " tokens; convert the model again",
                 file->path, key, number, t->vocabulary.count);
}

static bool read_settings(struct tokenizer *t, const struct gguf *file, struct fault *why)
{
    const struct kind *kind = t->kind;
    if (!read_id(t, file, "tokenizer.ggml.unknown_token_id", kind->unknown, &t->unknown,
                 why) ||
        !read_id(t, file, "tokenizer.ggml.bos_token_id", kind->bos, &t->bos, why) ||
        !read_id(t, file, "tokenizer.ggml.eos_token_id", kind->eos, &t->eos, why) ||
        !read_id(t, file, "tokenizer.ggml.eot_token_id", -1, &t->eot, why) ||
        !read_id(t, file, "tokenizer.ggml.eom_token_id", -1, &t->eom, why) ||
        !gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos, why) ||
        !gguf_get_bool(file, "tokenizer.ggml.add_eos_token", &t->add_eos, why) ||
        !gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space, why))
        return false;
    t->add_bos = t->add_bos && t->bos >= 0;
    t->add_eos = t->add_eos && t->eos >= 0;
    return true;
}

/* Whether an array has elements. */
static bool has_elements(const struct gguf *file, const char *key)
{
    const struct gguf_pair *pair = gguf_find(file, key);
    uint64_t count = 0;
    if (pair && pair->kind == GGUF_ARRAY)
        memcpy(&count, pair->value + sizeof(uint32_t), sizeof count);
    return count > 0;
}

/* Settings of other kinds of tokenizers, which would give other tokens. */
static bool check_settings(const struct gguf *file, struct fault *why)
{
    static const char *const keys[] = { "tokenizer.ggml.remove_extra_whitespaces",
                                        "tokenizer.ggml.add_sep_token",
                                        "tokenizer.ggml.precompiled_charsmap" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool set = has_elements(file, keys[i]);
        if (!set && i < 2 && !gguf_get_bool(file, keys[i], &set, why))
            return false;
        if (set)
            return fault(why,
                         "%s: key '%s' is not supported, and changes the tokens of a text; "
                         "use a model without it",
                         file->path, keys[i]);
    }
    return true;
}

struct tokenizer *tokenizer_create(const struct gguf *file, struct fault *why)
{
    const struct kind *kind = find_kind(file, why);
    if (!kind)
        return NULL;
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        fault_say(why, "%s: out of memory", file->path);
        return NULL;
    }
    t->kind = kind;
    if (kind->load(t, file, why) && read_settings(t, file, why) &&
        check_settings(file, why))
        return t;
    tokenizer_destroy(t);
    return NULL;
}

void tokenizer_destroy(struct tokenizer *t)
{
    if (!t)
        return;
    t->kind->unload(t);
    vocabulary_free(&t->vocabulary);
    free(t->texts);
    free(t);
}

int32_t tokenizer_size(const struct tokenizer *t)
{
    return t->vocabulary.count;
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

bool tokenizer_is_end(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (id == t->eos || id == t->eot || id == t->eom);
}

/* ---- Encoding ------------------------------------------------------------------------ */

bool encoder_add(struct encoder *e, int32_t id)
{
    struct tokens *tokens = e->tokens;
    if (tokens->count == e->room) {
        const size_t room = e->room ? 2 * e->room : 64;
        int32_t *bigger = room > SIZE_MAX / sizeof *bigger
                              ? NULL
                              : realloc(tokens->ids, room * sizeof *bigger);
        if (!bigger)
            return fault(e->why, "out of memory for %zu tokens", room);
        tokens->ids = bigger;
        e->room = room;
    }
    tokens->ids[tokens->count++] = id;
    return true;
}

bool encoder_lacks(struct encoder *e, unsigned char byte)
{
    return fault(e->why,
                 "the text has byte 0x%02x, for which the vocabulary of the model has no "
                 "token; give another text",
                 byte);
}

char *mark_spaces(char *to, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == ' ') {
            memcpy(to, space_mark, MARK_BYTES);
            to += MARK_BYTES;
        } else
            *to++ = text[i];
    return to;
}

/* The space that goes in front of a text: a byte-level vocabulary has one only if the text does not
 * begin with it. */
static const char *space_before(const struct tokenizer *t, const char *text, size_t length)
{
    if (!t->add_space || length == 0)
        return "";
    return t->kind->marks ? space_mark : *text == ' ' ? "" : space;
}

/* A copy of a text with a space in front, of `*before` bytes, and as the vocabulary spells it.
 * NULL if out of memory. */
static char *spell(const struct tokenizer *t, const char *text, size_t *length,
                   size_t *before)
{
    const char *first = space_before(t, text, *length);
    char *copy = malloc(MARK_BYTES * (*length + 1)), *end;
    *before = strlen(first);
    if (!copy)
        return NULL;
    memcpy(copy, first, *before);
    if (t->kind->marks)
        end = mark_spaces(copy + *before, text, *length);
    else {
        memcpy(copy + *before, text, *length);
        end = copy + *before + *length;
    }
    *length = (size_t)(end - copy);
    return copy;
}

/* Encodes the text between the pieces that are matched whole. These are not matched with the added
 * space, the first `before` bytes, because that is not in the text. */
static bool encode_parts(struct encoder *e, const char *text, size_t length, size_t before)
{
    const struct tokenizer *t = e->tokenizer;
    const struct vocabulary *v = &t->vocabulary;
    size_t begin = 0;
    int32_t *whole = NULL; /* by byte */
    if (v->whole && !(whole = malloc((length + 1) * sizeof *whole)))
        return fault(e->why, "out of memory to encode %zu bytes of text", length);
    if (whole)
        matcher_find(v->whole, text + before, length - before, whole + before);
    bool good = true;
    for (size_t at = before; good && whole && at < length;) {
        const int32_t id = whole[at];
        if (id < 0) {
            at++;
            continue;
        }
        good = (at == begin || t->kind->encode(e, text + begin, at - begin)) &&
               encoder_add(e, id);
        begin = at += v->pieces[id].text.length;
    }
    free(whole);
    return good && (begin == length || t->kind->encode(e, text + begin, length - begin));
}

static bool encode_all(struct encoder *e, const char *text, size_t length)
{
    const struct tokenizer *t = e->tokenizer;
    size_t before = 0;
    char *copy = NULL;
    if ((t->kind->marks || t->add_space) && !(copy = spell(t, text, &length, &before)))
        return fault(e->why, "out of memory to encode %zu bytes of text", length);
    const bool good = (!t->add_bos || encoder_add(e, t->bos)) &&
                      encode_parts(e, copy ? copy : text, length, before) &&
                      (!t->add_eos || encoder_add(e, t->eos));
    free(copy);
    return good;
}

bool tokenizer_encode(const struct tokenizer *t, const char *text, size_t length,
                      struct tokens *tokens, struct fault *why)
{
    struct encoder e = { .tokenizer = t, .tokens = tokens, .why = why };
    *tokens = (struct tokens){ 0 };
    if (length > TOKENIZER_TEXT)
        return fault(why,
                     "the text has %zu bytes, at most %d can be encoded at once; split it",
                     length, TOKENIZER_TEXT);
    const bool good = encode_all(&e, text, length);
    merger_free(&e.merger);
    if (!good) {
        free(tokens->ids);
        *tokens = (struct tokens){ 0 };
    }
    return good;
}

/* ---- Decoding ------------------------------------------------------------------------ */

bool tokenizer_decode_end(struct decoder *decoder, struct text *out)
{
    const bool incomplete = decoder->count > 0;
    decoder->count = 0;
    return !incomplete || text_append(out, replacement, sizeof replacement - 1);
}

static bool decode_byte(struct decoder *decoder, unsigned char byte, struct text *out)
{
    if (decoder->count > 0 && !utf8_continues(decoder->held[0], decoder->count, byte) &&
        !tokenizer_decode_end(decoder, out))
        return false;
    decoder->held[decoder->count++] = byte;
    const int length = utf8_length(decoder->held[0]);
    if (length == 0)
        return tokenizer_decode_end(decoder, out);
    if (decoder->count < length)
        return true;
    decoder->count = 0;
    return text_append(out, (const char *)decoder->held, (size_t)length);
}

static bool decode_text(struct decoder *decoder, struct gguf_string text, bool marks,
                        bool drop_space, struct text *out)
{
    for (size_t i = 0; i < text.length;) {
        const bool mark = marks && text.length - i >= MARK_BYTES &&
                          memcmp(text.bytes + i, space_mark, MARK_BYTES) == 0;
        const char byte = mark ? ' ' : text.bytes[i];
        if (!(i == 0 && mark && drop_space) &&
            !decode_byte(decoder, (unsigned char)byte, out))
            return false;
        i += mark ? MARK_BYTES : 1;
    }
    return true;
}

bool tokenizer_decode(const struct tokenizer *t, struct decoder *decoder, int32_t id,
                      struct text *out)
{
    const bool drop_space = t->add_space && !decoder->started;
    if (id < 0 || id >= t->vocabulary.count)
        return tokenizer_decode_end(decoder, out) &&
               text_append(out, replacement, sizeof replacement - 1);
    const struct piece *piece = &t->vocabulary.pieces[id];
    switch (piece->type) {
    case CONTROL:
    case UNUSED:
        return true;
    case BYTE:
        decoder->started = true;
        return decode_byte(decoder, (unsigned char)vocabulary_byte(piece->text), out);
    case UNKNOWN:
        decoder->started = true;
        return tokenizer_decode_end(decoder, out) &&
               text_append(out, replacement, sizeof replacement - 1);
    default:
        decoder->started = true;
        return decode_text(decoder, piece->text, t->kind->marks,
                           drop_space && piece->type != USER_DEFINED, out);
    }
}
