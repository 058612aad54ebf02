/* SPDX-License-Identifier: MIT */
/* shape.c - the supported architectures, and their metadata `<architecture>.*`. */
#include "shape.h"
#include "model_file.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* All are the decoder of LLaMA (arXiv 2302.13971). They differ in how rope pairs elements
 * (converters give LLaMA weights the interleaved form by permuting the rows of q and k),
 * and in whether each head of q and k is normed before rope. Files of Mistral say 'llama'.
 */
static const struct architecture {
    const char *name;
    bool interleaved, head_norm;
} architectures[] = {
    { "llama", true, false },
    { "mistral3", true, false },
    { "qwen2", false, false },
    { "qwen3", false, true },
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

/* The keys of an architecture that do not make hw compute something else than the model. Any other
 * key may, so a file that has it is refused, as is one with a tensor that nothing reads. A number
 * that is 0 and a bool that is false say that the model has no such thing. */
static const struct key {
    const char *suffix; /* with '_' at its end: all keys that begin with it */
    enum {
        READ, /* below */
        SILENT, /* says nothing about the scores of a text, or about experts, which are refused */
        FACTOR,   /* if it is 1 */
        SCALE,    /* if it is the usual one, 1 / sqrt(key width) */
        WINDOWED, /* if there is no window, or if it is true for each layer */
        LAYOUT /* if it is one of two names, which mean the same for the readers of this format */
    } kind;
} keys[] = {
    { "attention.causal", READ },
    { "attention.head_count", READ },
    { "attention.head_count_kv", READ },
    { "attention.key_length", READ },
    { "attention.key_length_swa", WINDOWED },
    { "attention.layer_norm_epsilon", SILENT },
    { "attention.layer_norm_rms_epsilon", READ },
    { "attention.output_scale", FACTOR },
    { "attention.scale", SCALE },
    { "attention.sliding_window", READ },
    { "attention.sliding_window_pattern", WINDOWED },
    { "attention.value_length", READ },
    { "attention.value_length_swa", WINDOWED },
    { "block_count", READ },
    { "classifier.output_labels", SILENT },
    { "context_length", READ },
    { "embedding_length", READ },
    { "embedding_length_out", SILENT },
    { "embedding_scale", FACTOR },
    { "expert_", SILENT },
    { "feed_forward_length", READ },
    { "full_attention_interval", FACTOR },
    { "interleave_moe_layer_step", SILENT },
    { "leading_dense_block_count", SILENT },
    { "logit_scale", FACTOR },
    { "moe_every_n_layers", SILENT },
    { "pooling_type", SILENT },
    { "residual_scale", FACTOR },
    { "rope.dimension_count", READ },
    { "rope.dimension_count_swa", WINDOWED },
    { "rope.freq_base", READ },
    { "rope.freq_base_swa", WINDOWED },
    { "rope.scale_linear", READ },
    { "rope.scaling.alpha", FACTOR },
    { "rope.scaling.attn_factor", READ },
    { "rope.scaling.factor", READ },
    { "rope.scaling.finetuned", SILENT },
    { "rope.scaling.original_context_length", READ },
    { "rope.scaling.type", READ },
    { "rope.scaling.yarn_attn_factor", FACTOR },
    { "rope.scaling.yarn_beta_fast", READ },
    { "rope.scaling.yarn_beta_slow", READ },
    { "rope.scaling.yarn_ext_factor", READ },
    { "tensor_data_layout", LAYOUT },
    { "vocab_size", READ },
};

enum { MAX_EXTENT = 1 << 24 };

static void key_of(char key[96], const struct shape *shape, const char *suffix)
{
    snprintf(key, 96, "%s.%s", shape->architecture, suffix);
}

/* The names of all architectures: 'a', 'b'. */
static void list_architectures(char list[128])
{
    size_t at = 0;
    for (size_t i = 0; i < ARCHITECTURES && at < 128; i++)
        at += (size_t)snprintf(list + at, 128 - at, "%s'%s'", i ? ", " : "",
                               architectures[i].name);
}

static bool read_architecture(const struct gguf *file, struct shape *shape,
                              struct fault *why)
{
    struct gguf_string name;
    char list[128] = "";
    if (!gguf_need_string(file, "general.architecture", &name, why))
        return false;
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (gguf_string_is(name, architectures[i].name)) {
            shape->architecture = architectures[i].name;
            shape->interleaved = architectures[i].interleaved;
            shape->head_norm = architectures[i].head_norm;
            return true;
        }
    list_architectures(list);
    return fault(why,
                 "%s: key 'general.architecture' is '%s', supported are %s; use a model "
                 "of one of these",
                 file->path, gguf_quote(name).text, list);
}

/* Reads a whole number from 1 to MAX_EXTENT, or one for each layer; if absent, `fallback`, or an
 * error if that is 0. */
static bool read_extent(const struct gguf *file, const struct shape *shape,
                        const char *suffix, int64_t fallback, int64_t *extent,
                        struct fault *why)
{
    char key[96];
    uint64_t value = (uint64_t)fallback;
    key_of(key, shape, suffix);
    if (!gguf_get_count_each(file, key, shape->layers, &value, why))
        return false;
    if (value < 1 || value > MAX_EXTENT)
        return gguf_find(file, key)
                   ? fault(why,
                           "%s: key '%s' is %" PRIu64
                           ", must be 1 to %d; convert the model "
                           "again",
                           file->path, key, value, MAX_EXTENT)
                   : fault(why, "%s: key '%s' is missing; convert the model again",
                           file->path, key);
    *extent = (int64_t)value;
    return true;
}

/* Numbers outside of this range are mistakes, as are those whose reciprocal does not fit f32. */
static const double smallest = 1e-30, largest = 1e30;

/* Reads a number of at least `low`, or one for each layer; if absent, `fallback`, or an error if
 * that is 0. */
static bool read_number(const struct gguf *file, const struct shape *shape,
                        const char *suffix, double low, double fallback, float *number,
                        struct fault *why)
{
    char key[96];
    double value = fallback;
    key_of(key, shape, suffix);
    if (!gguf_get_real_each(file, key, shape->layers, &value, why))
        return false;
    if (!(value >= low && value <= largest))
        return gguf_find(file, key)
                   ? fault(why,
                           "%s: key '%s' is %g, must be a number from %g to %g; convert "
                           "the model again",
                           file->path, key, value, low, largest)
                   : fault(why, "%s: key '%s' is missing; convert the model again",
                           file->path, key);
    *number = (float)value;
    return true;
}

/* Reads how many tokens attention looks back on, its own included; 0 or absent: all. */
static bool read_window(const struct gguf *file, struct shape *shape, struct fault *why)
{
    char key[96];
    uint64_t window = 0;
    key_of(key, shape, "attention.sliding_window");
    if (!gguf_get_count_each(file, key, shape->layers, &window, why))
        return false;
    shape->window = window < (uint64_t)shape->context ? (int64_t)window : 0;
    return true;
}

/* Older files have another name for the factor. */
static const char *factor_of(const struct gguf *file, const struct shape *shape)
{
    char key[96], old[96];
    key_of(key, shape, "rope.scaling.factor");
    key_of(old, shape, "rope.scale_linear");
    return gguf_find(file, key) || !gguf_find(file, old) ? "rope.scaling.factor"
                                                         : "rope.scale_linear";
}

/* The names that `rope.scaling.type` may have, and what they mean. */
static bool read_scaling_type(const struct gguf *file, const struct shape *shape,
                              bool *linear, bool *yarn, struct fault *why)
{
    char key[96];
    struct gguf_string type = { "none", 4 };
    key_of(key, shape, factor_of(file, shape));
    if (gguf_find(file, key)) /* a factor without a type is a linear one */
        type = (struct gguf_string){ "linear", 6 };
    key_of(key, shape, "rope.scaling.type");
    if (!gguf_get_string(file, key, &type, why))
        return false;
    *linear = gguf_string_is(type, "linear");
    *yarn = gguf_string_is(type, "yarn");
    return *linear || *yarn || gguf_string_is(type, "none") ||
           fault(why,
                 "%s: key '%s' is '%s', supported are 'none', 'linear' and 'yarn'; use a "
                 "model with one of these",
                 file->path, key, gguf_quote(type).text);
}

/* YaRN (Peng et al., 2023, arXiv 2309.00071), as hw_rope() describes it. */
static bool read_yarn(const struct gguf *file, struct shape *s, float factor,
                      struct fault *why)
{
    if (!read_extent(file, s, "rope.scaling.original_context_length", s->context,
                     &s->rope_context, why) ||
        !read_number(file, s, "rope.scaling.yarn_ext_factor", smallest, 1, &s->yarn, why) ||
        !read_number(file, s, "rope.scaling.yarn_beta_fast", smallest, 32, &s->beta_fast,
                     why) ||
        !read_number(file, s, "rope.scaling.yarn_beta_slow", smallest, 1, &s->beta_slow,
                     why))
        return false;
    s->magnitude *= 1 + 0.1F * logf(factor);
    if (s->yarn > 1 || s->beta_slow > s->beta_fast || s->theta <= 1)
        return fault(why,
                     "%s: keys '%s.rope.*': with yarn, yarn_ext_factor (%g) must be at "
                     "most 1, yarn_beta_slow (%g) at most yarn_beta_fast (%g), and "
                     "freq_base (%g) more than 1; convert the model again",
                     file->path, s->architecture, (double)s->yarn, (double)s->beta_slow,
                     (double)s->beta_fast, (double)s->theta);
    return true;
}

static bool read_rope_scaling(const struct gguf *file, struct shape *s, struct fault *why)
{
    bool linear, yarn;
    float factor = 1;
    if (!read_scaling_type(file, s, &linear, &yarn, why) ||
        ((linear || yarn) &&
         !read_number(file, s, factor_of(file, s), yarn ? 1 : smallest, 0, &factor, why)) ||
        !read_number(file, s, "rope.scaling.attn_factor", smallest, 1, &s->magnitude, why))
        return false;
    s->rope_scale = 1 / factor;
    return !yarn || read_yarn(file, s, factor, why);
}

/* A width that is not a multiple of the heads does not determine the width of one head. */
static bool names_head(const struct gguf *file, const struct shape *s, struct fault *why)
{
    char key[96], value[96];
    key_of(key, s, "attention.key_length");
    key_of(value, s, "attention.value_length");
    return (gguf_find(file, key) && gguf_find(file, value)) ||
           fault(why,
                 "%s: key '%s.embedding_length' is %" PRId64
                 ", not a multiple of the %" PRId64 " heads of '%s.attention.head_count'; "
                 "convert the model again",
                 file->path, s->architecture, s->width, s->heads, s->architecture);
}

static bool read_numbers(const struct gguf *file, struct shape *s, struct fault *why)
{
    const struct {
        const char *suffix;
        int64_t *extent;
        const int64_t *fallback; /* NULL: required */
    } extents[] = {
        { "block_count", &s->layers, NULL }, /* first: others may have one for each */
        { "context_length", &s->context, NULL },
        { "embedding_length", &s->width, NULL },
        { "feed_forward_length", &s->inner, NULL },
        { "attention.head_count", &s->heads, NULL },
        { "attention.head_count_kv", &s->kv_heads, &s->heads },
    };
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        if (!read_extent(file, s, extents[i].suffix,
                         extents[i].fallback ? *extents[i].fallback : 0, extents[i].extent,
                         why))
            return false;
    const int64_t head = s->width % s->heads ? 0 : s->width / s->heads;
    return (head || names_head(file, s, why)) &&
           read_extent(file, s, "attention.key_length", head, &s->key_width, why) &&
           read_extent(file, s, "attention.value_length", head, &s->value_width, why) &&
           read_extent(file, s, "rope.dimension_count", s->key_width, &s->rope_dims, why) &&
           read_number(file, s, "attention.layer_norm_rms_epsilon", smallest, 0, &s->eps,
                       why) &&
           read_number(file, s, "rope.freq_base", smallest, 10000, &s->theta, why) &&
           read_window(file, s, why) && read_rope_scaling(file, s, why);
}

/* Attention in both directions, as in models that make embeddings, gives other scores. */
static bool check_causal(const struct gguf *file, const struct shape *s, struct fault *why)
{
    char key[96];
    bool causal = true;
    key_of(key, s, "attention.causal");
    if (!gguf_get_bool(file, key, &causal, why))
        return false;
    return causal ||
           fault(
               why,
               "%s: key '%s' is false, and attention in both directions is not supported; "
               "use a model whose attention is causal",
               file->path, key);
}

/* Whether the value is this number or bool, or an array of nothing else. An f32 may be rounded. */
static bool is_all(const struct gguf_pair *pair, double wanted)
{
    uint32_t of = pair->kind;
    uint64_t count = 1;
    const uint8_t *at = pair->value;
    if (pair->kind == GGUF_ARRAY) {
        memcpy(&of, at, sizeof of);
        memcpy(&count, at + sizeof of, sizeof count);
        at += sizeof of + sizeof count;
    }
    const size_t bytes = gguf_kind_bytes((enum gguf_kind)of);
    if (!bytes)
        return count == 0; /* an array without strings; a string has one value */
    for (uint64_t i = 0; i < count; i++, at += bytes) {
        float single;
        double number;
        if (of == GGUF_F32) {
            memcpy(&single, at, sizeof single);
            number = fabs((double)single - wanted) <= 1e-6 * wanted ? wanted
                                                                    : (double)single;
        } else if (of == GGUF_F64)
            memcpy(&number, at, sizeof number);
        else
            number = (double)gguf_integer(at, (enum gguf_kind)of);
        if (number != wanted)
            return false;
    }
    return true;
}

static bool is_layout(const struct gguf *file, const char *key)
{
    struct gguf_string layout = { "", 0 };
    return gguf_get_string(file, key, &layout, NULL) &&
           (gguf_string_is(layout, "reference") ||
            gguf_string_is(layout, "Meta AI original pth"));
}

/* The row of a key, or NULL. */
static const struct key *row_of(struct gguf_string suffix)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const size_t length = strlen(keys[i].suffix);
        if (gguf_string_is(suffix, keys[i].suffix) ||
            (keys[i].suffix[length - 1] == '_' && suffix.length > length &&
             memcmp(suffix.bytes, keys[i].suffix, length) == 0))
            return &keys[i];
    }
    return NULL;
}

static bool changes_nothing(const struct gguf *file, const struct shape *s,
                            const struct gguf_pair *pair, struct gguf_string suffix)
{
    const struct key *row = row_of(suffix);
    char key[96];
    switch (row ? (int)row->kind : -1) {
    case READ:
    case SILENT:
        return true;
    case FACTOR:
        return is_all(pair, 0) || is_all(pair, 1);
    case SCALE:
        return is_all(pair, 0) || is_all(pair, 1 / sqrt((double)s->key_width));
    case WINDOWED:
        return s->window == 0 || (pair->kind == GGUF_ARRAY && is_all(pair, 1));
    case LAYOUT:
        key_of(key, s, row->suffix);
        return is_layout(file, key);
    default:
        return is_all(pair, 0);
    }
}

/* Refuses a model with a key of its architecture that hw does not know. */
static bool check_keys(const struct gguf *file, const struct shape *s, struct fault *why)
{
    const size_t length = strlen(s->architecture);
    for (size_t i = 0; i < file->pair_count; i++) {
        const struct gguf_pair *pair = &file->pairs[i];
        const struct gguf_string key = pair->key;
        if (key.length <= length + 1 || memcmp(key.bytes, s->architecture, length) != 0 ||
            key.bytes[length] != '.')
            continue;
        const struct gguf_string suffix = { key.bytes + length + 1,
                                            key.length - length - 1 };
        if (!changes_nothing(file, s, pair, suffix))
            return fault(why,
                         "%s: key '%.*s' at byte %zu is not supported with this value, and "
                         "may change what the model computes; use a model without it",
                         file->path, (int)(key.length < 200 ? key.length : 200), key.bytes,
                         pair->offset);
    }
    return true;
}

static bool check_features(const struct gguf *file, const struct shape *s,
                           struct fault *why)
{
    uint64_t experts = 0;
    char key[96];
    key_of(key, s, "expert_count");
    if (!gguf_get_count_each(file, key, s->layers, &experts, why))
        return false;
    if (experts)
        return fault(why,
                     "%s: has %" PRIu64
                     " experts, and mixtures of experts are not supported; "
                     "use a dense model",
                     file->path, experts);
    return check_causal(file, s, why) && check_keys(file, s, why);
}

static bool check_heads(const struct gguf *file, const struct shape *s, struct fault *why)
{
    if (s->heads % s->kv_heads)
        return fault(why,
                     "%s: %" PRId64 " query heads are not a multiple of %" PRId64
                     " key heads: "
                     "convert the model again",
                     file->path, s->heads, s->kv_heads);
    if (s->rope_dims > s->key_width || s->rope_dims % 2)
        return fault(why,
                     "%s: rope over %" PRId64 " elements of heads of %" PRId64
                     ", must be an "
                     "even number of them; convert the model again",
                     file->path, s->rope_dims, s->key_width);
    return true;
}

/* The vocabulary is the number of rows of the embedding; `vocab_size` may exclude some of
 * them as padding. */
static bool read_vocabulary(const struct gguf *file, struct shape *s, struct fault *why)
{
    const struct gguf_tensor *embedding = gguf_tensor(file, "token_embd.weight");
    if (!file->tensor_count)
        return fault(why, "%s: has no tensors, only metadata; use the file of the model",
                     file->path);
    if (!embedding || embedding->rank != 2 || embedding->extents[1] > MAX_EXTENT)
        return fault(why, "%s: tensor 'token_embd.weight' %s; convert the model again",
                     file->path,
                     embedding ? "is not a matrix of a possible size" : "is missing");
    s->vocabulary = (int64_t)embedding->extents[1];
    if (!read_extent(file, s, "vocab_size", s->vocabulary, &s->tokens, why))
        return false;
    return s->tokens <= s->vocabulary ||
           fault(why,
                 "%s: key '%s.vocab_size' is %" PRId64 ", but the embedding has %" PRId64
                 " rows; convert the model again",
                 file->path, s->architecture, s->tokens, s->vocabulary);
}

bool shape_read(const struct gguf *file, struct shape *shape, struct fault *why)
{
    *shape = (struct shape){ 0 };
    return model_file_is_whole(file, why) && model_file_is_model(file, why) &&
           read_architecture(file, shape, why) && read_numbers(file, shape, why) &&
           check_features(file, shape, why) && check_heads(file, shape, why) &&
           read_vocabulary(file, shape, why);
}
