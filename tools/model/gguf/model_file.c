/* SPDX-License-Identifier: MIT */
/* model_file.c - see model_file.h. The keys are `split.*` and `general.*` of the format. */
#include "model_file.h"

#include <inttypes.h>

enum {
    QUANTIZATION_VERSION = 2
}; /* of the blocks; version 1 ordered the elements otherwise */

static bool has_blocks(const struct gguf *file)
{
    for (size_t i = 0; i < file->tensor_count; i++)
        if (gguf_type_block(file->tensors[i].type) > 1)
            return true;
    return false;
}

static bool check_blocks(const struct gguf *file, struct fault *why)
{
    uint64_t version = QUANTIZATION_VERSION;
    if (!gguf_get_count(file, "general.quantization_version", &version, why))
        return false;
    return version == QUANTIZATION_VERSION || !has_blocks(file) ||
           fault(why,
                 "%s: key 'general.quantization_version' is %" PRIu64
                 ", only version %d is supported; quantize the model again from F16",
                 file->path, version, QUANTIZATION_VERSION);
}

/* A file that was joined, or that is the only part, has a count of 0 or 1. */
static bool check_parts(const struct gguf *file, struct fault *why)
{
    uint64_t count = 0, number = UINT64_MAX;
    if (!gguf_get_count(file, "split.count", &count, why) ||
        !gguf_get_count(file, "split.no", &number, why))
        return false;
    if (count <= 1)
        return true;
    static const char remedy[] =
        "join the parts with 'llama-gguf-split --merge', which takes the names of the first "
        "part and of the file to write";
    return number < count
               ? fault(why,
                       "%s: is part %" PRIu64 " of %" PRIu64
                       " of a split model, and hw reads models in one file; %s",
                       file->path, number + 1, count, remedy)
               : fault(why,
                       "%s: is one of %" PRIu64
                       " parts of a split model, and hw reads models in one file; %s",
                       file->path, count, remedy);
}

bool model_file_is_whole(const struct gguf *file, struct fault *why)
{
    return check_parts(file, why) && check_blocks(file, why);
}

static const char *explain(struct gguf_string type)
{
    static const struct {
        const char *type, *words;
    } rows[] = {
        { "adapter",
          "it is merged into its model with 'llama-export-lora'; use that file" },
        { "mmproj", "it reads images or sound for a model; use the file of that model" },
        { "imatrix", "it has statistics for quantizing; use the file of the model" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (gguf_string_is(type, rows[i].type))
            return rows[i].words;
    return "use the file of a model";
}

bool model_file_is_model(const struct gguf *file, struct fault *why)
{
    /* Older adapters have no type. */
    struct gguf_string type = { "model", 5 };
    if (gguf_find(file, "adapter.type"))
        type = (struct gguf_string){ "adapter", 7 };
    if (!gguf_get_string(file, "general.type", &type, why))
        return false;
    return gguf_string_is(type, "model") ||
           fault(why, "%s: is not a model by itself, its 'general.type' is '%s': %s",
                 file->path, gguf_quote(type).text, explain(type));
}
