/* SPDX-License-Identifier: MIT */
/* fuzz_metadata.c - arbitrary bytes as a model file, as `hw inspect` and `hw quantize`
 * read it: the metadata as JSON, and which type each tensor would get. */
#include "model/gguf/quantize.h"
#include "model/metadata.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void print(const struct gguf *file, size_t most)
{
    json_t *tree = metadata_json(file, most);
    char *text = json_dumps(tree, JSON_COMPACT);
    if (!text || json_object_size(tree) != file->pair_count)
        abort();
    free(text);
    json_decref(tree);
}

/* Each tensor becomes whole blocks of a type that the reader knows, or the reason is
 * said. */
static void decide(const struct gguf *file, const char *name, bool pure)
{
    struct fault why = { "" };
    struct quantize_plan plan;
    if (quantize_decide(file, recipe_find(name), pure, &plan, &why) != !why.text[0])
        abort();
    for (size_t i = 0; !why.text[0] && i < plan.count; i++) {
        const struct quantize_step *step = &plan.steps[i];
        if (step->from->extents[0] % gguf_type_block(step->to) ||
            step->bytes % gguf_type_bytes(step->to) ||
            (step->to == step->from->type && step->bytes != step->from->bytes))
            abort();
    }
    quantize_free(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct gguf *file = gguf_parse(bytes, size, "fuzz", NULL);
    if (!file)
        return 0;
    print(file, 8);
    print(file, SIZE_MAX);
    for (const char *const *name = recipe_names(); *name; name++) {
        decide(file, *name, false);
        decide(file, *name, true);
    }
    gguf_close(file);
    return 0;
}
