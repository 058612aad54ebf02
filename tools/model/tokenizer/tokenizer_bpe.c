/* SPDX-License-Identifier: MIT */
/* tokenizer_bpe.c - byte-level byte-pair encoding (Radford et al., 2019, "Language Models
 * are Unsupervised Multitask Learners"). A regular expression splits the text into words. A
 * word starts as one symbol per byte. The two neighbours that come first in the list of
 * merges merge, until no two are in it.
 *
 * A file spells the bytes of pieces and merges as printable characters. They are turned back
 * into bytes when the file is read. */
#include "tokenizer_kind.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One way to make a piece of two: its first `left` bytes and the others. */
struct merge {
    uint32_t left;
    int32_t next; /* rank of the next way to make the same piece, or -1 */
};

struct bpe {
    struct words *words;
    bool ignore_merges;   /* a word that is a piece is not split, whatever the merges say */
    struct merge *merges; /* by rank */
    int32_t *first;       /* by id: rank of the first way to make the piece, or -1 */
};

/* ---- Pre-tokenizers ------------------------------------------------------------------ */

/* The \s of the published expressions is Unicode's White_Space, here without brackets. That
 * of PCRE2 has one character more, U+180E. */
#define SPACE "\\p{Z}\\t-\\r\\x{85}"
#define WORDS_END(more)                                                                    \
    "| ?[^" SPACE "\\p{L}\\p{N}]+[\\r\\n" more "]*|[" SPACE "]*[\\r\\n]+|[" SPACE          \
    "]+(?![^" SPACE "])|[" SPACE "]+"
#define WORDS_BEGIN "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"

#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

static const char llama3[] = WORDS_BEGIN "{1,3}" WORDS_END("");
static const char qwen2[] = WORDS_BEGIN WORDS_END("");
static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE
                           "\\p{L}\\p{N}]+|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+";
static const char tekken[] = "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER
                             "+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER
                             "*|\\p{N}" WORDS_END("/");
static const char digit[] = "\\p{N}";

static const struct pre {
    const char *name;
    const char *expressions[WORDS_MOST];
    bool ignore_merges;
    bool add_bos; /* unless the file says otherwise */
} pre_tokenizers[] = {
    { "gpt-2", { gpt2 }, false, false },
    { "llama-bpe", { llama3 }, true, true },
    { "llama3", { llama3 }, true, true },
    { "llama-v3", { llama3 }, true, true },
    { "smaug-bpe", { llama3 }, false, false },
    { "qwen2", { qwen2 }, false, false },
    { "deepseek-r1-qwen", { qwen2 }, false, false },
    { "tekken", { tekken }, true, true },
    { "smollm", { digit, gpt2 }, false, false },
    { "starcoder", { digit, gpt2 }, false, false },
    { "refact", { digit, gpt2 }, false, false },
};

static bool unknown_pre(const struct gguf *file, struct gguf_string name, struct fault *why)
{
    char list[256];
    size_t at = 0;
    for (size_t i = 0;
         i < sizeof pre_tokenizers / sizeof *pre_tokenizers && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s'%s'", i ? ", " : "",
                               pre_tokenizers[i].name);
    return fault(why,
                 "%s: key 'tokenizer.ggml.pre' is '%s', supported are %s; use a model "
                 "with one of these pre-tokenizers",
                 file->path, gguf_quote(name).text, list);
}

static bool read_pre(struct tokenizer *t, const struct gguf *file, struct fault *why)
{
    struct gguf_string name;
    if (!gguf_need_string(file, "tokenizer.ggml.pre", &name, why))
        return false;
    for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++)
        if (gguf_string_is(name, pre_tokenizers[i].name)) {
            const struct pre *pre = &pre_tokenizers[i];
            t->bpe->ignore_merges = pre->ignore_merges;
            t->add_bos = pre->add_bos;
            t->bpe->words = words_create(pre->expressions, pre->expressions[1] ? 2 : 1,
                                         why);
            return t->bpe->words;
        }
    return unknown_pre(file, name, why);
}

/* ---- The spelling of bytes ----------------------------------------------------------- */

/* Whether a byte is spelled as the character with its number, because that is printable. */
static bool is_itself(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
}

/* The bytes by the number of their character: the others follow from 256 on, in order. */
struct spelling {
    int16_t byte[256 + 68]; /* -1: none */
};

static struct spelling spell(void)
{
    struct spelling s;
    int next = 256;
    for (int byte = 0; byte < 256; byte++) {
        s.byte[byte] = -1;
        if (!is_itself(byte))
            s.byte[next++] = (int16_t)byte;
    }
    for (int byte = 0; byte < 256; byte++)
        if (is_itself(byte))
            s.byte[byte] = (int16_t)byte;
    return s;
}

/* Writes the bytes that `text` spells, at most as many as it has. Returns their number, or
 * -1 if it spells none. The characters have one or two bytes of UTF-8. */
static int64_t unspell(const struct spelling *s, struct gguf_string text, char *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < text.length; i++) {
        int number = (unsigned char)text.bytes[i];
        if (number >= 0x80) {
            if (number < 0xc2 || number > 0xdf || ++i == text.length ||
                ((unsigned char)text.bytes[i] & 0xc0) != 0x80)
                return -1;
            number = (number & 0x1f) << 6 | ((unsigned char)text.bytes[i] & 0x3f);
        }
        if (number >= 256 + 68 || s->byte[number] < 0)
            return -1;
        out[count++] = (char)s->byte[number];
    }
    return count;
}

/* Replaces the text of normal pieces by the bytes that it spells. Text that spells none, and
 * user-defined and control pieces, stay as they are. */
static bool unspell_pieces(struct tokenizer *t, const struct spelling *s, const char *path,
                           struct fault *why)
{
    struct vocabulary *v = &t->vocabulary;
    size_t room = 1;
    for (int32_t id = 0; id < v->count; id++)
        room += v->pieces[id].text.length; /* at most what the file has */
    char *out = t->texts = malloc(room);
    if (!out)
        return fault(why, "%s: out of memory for %" PRId32 " tokens", path, v->count);
    for (int32_t id = 0; id < v->count; id++) {
        struct piece *piece = &v->pieces[id];
        if (piece->type != NORMAL && piece->type != UNDEFINED)
            continue;
        const int64_t length = unspell(s, piece->text, out);
        if (length < 0)
            continue;
        piece->text = (struct gguf_string){ out, (size_t)length };
        out += length;
    }
    return true;
}

/* A vocabulary may lack bytes, such as those that UTF-8 never has: their id is -1. */
static void find_bytes(struct tokenizer *t)
{
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        t->bytes[i] = vocabulary_find(&t->vocabulary, &byte, 1);
    }
}

/* ---- Merges -------------------------------------------------------------------------- */

/* The rank of a merge to piece `id` with `left` bytes on the left, or -1. */
static int32_t rank_of(const struct bpe *bpe, int32_t id, uint32_t left)
{
    int32_t rank = bpe->first[id];
    while (rank >= 0 && bpe->merges[rank].left != left)
        rank = bpe->merges[rank].next;
    return rank;
}

/* Adds merge number `rank`: "left right" as the file spells it. Among merges of the same parts,
 * the first counts. `bytes` has room for the text. */
static bool add_merge(struct tokenizer *t, const struct spelling *s, int32_t rank,
                      struct gguf_string text, char *bytes)
{
    struct bpe *bpe = t->bpe;
    const char *space = memchr(text.bytes, ' ', text.length);
    if (!space)
        return false;
    const struct gguf_string first = { text.bytes, (size_t)(space - text.bytes) };
    const struct gguf_string second = { space + 1, text.length - first.length - 1 };
    const int64_t left = unspell(s, first, bytes);
    const int64_t right = left < 1 ? -1 : unspell(s, second, bytes + left);
    if (right < 1 || left > UINT32_MAX)
        return false;
    const int32_t id = vocabulary_find(&t->vocabulary, bytes, (size_t)(left + right));
    if (id < 0)
        return false;
    if (rank_of(bpe, id, (uint32_t)left) < 0) {
        bpe->merges[rank] = (struct merge){ (uint32_t)left, bpe->first[id] };
        bpe->first[id] = rank;
    }
    return true;
}

static bool add_merges(struct tokenizer *t, const struct spelling *s,
                       const struct gguf_array *merges, char *bytes, const char *path,
                       struct fault *why)
{
    const uint8_t *cursor = merges->bytes;
    for (int32_t id = 0; id < t->vocabulary.count; id++)
        t->bpe->first[id] = -1;
    for (uint64_t i = 0; i < merges->count; i++)
        if (!add_merge(t, s, (int32_t)i, gguf_next_string(&cursor), bytes))
            return fault(why,
                         "%s: element %" PRIu64
                         " of 'tokenizer.ggml.merges' is not a token "
                         "in two parts, with a space between them; convert the model again "
                         "with its tokenizer",
                         path, i);
    return true;
}

static bool read_merges(struct tokenizer *t, const struct spelling *s,
                        const struct gguf *file, struct fault *why)
{
    struct gguf_array merges = { 0 };
    size_t longest = 0;
    if (!gguf_get_array(file, "tokenizer.ggml.merges", GGUF_STRING, &merges, why))
        return false;
    if (merges.count == 0 || merges.count > INT32_MAX)
        return fault(why,
                     "%s: key 'tokenizer.ggml.merges' has %" PRIu64
                     " elements, must have 1 to %d; convert the model again with its "
                     "tokenizer",
                     file->path, merges.count, INT32_MAX);
    const uint8_t *cursor = merges.bytes;
    for (uint64_t i = 0; i < merges.count; i++) {
        const struct gguf_string text = gguf_next_string(&cursor);
        longest = text.length > longest ? text.length : longest;
    }
    char *bytes = malloc(longest + 1);
    t->bpe->merges = calloc((size_t)merges.count, sizeof *t->bpe->merges);
    t->bpe->first = calloc((size_t)t->vocabulary.count, sizeof *t->bpe->first);
    const bool enough = bytes && t->bpe->merges && t->bpe->first;
    const bool good = enough ? add_merges(t, s, &merges, bytes, file->path, why)
                             : fault(why, "%s: out of memory for %" PRIu64 " merges",
                                     file->path, merges.count);
    free(bytes);
    return good;
}

/* ---- Loading ------------------------------------------------------------------------- */

static bool load(struct tokenizer *t, const struct gguf *file, struct fault *why)
{
    struct vocabulary *v = &t->vocabulary;
    const struct spelling spelling = spell();
    t->bpe = calloc(1, sizeof *t->bpe);
    if (!t->bpe)
        return fault(why, "%s: out of memory", file->path);
    if (!vocabulary_read(v, file, false, why) || !read_pre(t, file, why) ||
        !unspell_pieces(t, &spelling, file->path, why) ||
        !vocabulary_index(v, file->path, why) || !read_merges(t, &spelling, file, why))
        return false;
    find_bytes(t);
    return true;
}

static void unload(struct tokenizer *t)
{
    if (!t->bpe)
        return;
    words_destroy(t->bpe->words);
    free(t->bpe->merges);
    free(t->bpe->first);
    free(t->bpe);
}

/* ---- Encoding ------------------------------------------------------------------------ */

static bool join(const void *user, const struct symbol *left, const struct symbol *right,
                 struct joined *joined)
{
    const struct tokenizer *t = user;
    const int32_t id = vocabulary_find(&t->vocabulary, left->bytes,
                                       (size_t)left->length + right->length);
    const int32_t rank = id < 0 ? -1 : rank_of(t->bpe, id, left->length);
    *joined = (struct joined){ rank, id };
    return rank >= 0;
}

static bool emit(struct encoder *e, const struct symbol *symbol)
{
    return symbol->id >= 0 ? encoder_add(e, symbol->id)
                           : encoder_lacks(e, (unsigned char)*symbol->bytes);
}

static bool encode_word(void *user, const char *bytes, size_t length)
{
    struct encoder *e = user;
    const struct tokenizer *t = e->tokenizer;
    struct merger *m = &e->merger;
    const int32_t whole = t->bpe->ignore_merges
                              ? vocabulary_find(&t->vocabulary, bytes, length)
                              : -1;
    if (whole >= 0)
        return encoder_add(e, whole);
    if (!merger_begin(m, length))
        return fault(e->why, "out of memory to encode %zu bytes of text", length);
    for (size_t i = 0; i < length; i++)
        merger_add(m, bytes + i, 1, t->bytes[(unsigned char)bytes[i]]);
    merger_run(m, join, t);
    for (size_t i = 0; i < m->count; i++)
        if (m->symbols[i].length > 0 && !emit(e, &m->symbols[i]))
            return false;
    return true;
}

static bool encode(struct encoder *e, const char *text, size_t length)
{
    return words_split(e->tokenizer->bpe->words, text, length, encode_word, e, e->why);
}

const struct kind tokenizer_bpe = {
    .name = "gpt2",
    .unknown = -1,
    .bos = -1,
    .eos = -1,
    .load = load,
    .unload = unload,
    .encode = encode,
};
