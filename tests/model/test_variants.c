/* SPDX-License-Identifier: MIT */
/* test_variants.c - the model file with changes made in memory: every type of weight, form of rope
 * and of output, compared with the model itself; and invalid metadata. */
#include "bard.h"

#include <math.h>

/* ---- Variants of the model ---- */

/* A copy of the file whose strings and numbers can be changed. Parse it again after a
 * change. */
static uint8_t *copy_model(void)
{
    uint8_t *copy = malloc(model_size);
    assert_non_null(copy);
    memcpy(copy, model_bytes, model_size);
    return copy;
}

static struct gguf *parse(const uint8_t *bytes, size_t size)
{
    struct fault why = { "" };
    struct gguf *file = gguf_parse(bytes, size, "variant.gguf", &why);
    if (!file)
        fail_msg("%s", why.text);
    return file;
}

/* Returns where the value of `key` is in any copy of the model. */
static size_t offset_of(const char *key)
{
    const struct gguf_pair *pair = gguf_find(model, key);
    assert_non_null(pair);
    return (size_t)(pair->value - model->bytes);
}

/* A file at an address that is not a multiple of 8 bytes cannot be imported and is copied
 * completely. Nothing of the aligned model is copied. */
static void test_in_place(void **state)
{
    (void)state;
    const struct llama_settings settings = { .context = TEXT };
    float wanted[VOCABULARY], scores[VOCABULARY];
    uint8_t *room = malloc(model_size + 4);
    assert_non_null(room);
    memcpy(room + 4, model_bytes, model_size);
    struct gguf *shifted = parse(room + 4, model_size);
    struct llama *copied = load(shifted, &settings), *mapped = load(model, &settings);
    assert_int_equal(llama_memory(mapped).weights, 0);
    assert_int_equal(llama_memory(copied).mapped, 0);
    assert_in_range(llama_memory(copied).weights, llama_memory(mapped).mapped, UINT32_MAX);
    assert_in_range(llama_memory(mapped).mapped, model_size * 9 / 10, model_size);
    feed(mapped, text, TEXT);
    scores_of(mapped, wanted);
    feed(copied, text, TEXT);
    scores_of(copied, scores);
    assert_memory_equal(scores, wanted, sizeof scores);
    llama_free(mapped);
    llama_free(copied);
    gguf_close(shifted);
    free(room);
}

/* qwen2 pairs the elements of a head as (i, i + 32), llama as (2i, 2i + 1). With the rows of q and
 * k reordered accordingly, both compute the same model. The two names have the same length. */
static void make_half_split(uint8_t *copy)
{
    memcpy(copy + offset_of("general.architecture") + 8, "qwen2", 5);
    for (size_t i = 0; i < model->pair_count; i++)
        if (strncmp(model->pairs[i].key.bytes, "llama.", 6) == 0)
            memcpy(copy + (model->pairs[i].key.bytes - (const char *)model->bytes), "qwen2",
                   5);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int k = 0; k < 2; k++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.attn_%c.weight", layer, "qk"[k]);
            const struct gguf_tensor *tensor = gguf_tensor(model, name);
            const size_t rows = tensor->extents[1], row = tensor->bytes / rows;
            const uint8_t *from = tensor->data;
            uint8_t *to = copy + (from - model->bytes);
            for (size_t r = 0; r < rows; r++) {
                const size_t head = r / HEAD * HEAD, i = r % HEAD;
                const size_t source = head +
                                      (i < HEAD / 2 ? 2 * i : 2 * (i - HEAD / 2) + 1);
                memcpy(to + r * row, from + source * row, row);
            }
        }
}

static void test_half_split_rope(void **state)
{
    (void)state;
    float wanted[VOCABULARY], scores[VOCABULARY];
    uint8_t *copy = copy_model();
    make_half_split(copy);
    struct gguf *file = parse(copy, model_size);
    struct shape shape;
    assert_true(shape_read(file, &shape, NULL));
    assert_false(shape.interleaved);
    score_text(model, HW_F32, wanted);
    score_text(file, HW_F32, scores);
    assert_near(scores, wanted, 1e-5, "half-split rope");
    gguf_close(file);
    free(copy);
}

/* The additions and changes that make a variant of the model. */
struct variant {
    struct blob pairs; /* more metadata */
    uint64_t pair_count;
    uint32_t type; /* type of the matrices; 0 with `convert` unset: unchanged */
    bool convert;
    const char *name; /* an additional tensor; NULL: none */
    uint32_t rank;
    uint64_t extents[2];
    uint32_t extra_type;
    const void *data;
    size_t bytes;
};

static int32_t dtype_of(uint32_t type)
{
    switch (type) {
    case GGUF_TYPE_F32:
        return HW_F32;
    case GGUF_TYPE_F16:
        return HW_F16;
    case GGUF_TYPE_BF16:
        return HW_BF16;
    case GGUF_TYPE_Q4_0:
        return HW_Q4_0;
    default:
        assert_int_equal(type, GGUF_TYPE_Q8_0);
        return HW_Q8_0;
    }
}

/* A host tensor of rows x cols, and its bytes. */
static size_t host(struct hw_tensor *tensor, const void *data, int32_t dtype,
                   const int64_t extents[2])
{
    assert_int_equal(hw_tensor_host(tensor, data, dtype, 2, extents), HW_OK);
    return (size_t)hw_tensor_bytes(tensor);
}

/* Writes the tensor's data in the variant's type, converted through f32. Vectors are
 * unchanged. */
static void put_data(struct blob *blob, struct hw_queue *queue,
                     const struct gguf_tensor *tensor, const struct variant *v)
{
    if (!v->convert || tensor->rank == 1) {
        put(blob, tensor->data, tensor->bytes);
        return;
    }
    const int64_t extents[2] = { (int64_t)tensor->extents[1], (int64_t)tensor->extents[0] };
    struct hw_tensor from, floats, to;
    float *data = malloc((size_t)(extents[0] * extents[1]) * sizeof *data);
    uint8_t *converted = malloc((size_t)(extents[0] * extents[1]) * sizeof *data);
    assert_true(data && converted);
    host(&from, tensor->data, dtype_of(tensor->type), extents);
    host(&floats, data, HW_F32, extents);
    const size_t bytes = host(&to, converted, dtype_of(v->type), extents);
    if (hw_copy(queue, &(struct hw_copy){ .src = from, .dst = floats }) ||
        hw_copy(queue, &(struct hw_copy){ .src = floats, .dst = to }) ||
        hw_queue_wait(queue))
        fail_msg("%s", hw_message());
    put(blob, converted, bytes);
    free(converted);
    free(data);
}

/* Writes the model with the changes of the variant. */
static struct blob rewrite(const struct variant *v)
{
    struct blob blob = { 0 }, data = { 0 };
    struct hw_queue *queue;
    size_t metadata_end = model_size;
    assert_int_equal(hw_queue_open(device, NULL, &queue), HW_OK);
    for (size_t i = 0; i < model->tensor_count; i++)
        if (model->tensors[i].offset < metadata_end)
            metadata_end = model->tensors[i].offset;
    put_header(&blob, model->tensor_count + (v->name != NULL),
               model->pair_count + v->pair_count);
    put(&blob, model->bytes + 24, metadata_end - 24);
    put(&blob, v->pairs.bytes, v->pairs.size);
    for (size_t i = 0; i < model->tensor_count; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        char name[GGUF_MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int)tensor->name.length, tensor->name.bytes);
        put_tensor(&blob, name, (uint32_t)tensor->rank, tensor->extents,
                   v->convert && tensor->rank > 1 ? v->type : tensor->type, data.size);
        put_data(&data, queue, tensor, v);
        pad(&data, 32);
    }
    if (v->name) {
        put_tensor(&blob, v->name, v->rank, v->extents, v->extra_type, data.size);
        put(&data, v->data, v->bytes);
    }
    pad(&blob, 32);
    put(&blob, data.bytes, data.size);
    hw_queue_close(queue);
    free(data.bytes);
    free(v->pairs.bytes);
    return blob;
}

static void score_variant(const struct variant *v, float *scores)
{
    struct blob blob = rewrite(v);
    struct gguf *file = parse(blob.bytes, blob.size);
    score_text(file, HW_F32, scores);
    gguf_close(file);
    free(blob.bytes);
}

static void test_weight_types(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        double bound; /* F32 holds every value of Q8_0; Q4_0 is coarse and must differ */
    } rows[] = { { GGUF_TYPE_F32, 1e-5 },
                 { GGUF_TYPE_F16, 1e-3 },
                 { GGUF_TYPE_BF16, 2e-2 },
                 { GGUF_TYPE_Q4_0, 0.5 } };
    float wanted[VOCABULARY], scores[VOCABULARY];
    score_text(model, HW_F32, wanted);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        score_variant(&(struct variant){ .convert = true, .type = rows[i].type }, scores);
        assert_near(scores, wanted, rows[i].bound, gguf_type_name(rows[i].type));
    }
}

/* A separate output matrix is used: reversing its rows reverses the scores. */
static void test_untied_output(void **state)
{
    (void)state;
    const struct gguf_tensor *embedding = gguf_tensor(model, "token_embd.weight");
    const size_t row = embedding->bytes / VOCABULARY;
    uint8_t *reversed = malloc(embedding->bytes);
    float wanted[VOCABULARY], scores[VOCABULARY], turned[VOCABULARY];
    assert_non_null(reversed);
    for (size_t i = 0; i < VOCABULARY; i++)
        memcpy(reversed + i * row,
               (const uint8_t *)embedding->data + (VOCABULARY - 1 - i) * row, row);
    score_text(model, HW_F32, wanted);
    score_variant(&(struct variant){ .name = "output.weight",
                                     .rank = 2,
                                     .extents = { 256, VOCABULARY },
                                     .extra_type = GGUF_TYPE_Q8_0,
                                     .data = reversed,
                                     .bytes = embedding->bytes },
                  scores);
    for (int i = 0; i < VOCABULARY; i++)
        turned[i] = scores[VOCABULARY - 1 - i];
    assert_near(turned, wanted, 1e-6, "an output of its own");
    free(reversed);
}

/* Dividing the frequencies by two equals dividing the positions by two, and both change the
 * scores. */
static void test_rope_factors(void **state)
{
    (void)state;
    float twos[HEAD / 2], wanted[VOCABULARY], factors[VOCABULARY], linear[VOCABULARY];
    for (int i = 0; i < HEAD / 2; i++)
        twos[i] = 2;
    score_text(model, HW_F32, wanted);
    score_variant(&(struct variant){ .name = "rope_freqs.weight",
                                     .rank = 1,
                                     .extents = { HEAD / 2 },
                                     .extra_type = GGUF_TYPE_F32,
                                     .data = twos,
                                     .bytes = sizeof twos },
                  factors);
    struct variant scaled = { .pair_count = 2 };
    put_key(&scaled.pairs, "llama.rope.scaling.type", GGUF_STRING);
    put_string(&scaled.pairs, "linear");
    put_key(&scaled.pairs, "llama.rope.scaling.factor", GGUF_F32);
    put_f32(&scaled.pairs, 2);
    score_variant(&scaled, linear);
    assert_near(factors, linear, 1e-5, "rope factors");
    struct variant old = { .pair_count = 1 };
    put_key(&old.pairs, "llama.rope.scale_linear", GGUF_F32);
    put_f32(&old.pairs, 2);
    score_variant(&old, factors);
    assert_near(factors, linear, 1e-6, "the older name of the factor");
    assert_true(distance(linear, wanted) > 1e-3);
}

/* A bias of zeros changes nothing, another bias does. A bias that the model does not use is
 * an error. */
static void test_bias(void **state)
{
    (void)state;
    float bias[128] = { 0 }, wanted[VOCABULARY], scores[VOCABULARY];
    const struct variant variant = { .name = "blk.2.attn_k.bias",
                                     .rank = 1,
                                     .extents = { 128 },
                                     .extra_type = GGUF_TYPE_F32,
                                     .data = bias,
                                     .bytes = sizeof bias };
    score_text(model, HW_F32, wanted);
    score_variant(&variant, scores);
    assert_near(scores, wanted, 1e-6, "a bias of zeros");
    for (int i = 0; i < 128; i++)
        bias[i] = (float)(i % 7);
    score_variant(&variant, scores);
    assert_true(distance(scores, wanted) > 1e-3);

    struct variant unknown = variant;
    struct fault why = { "" };
    struct shape shape;
    unknown.name = "blk.2.attn_output.bias";
    struct blob blob = rewrite(&unknown);
    struct gguf *file = parse(blob.bytes, blob.size);
    assert_true(shape_read(file, &shape, &why));
    assert_null(llama_load(file, &shape, device, &(struct llama_settings){ 0 }, &why));
    assert_non_null(strstr(why.text, "'blk.2.attn_output.bias' at byte"));
    gguf_close(file);
    free(blob.bytes);
}

/* ---- Invalid metadata ---- */

static void test_invalid_metadata(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t value;
        const char *words;
    } rows[] = {
        { "llama.context_length", 0, "'llama.context_length' is 0, must be 1 to" },
        { "llama.context_length", UINT32_MAX, "'llama.context_length' is 4294967295" },
        { "llama.embedding_length", 512, "tensor 'token_embd.weight'" },
        { "llama.embedding_length", 128, "rope over 64 elements of heads of 32" },
        { "llama.embedding_length", 255,
          "'llama.embedding_length' is 255, not a multiple of the 4 heads" },
        { "llama.block_count", 1, "'blk.1.attn_k.weight' at byte" },
        { "llama.block_count", 3, "is not used by a 'llama' of 3 blocks" },
        { "llama.block_count", 5, "tensor 'blk.4.attn_norm.weight' is missing" },
        { "llama.block_count", 1 << 24, "16777216 layers, but there are only 38 tensors" },
        { "llama.block_count", UINT32_MAX, "'llama.block_count' is 4294967295" },
        { "llama.feed_forward_length", 767, "tensor 'blk.0.ffn_gate.weight'" },
        { "llama.attention.head_count", 0, "'llama.attention.head_count' is 0" },
        { "llama.attention.head_count", 3,
          "'llama.embedding_length' is 256, not a multiple of the 3 heads" },
        { "llama.vocab_size", VOCABULARY + 1,
          "'llama.vocab_size' is 1025, but the embedding has 1024 rows" },
        { "llama.attention.head_count", 8, "rope over 64 elements of heads of 32" },
        { "llama.attention.head_count", 2, "tensor 'blk.0.attn_k.weight'" },
        { "llama.attention.head_count_kv", 3, "4 query heads are not a multiple of 3" },
        { "llama.attention.head_count_kv", 4, "tensor 'blk.0.attn_k.weight'" },
        { "llama.rope.dimension_count", 63, "rope over 63 elements of heads of 64" },
        { "llama.rope.dimension_count", 66, "rope over 66 elements of heads of 64" },
        { "llama.rope.freq_base", 0, "'llama.rope.freq_base' is 0, must be a number" },
        { "llama.rope.freq_base", 0x7fc00000,
          "'llama.rope.freq_base' is nan, must be a number" },
        { "llama.attention.layer_norm_rms_epsilon", 0xbf800000,
          "is -1, must be a number from 1e-30 to 1e+30" },
        { "llama.attention.layer_norm_rms_epsilon", 0x7f800000,
          "is inf, must be a number from 1e-30 to 1e+30" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fault why = { "variant" };
        struct shape shape;
        uint8_t *copy = copy_model();
        memcpy(copy + offset_of(rows[i].key), &rows[i].value, 4);
        struct gguf *file = parse(copy, model_size);
        struct llama *llama = NULL;
        if (shape_read(file, &shape, &why))
            llama = llama_load(file, &shape, device,
                               &(struct llama_settings){ .context = 1 }, &why);
        if (!strstr(why.text, rows[i].words))
            fail_msg("%s = %u: expected '%s', got: %s", rows[i].key, rows[i].value,
                     rows[i].words, why.text);
        llama_free(llama);
        gguf_close(file);
        free(copy);
    }
}

struct scaling {
    const char *type, *key; /* rope.scaling.type, if any, and one of the others */
    float value;
    const char *words;
};

/* The model with these keys and a factor, which yarn's keys require. */
static struct blob with_scaling(const struct scaling *row)
{
    struct variant v = { .pair_count = 1 };
    put_key(&v.pairs, row->key, GGUF_F32);
    put_f32(&v.pairs, row->value);
    if (row->type) {
        put_key(&v.pairs, "llama.rope.scaling.type", GGUF_STRING);
        put_string(&v.pairs, row->type);
        v.pair_count++;
    }
    if (strstr(row->key, "scaling.yarn")) {
        put_key(&v.pairs, "llama.rope.scaling.factor", GGUF_F32);
        put_f32(&v.pairs, 2);
        v.pair_count++;
    }
    return rewrite(&v);
}

static void test_invalid_scaling(void **state)
{
    (void)state;
    const struct scaling rows[] = {
        { "longrope", "llama.rope.scaling.factor", 4,
          "is 'longrope', supported are 'none'" },
        { "linear", "llama.unused", 1, "'llama.rope.scaling.factor' is missing" },
        { "linear", "llama.rope.scaling.factor", 1e-45F, "factor' is 1.4013e-45, must be" },
        { "linear", "llama.rope.scaling.factor", 1e-10F,
          "variant.gguf: record the decode" },
        { "yarn", "llama.unused", 1, "'llama.rope.scaling.factor' is missing" },
        { "yarn", "llama.rope.scaling.factor", 0.5F, "is 0.5, must be a number from 1 to" },
        { "yarn", "llama.rope.scaling.yarn_ext_factor", 2, "(2) must be at most 1" },
        { "yarn", "llama.rope.scaling.yarn_beta_fast", 0.5F, "yarn_beta_fast (0.5)" },
        { "yarn", "llama.rope.scaling.yarn_log_multiplier", 1, "is not supported" },
        { NULL, "llama.rope.scaling.attn_factor", -1, "attn_factor' is -1, must be" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fault why = { "nothing" };
        struct shape shape;
        struct blob blob = with_scaling(&rows[i]);
        struct gguf *file = parse(blob.bytes, blob.size);
        if (shape_read(file, &shape, &why))
            assert_null(llama_load(file, &shape, device,
                                   &(struct llama_settings){ .context = 1 }, &why));
        if (!strstr(why.text, rows[i].words))
            fail_msg("expected '%s', got: %s", rows[i].words, why.text);
        gguf_close(file);
        free(blob.bytes);
    }
}

/* A type that no kernel reads, and one that vectors cannot have: the advice lists all suitable
 * types. */
static void test_unsupported_types(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint32_t type;
        const char *words;
    } rows[] = {
        { "blk.0.attn_q.weight", 20,
          "has type IQ4_NL, which is not supported; use a file in which it is F32, F16, "
          "Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K or BF16" },
        { "output_norm.weight", GGUF_TYPE_Q8_0,
          "has type Q8_0, which is not supported for a vector; use a file in which it is "
          "F32, F16 or BF16" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fault why = { "" };
        struct shape shape;
        uint8_t *copy = copy_model();
        const struct gguf_tensor *tensor = gguf_tensor(model, rows[i].name);
        memcpy(copy + tensor->offset + 12 + tensor->name.length + 8 * (size_t)tensor->rank,
               &rows[i].type, 4);
        struct gguf *file = parse(copy, model_size);
        assert_true(shape_read(file, &shape, &why));
        assert_null(llama_load(file, &shape, device, &(struct llama_settings){ 0 }, &why));
        if (!strstr(why.text, rows[i].words))
            fail_msg("expected '%s', got: %s", rows[i].words, why.text);
        gguf_close(file);
        free(copy);
    }
}

static void test_unknown_architecture(void **state)
{
    (void)state;
    struct fault why;
    struct shape shape;
    uint8_t *copy = copy_model();
    memcpy(copy + offset_of("general.architecture") + 8, "other", 5);
    struct gguf *file = parse(copy, model_size);
    assert_false(shape_read(file, &shape, &why));
    assert_non_null(
        strstr(why.text, "'general.architecture' is 'other', supported are 'llama'"));
    gguf_close(file);
    free(copy);
}

static void test_unsupported_ops(void **state)
{
    (void)state;
    struct fault why;
    struct shape shape;
    struct variant experts = { .pair_count = 1 }, softcap = { .pair_count = 1 };
    put_key(&experts.pairs, "llama.expert_count", GGUF_U32);
    put_u32(&experts.pairs, 8);
    put_key(&softcap.pairs, "llama.attn_logit_softcapping", GGUF_F32);
    put_f32(&softcap.pairs, 30);
    struct blob blobs[] = { rewrite(&experts), rewrite(&softcap) };
    const char *const words[] = { "has 8 experts",
                                  "'llama.attn_logit_softcapping' at byte" };
    for (int i = 0; i < 2; i++) {
        struct gguf *file = parse(blobs[i].bytes, blobs[i].size);
        assert_false(shape_read(file, &shape, &why));
        assert_non_null(strstr(why.text, words[i]));
        gguf_close(file);
        free(blobs[i].bytes);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
        return 2;
    }
    model_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_half_split_rope),
        cmocka_unit_test(test_weight_types),
        cmocka_unit_test(test_untied_output),
        cmocka_unit_test(test_rope_factors),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_invalid_metadata),
        cmocka_unit_test(test_invalid_scaling),
        cmocka_unit_test(test_unsupported_types),
        cmocka_unit_test(test_unknown_architecture),
        cmocka_unit_test(test_unsupported_ops),
    };
    return cmocka_run_group_tests_name("variants", tests, bard_open, bard_close);
}
