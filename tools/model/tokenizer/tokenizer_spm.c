/* SPDX-License-Identifier: MIT */
/* tokenizer_spm.c - byte-pair encoding as in SentencePiece. The text starts as one symbol
 * per character. The two neighbours whose joined piece has the best score merge, until no
 * two can. */
#include "tokenizer_kind.h"
#include "util/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_marked(const struct piece *piece)
{
    return piece->type == USER_DEFINED && piece->text.length > 0;
}

/* Converters write user-defined pieces with spaces, older ones with U+2581 for them. Both are
 * matched with a text whose spaces are marked. Only the latter are joined of symbols, too. */
static bool mark_pieces(struct tokenizer *t, const char *path, struct fault *why)
{
    struct vocabulary *v = &t->vocabulary;
    size_t room = 1;
    for (int32_t id = 0; id < v->count; id++)
        if (is_marked(&v->pieces[id]))
            room += SPACE_MARK_BYTES * v->pieces[id].text.length; /* of texts in memory */
    char *out = t->texts = malloc(room);
    if (!out)
        return fault(why, "%s: out of memory for %" PRId32 " tokens", path, v->count);
    for (int32_t id = 0; id < v->count; id++) {
        struct piece *piece = &v->pieces[id];
        if (!is_marked(piece))
            continue;
        char *end = mark_spaces(out, piece->text.bytes, piece->text.length);
        piece->whole_only = memchr(piece->text.bytes, ' ', piece->text.length);
        piece->text = (struct gguf_string){ out, (size_t)(end - out) };
        out = end;
    }
    return true;
}

/* Some files have the tokens of bytes as normal ones, known by their spelling. */
static void find_bytes(struct vocabulary *v)
{
    bool typed = false;
    for (int32_t id = 0; id < v->count; id++)
        typed |= v->pieces[id].type == BYTE;
    for (int32_t id = 0; id < v->count && !typed; id++)
        if (v->pieces[id].type == NORMAL && vocabulary_byte(v->pieces[id].text) >= 0)
            v->pieces[id].type = BYTE;
}

static bool load(struct tokenizer *t, const struct gguf *file, struct fault *why)
{
    struct vocabulary *v = &t->vocabulary;
    t->add_bos = t->add_space = true; /* the defaults of this kind */
    if (!vocabulary_read(v, file, true, why))
        return false;
    find_bytes(v);
    if (!mark_pieces(t, file->path, why) || !vocabulary_index(v, file->path, why))
        return false;
    for (int i = 0; i < 256; i++)
        t->bytes[i] = -1; /* the unknown token */
    for (int32_t id = 0; id < v->count; id++)
        if (v->pieces[id].type == BYTE)
            t->bytes[vocabulary_byte(v->pieces[id].text)] = id;
    return true;
}

static void unload(struct tokenizer *t)
{
    (void)t;
}

static bool join(const void *user, const struct symbol *left, const struct symbol *right,
                 struct joined *joined)
{
    const struct vocabulary *v = user;
    joined->id = vocabulary_find(v, left->bytes, (size_t)left->length + right->length);
    if (joined->id < 0)
        return false;
    joined->order = -(double)v->pieces[joined->id].score;
    return true;
}

/* Adds the token of a symbol, or one for each of its bytes. */
static bool emit(struct encoder *e, const struct symbol *symbol)
{
    const struct tokenizer *t = e->tokenizer;
    const int32_t id = symbol->id >= 0
                           ? symbol->id
                           : vocabulary_find(&t->vocabulary, symbol->bytes, symbol->length);
    if (id >= 0)
        return encoder_add(e, id);
    for (uint32_t i = 0; i < symbol->length; i++) {
        const unsigned char byte = (unsigned char)symbol->bytes[i];
        const int32_t token = t->bytes[byte] >= 0 ? t->bytes[byte] : t->unknown;
        if (token < 0)
            return encoder_lacks(e, byte);
        if (!encoder_add(e, token))
            return false;
    }
    return true;
}

static bool encode(struct encoder *e, const char *text, size_t length)
{
    struct merger *m = &e->merger;
    if (!merger_begin(m, length))
        return fault(e->why, "out of memory to encode %zu bytes of text", length);
    for (size_t at = 0, size; at < length; at += size) {
        size = utf8_at(text + at, length - at);
        size = size ? size : 1;
        merger_add(m, text + at, size, -1);
    }
    merger_run(m, join, &e->tokenizer->vocabulary);
    for (size_t i = 0; i < m->count; i++)
        if (m->symbols[i].length > 0 && !emit(e, &m->symbols[i]))
            return false;
    return true;
}

const struct kind tokenizer_spm = {
    .name = "llama",
    .marks = true,
    .unknown = 0,
    .bos = 1,
    .eos = 2,
    .load = load,
    .unload = unload,
    .encode = encode,
};
