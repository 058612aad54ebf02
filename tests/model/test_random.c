/* SPDX-License-Identifier: MIT */
/* test_random.c - models of known shapes with random weights have as many parameters, and as large
 * a cache, as the published models of these names. */
#include "model/llama/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Numbers in the files of TinyLlama/TinyLlama-1.1B, meta-llama/Llama-2-7b,
 * mistralai/Mistral-7B-v0.2 and meta-llama/Meta-Llama-3-8B; and of keys and values for a token. */
static const struct {
    const char *name;
    uint64_t parameters;
    int64_t cached, context;
} published[] = {
    { "tinyllama", 1100048384, 2 * 22 * 4 * 64, 2048 },
    { "llama-2-7b", 6738415616, 2 * 32 * 32 * 128, 4096 },
    { "mistral-7b", 7241732096, 2 * 32 * 8 * 128, 32768 },
    { "llama-3-8b", 8030261248, 2 * 32 * 8 * 128, 8192 },
};
enum { PUBLISHED = sizeof published / sizeof published[0] };

static uint64_t parameters_of(const char *name, const struct shape *shape, const char *type)
{
    struct fault why = { "" };
    uint64_t sum = 0;
    struct gguf *model = random_model(name, shape, recipe_find(type), &why);
    if (!model)
        fail_msg("%s, %s: %s", name, type, why.text);
    for (size_t i = 0; i < model->tensor_count; i++) {
        uint64_t count = 1;
        for (int j = 0; j < model->tensors[i].rank; j++)
            count *= model->tensors[i].extents[j];
        sum += count;
    }
    assert_int_equal(model->fd, -1);
    gguf_close(model);
    return sum;
}

static void shapes_are_those_of_the_models(void **state)
{
    static const char *const types[] = { "bf16", "q8_0", "q4_K_M" };
    (void)state;
    for (int i = 0; i < PUBLISHED; i++) {
        const char *name = published[i].name;
        const struct shape *shape = random_shape(name);
        assert_non_null(shape);
        for (int j = 0; j < 3; j++)
            assert_int_equal(parameters_of(name, shape, types[j]), published[i].parameters);
        assert_int_equal(shape->layers * shape->kv_heads *
                             (shape->key_width + shape->value_width),
                         published[i].cached);
        assert_int_equal(shape->context, published[i].context);
    }
}

/* And there is a published model for each. */
static void no_shape_is_missing(void **state)
{
    int count = 0;
    (void)state;
    for (const char *const *name = random_names(); *name; name++)
        count += strcmp(*name, "tiny") != 0;
    assert_int_equal(count, PUBLISHED);
    assert_null(random_shape("mistral"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_those_of_the_models),
        cmocka_unit_test(no_shape_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
