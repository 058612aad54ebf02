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

/* Keys that change what is computed. */
static const char *const unsupported[] = {
    "attention.clamp_kqv",
    "attention.scale",
    "attention.sliding_window_pattern",
    "attention.temperature_scale",
    "attn_logit_softcapping",
    "embedding_scale",
    "final_logit_softcapping",
    "logit_scale",
    "residual_scale",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_log_multiplier",
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
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
        key_of(key, s, unsupported[i]);
        if (gguf_find(file, key))
            return fault(why, "%s: key '%s' is not supported; use a model without it",
                         file->path, key);
    }
    return true;
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
