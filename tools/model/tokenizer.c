/* SPDX-License-Identifier: MIT */
/* tokenizer.c - byte-pair encoding as in SentencePiece. The text starts as one symbol per
 * character. The two neighbours whose joined piece has the best score merge, until no two
 * can. A heap holds the candidates; entries that an earlier merge has made invalid are
 * recognised by their length. */
#include "tokenizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The token types of the format. */
enum { UNDEFINED, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE, TYPES };

static const char space_mark[] = "\xe2\x96\x81";  /* U+2581: a space in the vocabulary */
static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
enum { MARK_BYTES = 3 };

struct piece {
    struct gguf_string text;
    float score;
    int type;
};

struct entry {
    struct gguf_string text;
    int32_t id;
};

struct tokenizer {
    struct piece *pieces; /* by id */
    int32_t count;
    struct entry *words; /* the pieces that merging can make, sorted by text */
    size_t word_count, longest_word;
    struct entry *whole; /* the pieces that are matched as a whole, longest first */
    size_t whole_count;
    int32_t bytes[256]; /* the ids of <0xNN>, or of the unknown token */
    int32_t bos, eos, eot, unknown;
    bool add_bos, add_eos, add_space;
};

/* ---- UTF-8 --------------------------------------------------------------------------- */

/* The length of a character that starts with `lead`; 0 if none does. */
static int character_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Whether `byte` may be byte number `index`, 1 to 3, of a character that starts with
 * `lead`. The second byte is where overlong forms, surrogates and code points above
 * U+10FFFF are refused. */
static bool continues(unsigned char lead, int index, unsigned char byte)
{
    unsigned char low = 0x80, high = 0xbf;
    if (index == 1) {
        low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    }
    return byte >= low && byte <= high;
}

/* The length of the valid character at `text`; 1 for a byte that starts none. */
static size_t character_at(const char *text, size_t left)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const int length = character_length(bytes[0]);
    if (length == 0 || (size_t)length > left)
        return 1;
    for (int i = 1; i < length; i++)
        if (!continues(bytes[0], i, bytes[i]))
            return 1;
    return (size_t)length;
}

/* ---- The vocabulary ------------------------------------------------------------------ */

/* The value of a piece spelled <0xNN>, or -1. */
static int byte_of(struct gguf_string text)
{
    static const char digits[] = "0123456789ABCDEF";
    if (text.length != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>')
        return -1;
    const char *high = memchr(digits, text.bytes[3], sizeof digits - 1),
               *low = memchr(digits, text.bytes[4], sizeof digits - 1);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static bool read_pieces(struct tokenizer *t, const struct gguf *file, struct fault *why)
{
    struct gguf_array tokens = { 0 }, scores = { 0 }, types = { 0 };
    if (!gguf_get_array(file, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, why) ||
        !gguf_get_array(file, "tokenizer.ggml.scores", GGUF_F32, &scores, why) ||
        !gguf_get_array(file, "tokenizer.ggml.token_type", GGUF_I32, &types, why))
        return false;
    if (tokens.count == 0 || tokens.count > INT32_MAX || scores.count != tokens.count ||
        types.count != tokens.count)
        return fault(why,
                     "%s: tokenizer.ggml.tokens, scores and token_type have %" PRIu64
                     ", %" PRIu64 " and %" PRIu64 " elements, must have equally many, at "
                     "least one; convert the model again with its tokenizer",
                     file->path, tokens.count, scores.count, types.count);
    t->count = (int32_t)tokens.count;
    t->pieces = calloc((size_t)t->count, sizeof *t->pieces);
    if (!t->pieces)
        return fault(why, "%s: out of memory for %" PRId32 " tokens", file->path, t->count);
    const uint8_t *cursor = tokens.bytes;
    for (int32_t id = 0; id < t->count; id++) {
        struct piece *piece = &t->pieces[id];
        piece->text = gguf_next_string(&cursor);
        piece->score = gguf_f32_at(&scores, (uint64_t)id);
        piece->type = gguf_i32_at(&types, (uint64_t)id);
        if (isnan(piece->score) || piece->type < 0 || piece->type >= TYPES ||
            (piece->type == BYTE && byte_of(piece->text) < 0))
            return fault(
                why,
                "%s: token %" PRId32 " has score %g, type %d and %zu bytes of text: "
                "the vocabulary is damaged; convert the model again",
                file->path, id, (double)piece->score, piece->type, piece->text.length);
    }
    return true;
}

/* Reads an id from `tokenizer.ggml.*`; if absent, `fallback`, or none if the vocabulary is
 * smaller. */
static bool read_id(const struct tokenizer *t, const struct gguf *file, const char *key,
                    int32_t fallback, int32_t *id, struct fault *why)
{
    uint64_t number = (uint64_t)fallback;
    const bool given = gguf_find(file, key) != NULL;
    *id = -1;
    if (!gguf_get_count(file, key, &number, why))
        return false;
    if (number < (uint64_t)t->count && (given || fallback >= 0))
        *id = (int32_t)number;
    return *id >= 0 || !given ||
           fault(why,
                 "%s: key '%s' is %" PRIu64 " but the vocabulary has %" PRId32
                 " tokens; convert the model again",
                 file->path, key, number, t->count);
}

static bool read_settings(struct tokenizer *t, const struct gguf *file, struct fault *why)
{
    t->add_bos = t->add_space = true; /* the defaults of this kind of tokenizer */
    if (!read_id(t, file, "tokenizer.ggml.unknown_token_id", 0, &t->unknown, why) ||
        !read_id(t, file, "tokenizer.ggml.bos_token_id", 1, &t->bos, why) ||
        !read_id(t, file, "tokenizer.ggml.eos_token_id", 2, &t->eos, why) ||
        !read_id(t, file, "tokenizer.ggml.eot_token_id", -1, &t->eot, why) ||
        !gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos, why) ||
        !gguf_get_bool(file, "tokenizer.ggml.add_eos_token", &t->add_eos, why) ||
        !gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space, why))
        return false;
    t->add_bos = t->add_bos && t->bos >= 0;
    t->add_eos = t->add_eos && t->eos >= 0;
    return true;
}

static int by_text(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int order = gguf_string_compare(x->text, y->text);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static int longest_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->text.length != y->text.length)
        return x->text.length < y->text.length ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int text_only(const void *a, const void *b)
{
    return gguf_string_compare(((const struct entry *)a)->text,
                               ((const struct entry *)b)->text);
}

/* If several pieces have the same text, the first counts. */
static void keep_first(struct tokenizer *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->word_count; i++)
        if (kept == 0 || text_only(&t->words[kept - 1], &t->words[i]) != 0)
            t->words[kept++] = t->words[i];
    t->word_count = kept;
}

static bool index_pieces(struct tokenizer *t, const struct gguf *file, struct fault *why)
{
    t->words = calloc((size_t)t->count, sizeof *t->words);
    t->whole = calloc((size_t)t->count, sizeof *t->whole);
    if (!t->words || !t->whole)
        return fault(why, "%s: out of memory for %" PRId32 " tokens", file->path, t->count);
    for (int i = 0; i < 256; i++)
        t->bytes[i] = t->unknown;
    for (int32_t id = 0; id < t->count; id++) {
        const struct piece *piece = &t->pieces[id];
        const struct entry entry = { piece->text, id };
        if (piece->type == BYTE)
            t->bytes[byte_of(piece->text)] = id;
        if (piece->text.length == 0)
            continue;
        if (piece->type == USER_DEFINED)
            t->whole[t->whole_count++] = entry;
        if (piece->type != NORMAL && piece->type != UNDEFINED)
            continue;
        t->words[t->word_count++] = entry;
        if (piece->text.length > t->longest_word)
            t->longest_word = piece->text.length;
    }
    qsort(t->words, t->word_count, sizeof *t->words, by_text);
    qsort(t->whole, t->whole_count, sizeof *t->whole, longest_first);
    keep_first(t);
    return true;
}

struct tokenizer *tokenizer_create(const struct gguf *file, struct fault *why)
{
    struct gguf_string model = { "", 0 };
    if (!gguf_get_string(file, "tokenizer.ggml.model", &model, why))
        return NULL;
    if (!gguf_string_is(model, "llama")) {
        fault_say(
            why,
            "%s: key 'tokenizer.ggml.model' is '%.*s', only 'llama' (SentencePiece-style "
            "BPE) is supported; use a model with that tokenizer",
            file->path, (int)(model.length < 40 ? model.length : 40), model.bytes);
        return NULL;
    }
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        fault_say(why, "%s: out of memory", file->path);
    else if (read_pieces(t, file, why) && read_settings(t, file, why) &&
             index_pieces(t, file, why))
        return t;
    tokenizer_destroy(t);
    return NULL;
}

void tokenizer_destroy(struct tokenizer *t)
{
    if (!t)
        return;
    free(t->pieces);
    free(t->words);
    free(t->whole);
    free(t);
}

int32_t tokenizer_size(const struct tokenizer *t)
{
    return t->count;
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

bool tokenizer_is_end(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (id == t->eos || id == t->eot);
}

/* ---- Encoding ------------------------------------------------------------------------ */

struct symbol {
    const char *bytes;
    uint32_t length;       /* 0: merged into its left neighbour */
    int32_t before, after; /* neighbours; -1 at the ends */
    /* -1: not looked up yet; otherwise matched as a whole, so it does not merge */
    int32_t id;
};

struct merge {
    float score;
    int32_t left, right;
    uint32_t length; /* length of both when this was found */
};

struct encoder {
    const struct tokenizer *t;
    char *text; /* with the spaces replaced */
    struct symbol *symbols;
    struct merge *heap;
    size_t text_length, symbol_count, heap_count;
};

/* The piece with this text, or -1. */
static int32_t find_word(const struct tokenizer *t, const char *bytes, size_t length)
{
    const struct entry wanted = { .text = { bytes, length } };
    if (length > t->longest_word)
        return -1;
    const struct entry *found = bsearch(&wanted, t->words, t->word_count, sizeof wanted,
                                        text_only);
    return found ? found->id : -1;
}

/* The piece that matches as a whole here, the longest if several do; NULL if none does. */
static const struct entry *find_whole(const struct tokenizer *t, const char *bytes,
                                      size_t left)
{
    for (size_t i = 0; i < t->whole_count; i++) {
        const struct gguf_string text = t->whole[i].text;
        if (text.length <= left && memcmp(text.bytes, bytes, text.length) == 0)
            return &t->whole[i];
    }
    return NULL;
}

/* Best score first; of equal ones the leftmost first. */
static bool goes_before(const struct merge *a, const struct merge *b)
{
    return a->score != b->score ? a->score > b->score : a->left < b->left;
}

static void heap_push(struct encoder *e, struct merge merge)
{
    size_t at = e->heap_count++;
    for (; at > 0 && goes_before(&merge, &e->heap[(at - 1) / 2]); at = (at - 1) / 2)
        e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = merge;
}

static struct merge heap_pop(struct encoder *e)
{
    const struct merge best = e->heap[0], last = e->heap[--e->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < e->heap_count; at = child) {
        if (child + 1 < e->heap_count && goes_before(&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!goes_before(&e->heap[child], &last))
            break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = last;
    return best;
}

/* Adds two neighbours to the candidates if the vocabulary has them joined. */
static void propose(struct encoder *e, int32_t left, int32_t right)
{
    if (left < 0 || right < 0 || e->symbols[left].id >= 0 || e->symbols[right].id >= 0)
        return;
    const struct symbol *a = &e->symbols[left], *b = &e->symbols[right];
    const int32_t id = find_word(e->t, a->bytes, (size_t)a->length + b->length);
    if (id >= 0)
        heap_push(e, (struct merge){ e->t->pieces[id].score, left, right,
                                     a->length + b->length });
}

/* Copies the text with every space replaced, and one more in front if the file asks for it.
 */
static void replace_spaces(struct encoder *e, const char *text, size_t length)
{
    char *out = e->text;
    if (e->t->add_space && length > 0) {
        memcpy(out, space_mark, MARK_BYTES);
        out += MARK_BYTES;
    }
    for (size_t i = 0; i < length; i++)
        if (text[i] == ' ') {
            memcpy(out, space_mark, MARK_BYTES);
            out += MARK_BYTES;
        } else
            *out++ = text[i];
    e->text_length = (size_t)(out - e->text);
}

static void split(struct encoder *e)
{
    for (size_t at = 0; at < e->text_length;) {
        const size_t left = e->text_length - at;
        const struct entry *whole = find_whole(e->t, e->text + at, left);
        const int32_t index = (int32_t)e->symbol_count++;
        struct symbol *symbol = &e->symbols[index];
        symbol->bytes = e->text + at;
        symbol->length = (uint32_t)(whole ? whole->text.length
                                          : character_at(symbol->bytes, left));
        symbol->id = whole ? whole->id : -1;
        symbol->before = index - 1;
        symbol->after = at + symbol->length < e->text_length ? index + 1 : -1;
        at += symbol->length;
    }
}

static void merge_all(struct encoder *e)
{
    for (size_t i = 1; i < e->symbol_count; i++)
        propose(e, (int32_t)i - 1, (int32_t)i);
    while (e->heap_count > 0) {
        const struct merge merge = heap_pop(e);
        struct symbol *left = &e->symbols[merge.left], *right = &e->symbols[merge.right];
        if (left->length == 0 || right->length == 0 ||
            left->length + right->length != merge.length)
            continue;
        left->length = merge.length;
        right->length = 0;
        left->after = right->after;
        if (left->after >= 0)
            e->symbols[left->after].before = merge.left;
        propose(e, left->before, merge.left);
        propose(e, merge.left, left->after);
    }
}

/* Adds one id for each symbol that is a piece, and one for each byte of the others. */
static void emit(const struct encoder *e, struct tokens *tokens)
{
    const struct tokenizer *t = e->t;
    if (t->add_bos)
        tokens->ids[tokens->count++] = t->bos;
    for (size_t i = 0; i < e->symbol_count; i++) {
        const struct symbol *symbol = &e->symbols[i];
        int32_t id = symbol->id >= 0 ? symbol->id
                                     : find_word(t, symbol->bytes, symbol->length);
        for (uint32_t b = 0; id < 0 && b < symbol->length; b++)
            tokens->ids[tokens->count++] = t->bytes[(unsigned char)symbol->bytes[b]];
        if (id >= 0 && symbol->length > 0)
            tokens->ids[tokens->count++] = id;
    }
    if (t->add_eos)
        tokens->ids[tokens->count++] = t->eos;
}

bool tokenizer_encode(const struct tokenizer *t, const char *text, size_t length,
                      struct tokens *tokens, struct fault *why)
{
    *tokens = (struct tokens){ 0 };
    if (length > TOKENIZER_TEXT)
        return fault(why,
                     "the text has %zu bytes, at most %d can be encoded at once; split it",
                     length, TOKENIZER_TEXT);
    /* Bounds: a character is at least one byte of the text, plus one for the space in
     * front. A merge removes one candidate and adds two. An id stands for at least one
     * byte, except BOS and EOS. */
    const size_t symbols = length + 1, bytes = MARK_BYTES * symbols;
    struct encoder e = { .t = t };
    e.text = malloc(bytes);
    e.symbols = calloc(symbols, sizeof *e.symbols);
    e.heap = calloc(2 * symbols, sizeof *e.heap);
    tokens->ids = calloc(bytes + 2, sizeof *tokens->ids);
    const bool enough = e.text && e.symbols && e.heap && tokens->ids;
    if (enough) {
        replace_spaces(&e, text, length);
        split(&e);
        merge_all(&e);
        emit(&e, tokens);
    } else {
        free(tokens->ids);
        tokens->ids = NULL;
        fault_say(why, "out of memory to encode %zu bytes of text", length);
    }
    free(e.text);
    free(e.symbols);
    free(e.heap);
    return enough;
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
    if (decoder->count > 0 && !continues(decoder->held[0], decoder->count, byte) &&
        !tokenizer_decode_end(decoder, out))
        return false;
    decoder->held[decoder->count++] = byte;
    const int length = character_length(decoder->held[0]);
    if (length == 0)
        return tokenizer_decode_end(decoder, out);
    if (decoder->count < length)
        return true;
    decoder->count = 0;
    return text_append(out, (const char *)decoder->held, (size_t)length);
}

static bool decode_text(struct decoder *decoder, struct gguf_string text, bool drop_space,
                        struct text *out)
{
    for (size_t i = 0; i < text.length;) {
        const bool mark = text.length - i >= MARK_BYTES &&
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
    if (id < 0 || id >= t->count)
        return tokenizer_decode_end(decoder, out) &&
               text_append(out, replacement, sizeof replacement - 1);
    const struct piece *piece = &t->pieces[id];
    switch (piece->type) {
    case CONTROL:
    case UNUSED:
        return true;
    case BYTE:
        decoder->started = true;
        return decode_byte(decoder, (unsigned char)byte_of(piece->text), out);
    case UNKNOWN:
        decoder->started = true;
        return tokenizer_decode_end(decoder, out) &&
               text_append(out, replacement, sizeof replacement - 1);
    default:
        decoder->started = true;
        return decode_text(decoder, piece->text, drop_space, out);
    }
}
