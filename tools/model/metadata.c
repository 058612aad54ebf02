/* SPDX-License-Identifier: MIT */
/* metadata.c - see metadata.h. Values need no checks: the reader has checked every length. */
#define _POSIX_C_SOURCE 200809L
#include "metadata.h"

#include "command/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest decimal number that reads back as the same f32: 1e-05, not 9.99999975e-06. */
static double shortest(float value)
{
    char text[32];
    double number = 0;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        number = strtod(text, NULL);
        if ((float)number == value)
            break;
    }
    return number;
}

static json_t *real_json(double value)
{
    char text[16];
    if (isfinite(value))
        return json_real(value);
    snprintf(text, sizeof text, "%g", value);
    return json_string(text);
}

static json_t *integer_json(const uint8_t *at, enum gguf_kind kind)
{
    const int64_t value = gguf_integer(at, kind);
    char text[24];
    if (kind != GGUF_U64 || value >= 0)
        return json_integer(value);
    snprintf(text, sizeof text, "%" PRIu64, (uint64_t)value);
    return json_string(text);
}

static json_t *number_json(const uint8_t *at, enum gguf_kind kind)
{
    float single;
    double twice;
    switch (kind) {
    case GGUF_BOOL:
        return json_boolean(*at);
    case GGUF_F32:
        memcpy(&single, at, sizeof single);
        return real_json(isfinite(single) ? shortest(single) : (double)single);
    case GGUF_F64:
        memcpy(&twice, at, sizeof twice);
        return real_json(twice);
    default:
        return integer_json(at, kind);
    }
}

static json_t *value_json(const uint8_t **at, enum gguf_kind kind, size_t most);

/* Reads what precedes the elements of an array. */
static uint64_t begin_array(const uint8_t **at, enum gguf_kind *of)
{
    uint32_t kind;
    uint64_t count;
    memcpy(&kind, *at, sizeof kind);
    memcpy(&count, *at + sizeof kind, sizeof count);
    *at += sizeof kind + sizeof count;
    *of = (enum gguf_kind)kind;
    return count;
}

/* Moves past the whole array, and lists the first `most` elements. */
static json_t *array_json(const uint8_t **at, size_t most)
{
    enum gguf_kind of;
    const uint64_t count = begin_array(at, &of);
    json_t *list = json_array();
    for (uint64_t i = 0; i < count; i++) {
        json_t *value = value_json(at, of, i < most ? most : 0);
        if (i < most)
            json_array_append_new(list, value);
        else
            json_decref(value);
    }
    return list;
}

static json_t *value_json(const uint8_t **at, enum gguf_kind kind, size_t most)
{
    if (kind == GGUF_ARRAY)
        return array_json(at, most);
    if (kind == GGUF_STRING) {
        const struct gguf_string string = gguf_next_string(at);
        return json_text(string.bytes, string.length);
    }
    const uint8_t *value = *at;
    *at += gguf_kind_bytes(kind);
    return number_json(value, kind);
}

static json_t *pair_json(const struct gguf_pair *pair, size_t most)
{
    const uint8_t *at = pair->value, *ahead = pair->value;
    json_t *tree = json_pack("{s:s}", "type", gguf_kind_name(pair->kind));
    if (pair->kind == GGUF_ARRAY) {
        enum gguf_kind of;
        const uint64_t count = begin_array(&ahead, &of);
        json_object_set_new(tree, "of", json_string(gguf_kind_name(of)));
        json_object_set_new(tree, "count", json_integer((json_int_t)count));
    }
    json_object_set_new(tree, "value", value_json(&at, pair->kind, most));
    return tree;
}

json_t *metadata_json(const struct gguf *file, size_t most)
{
    json_t *tree = json_object();
    for (size_t i = 0; i < file->pair_count; i++) {
        const struct gguf_string name = file->pairs[i].key;
        char *key = strndup(name.bytes, name.length);
        if (key)
            json_object_set_new(tree, key, pair_json(&file->pairs[i], most));
        free(key);
    }
    return tree;
}
