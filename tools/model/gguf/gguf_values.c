/* SPDX-License-Identifier: MIT */
/* gguf_values.c - values of metadata by key: numbers, strings and arrays, of the kind that the
 * caller needs. The reader (gguf.c) has checked that they lie in the file. */
#include "gguf.h"
#include "gguf_advice.h"
#include "util/utf8.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool wrong_kind(const struct gguf *file, const struct gguf_pair *pair,
                       const char *wanted, struct fault *why)
{
    return fault(why, "%s: key '%.*s' at byte %zu: is %s %s, must be %s; " CONVERT_AGAIN,
                 file->path, (int)pair->key.length, pair->key.bytes, pair->offset,
                 strchr("aif", *gguf_kind_name(pair->kind)) ? "an" : "a",
                 gguf_kind_name(pair->kind), wanted);
}

/* The value of a pair of one kind. Returns false with a fault if it is of another kind, and
 * true with NULL if it is absent. */
static bool get(const struct gguf *file, const char *key, enum gguf_kind kind,
                const struct gguf_pair **pair, struct fault *why)
{
    *pair = gguf_find(file, key);
    return !*pair || (*pair)->kind == kind ||
           wrong_kind(file, *pair, gguf_kind_name(kind), why);
}

int64_t gguf_integer(const uint8_t *value, enum gguf_kind kind)
{
    const size_t bytes = gguf_kind_bytes(kind);
    const bool is_signed = *gguf_kind_name(kind) == 'i';
    uint64_t bits = 0;
    memcpy(&bits, value, bytes);
    if (is_signed && bytes < sizeof bits && value[bytes - 1] & 0x80)
        bits |= UINT64_MAX << 8 * bytes;
    return (int64_t)bits;
}

static bool is_integer(enum gguf_kind kind)
{
    return gguf_kind_bytes(kind) && strchr("iu", *gguf_kind_name(kind));
}

static bool count_of(const struct gguf *file, const struct gguf_pair *pair, uint64_t *value,
                     struct fault *why)
{
    if (!is_integer(pair->kind))
        return wrong_kind(file, pair, "an integer", why);
    const int64_t number = gguf_integer(pair->value, pair->kind);
    if (number < 0)
        return wrong_kind(file, pair, "a count from 0 to 2^63", why);
    *value = (uint64_t)number;
    return true;
}

static bool real_of(const struct gguf *file, const struct gguf_pair *pair, double *value,
                    struct fault *why)
{
    float single;
    if (pair->kind == GGUF_F64) {
        memcpy(value, pair->value, sizeof *value);
        return true;
    }
    if (pair->kind != GGUF_F32)
        return wrong_kind(file, pair, "f32", why);
    memcpy(&single, pair->value, sizeof single);
    *value = (double)single;
    return true;
}

bool gguf_get_count(const struct gguf *file, const char *key, uint64_t *value,
                    struct fault *why)
{
    const struct gguf_pair *pair = gguf_find(file, key);
    return !pair || count_of(file, pair, value, why);
}

bool gguf_get_real(const struct gguf *file, const char *key, double *value,
                   struct fault *why)
{
    const struct gguf_pair *pair = gguf_find(file, key);
    return !pair || real_of(file, pair, value, why);
}

/* Makes `one` of a pair: the same, or of an array its only value. Arrays of strings and of arrays
 * stay as they are: they are of a wrong kind. */
static bool one_for_all(const struct gguf *file, const struct gguf_pair *pair,
                        int64_t layers, struct gguf_pair *one, struct fault *why)
{
    uint32_t of = 0;
    uint64_t count = 0;
    *one = *pair;
    if (pair->kind == GGUF_ARRAY) {
        memcpy(&of, pair->value, sizeof of);
        memcpy(&count, pair->value + sizeof of, sizeof count);
    }
    const size_t bytes = gguf_kind_bytes(of);
    const uint8_t *first = pair->value + sizeof of + sizeof count;
    if (pair->kind != GGUF_ARRAY || !bytes || layers < 1)
        return true;
    if (!count || count != (uint64_t)layers)
        return fault(why,
                     "%s: key '%.*s' at byte %zu: is an array of %" PRIu64
                     ", must be one number, or one for each of the %" PRId64
                     " layers; " CONVERT_AGAIN,
                     file->path, (int)pair->key.length, pair->key.bytes, pair->offset,
                     count, layers);
    for (uint64_t i = 1; i < count; i++)
        if (memcmp(first, first + i * bytes, bytes) != 0)
            return fault(why,
                         "%s: key '%.*s' at byte %zu: differs between layers 0 and %" PRIu64
                         ", which is not supported; use a model whose layers are equal",
                         file->path, (int)pair->key.length, pair->key.bytes, pair->offset,
                         i);
    one->kind = (enum gguf_kind)of;
    one->value = first;
    return true;
}

bool gguf_get_count_each(const struct gguf *file, const char *key, int64_t layers,
                         uint64_t *value, struct fault *why)
{
    const struct gguf_pair *pair = gguf_find(file, key);
    struct gguf_pair one;
    return !pair ||
           (one_for_all(file, pair, layers, &one, why) && count_of(file, &one, value, why));
}

bool gguf_get_real_each(const struct gguf *file, const char *key, int64_t layers,
                        double *value, struct fault *why)
{
    const struct gguf_pair *pair = gguf_find(file, key);
    struct gguf_pair one;
    return !pair ||
           (one_for_all(file, pair, layers, &one, why) && real_of(file, &one, value, why));
}

bool gguf_get_bool(const struct gguf *file, const char *key, bool *value, struct fault *why)
{
    const struct gguf_pair *pair;
    if (!get(file, key, GGUF_BOOL, &pair, why))
        return false;
    if (pair)
        *value = *pair->value != 0;
    return true;
}

bool gguf_get_string(const struct gguf *file, const char *key, struct gguf_string *value,
                     struct fault *why)
{
    const struct gguf_pair *pair;
    if (!get(file, key, GGUF_STRING, &pair, why))
        return false;
    if (pair) {
        const uint8_t *at = pair->value;
        *value = gguf_next_string(&at);
    }
    return true;
}

bool gguf_need_string(const struct gguf *file, const char *key, struct gguf_string *value,
                      struct fault *why)
{
    if (!gguf_find(file, key))
        return fault(why, "%s: key '%s' is missing; " CONVERT_AGAIN, file->path, key);
    return gguf_get_string(file, key, value, why);
}

bool gguf_get_array(const struct gguf *file, const char *key, enum gguf_kind kind,
                    struct gguf_array *value, struct fault *why)
{
    const struct gguf_pair *pair;
    uint32_t of;
    if (!get(file, key, GGUF_ARRAY, &pair, why))
        return false;
    if (!pair)
        return true;
    memcpy(&of, pair->value, sizeof of);
    if (of != kind)
        return fault(
            why, "%s: key '%s' at byte %zu: is an array of %s, must be %s; " CONVERT_AGAIN,
            file->path, key, pair->offset, gguf_kind_name(of), gguf_kind_name(kind));
    value->kind = kind;
    memcpy(&value->count, pair->value + sizeof of, sizeof value->count);
    value->bytes = pair->value + sizeof of + sizeof value->count;
    return true;
}

bool gguf_get_integers(const struct gguf *file, const char *key, struct gguf_array *value,
                       struct fault *why)
{
    const struct gguf_pair *pair = gguf_find(file, key);
    uint32_t of = GGUF_I32;
    if (pair && pair->kind == GGUF_ARRAY)
        memcpy(&of, pair->value, sizeof of);
    const enum gguf_kind kind = is_integer((enum gguf_kind)of) ? (enum gguf_kind)of
                                                               : GGUF_I32;
    return gguf_get_array(file, key, kind, value, why);
}

struct gguf_string gguf_next_string(const uint8_t **cursor)
{
    uint64_t length;
    memcpy(&length, *cursor, sizeof length);
    const char *bytes = (const char *)*cursor + sizeof length;
    *cursor += sizeof length + length;
    return (struct gguf_string){ bytes, (size_t)length };
}

float gguf_f32_at(const struct gguf_array *array, uint64_t index)
{
    float value;
    memcpy(&value, array->bytes + index * sizeof value, sizeof value);
    return value;
}

int32_t gguf_i32_at(const struct gguf_array *array, uint64_t index)
{
    int32_t value;
    memcpy(&value, array->bytes + index * sizeof value, sizeof value);
    return value;
}

int64_t gguf_integer_at(const struct gguf_array *array, uint64_t index)
{
    return gguf_integer(array->bytes + index * gguf_kind_bytes(array->kind), array->kind);
}

bool gguf_string_is(struct gguf_string string, const char *text)
{
    return string.length == strlen(text) && memcmp(string.bytes, text, string.length) == 0;
}

struct gguf_quote gguf_quote(struct gguf_string string)
{
    enum { MOST = 40 }; /* bytes: four characters for each fit */
    struct gguf_quote quote;
    size_t used = 0, at = 0;
    while (at < string.length && at < MOST) {
        const size_t length = utf8_printable_at(string.bytes + at, string.length - at);
        if (length)
            memcpy(quote.text + used, string.bytes + at, length);
        else
            snprintf(quote.text + used, sizeof quote.text - used, "\\x%02x",
                     (unsigned)(uint8_t)string.bytes[at]);
        used += length ? length : 4;
        at += length ? length : 1;
    }
    snprintf(quote.text + used, sizeof quote.text - used, "%s",
             at < string.length ? "..." : "");
    return quote;
}

int gguf_string_compare(struct gguf_string a, struct gguf_string b)
{
    const int order = memcmp(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}
