/* SPDX-License-Identifier: MIT */
/* quantize.c - see quantize.h. Which tensor gets which type follows the usual mixtures:
 * matrices get the recipe's type; the matrix of the scores, and in the _M recipes part
 * of the values and of ffn_down, get q6_K, because their errors cost most. */
#define _GNU_SOURCE /* memmem */
#include "quantize.h"

#include "dtype.h"
#include "gguf_write.h"
#include "model_file.h"

#include <hw/report.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { QUANTIZATION_VERSION = 2, CHUNK_ELEMENTS = 1 << 20 };

/* The numbers of files are those of `general.file_type` in GGUF's documentation, and of
 * llama.cpp for BF16, which is younger. */
struct recipe {
    uint32_t type;      /* of most matrices */
    uint32_t file_type; /* general.file_type */
    bool more;          /* q6_K for part of the layers */
};

static const char *const names[] = { "f32",    "f16",    "bf16",   "q8_0", "q4_0", "q4_1",
                                     "q5_0",   "q5_1",   "q4_K",   "q5_K", "q6_K", "Q4_K_S",
                                     "Q4_K_M", "Q5_K_S", "Q5_K_M", NULL };
static const struct recipe recipes[] = {
    { GGUF_TYPE_F32, 0, false },   { GGUF_TYPE_F16, 1, false },
    { GGUF_TYPE_BF16, 32, false }, { GGUF_TYPE_Q8_0, 7, false },
    { GGUF_TYPE_Q4_0, 2, false },  { GGUF_TYPE_Q4_1, 3, false },
    { GGUF_TYPE_Q5_0, 8, false },  { GGUF_TYPE_Q5_1, 9, false },
    { GGUF_TYPE_Q4_K, 14, false }, { GGUF_TYPE_Q5_K, 16, false },
    { GGUF_TYPE_Q6_K, 18, false }, { GGUF_TYPE_Q4_K, 14, false },
    { GGUF_TYPE_Q4_K, 15, true },  { GGUF_TYPE_Q5_K, 16, false },
    { GGUF_TYPE_Q5_K, 17, true },
};
_Static_assert(sizeof recipes / sizeof *recipes == sizeof names / sizeof *names - 1,
               "a name for each recipe");

const char *const *recipe_names(void)
{
    return names;
}

const struct recipe *recipe_find(const char *name)
{
    for (size_t i = 0; names[i]; i++)
        if (strcasecmp(name, names[i]) == 0)
            return &recipes[i];
    return NULL;
}

/* ---- Which type ---------------------------------------------------------------------- */

/* Facts of a file that decide the types of its tensors. */
struct choice {
    const struct recipe *recipe;
    bool pure;
    bool tied;      /* the embedding is also the matrix of the scores */
    int64_t layers; /* one more than the largest number in a name */
};

static bool contains(struct gguf_string name, const char *part)
{
    return memmem(name.bytes, name.length, part, strlen(part));
}

static bool ends_with(struct gguf_string name, const char *end)
{
    const size_t length = strlen(end);
    return name.length >= length &&
           memcmp(name.bytes + name.length - length, end, length) == 0;
}

/* The number in "blk.N.", or -1. */
static int64_t layer_of(struct gguf_string name)
{
    int64_t layer = 0;
    size_t i = 4;
    if (name.length < 6 || memcmp(name.bytes, "blk.", 4) != 0)
        return -1;
    for (; i < name.length && name.bytes[i] >= '0' && name.bytes[i] <= '9' && i < 12; i++)
        layer = 10 * layer + name.bytes[i] - '0';
    return i > 4 && i < name.length && name.bytes[i] == '.' ? layer : -1;
}

/* Norms, biases and other small tensors stay as they are, and so do the matrices that choose
 * experts. */
static bool is_matrix(const struct gguf_tensor *tensor)
{
    const uint64_t *extents = tensor->extents;
    return (extents[1] > 1 || extents[2] > 1 || extents[3] > 1) &&
           ends_with(tensor->name, "weight") && !contains(tensor->name, "_norm.weight") &&
           !contains(tensor->name, "ffn_gate_inp");
}

/* The first and the last eighth of the layers, and every third one between them. */
static bool layer_matters(int64_t layer, int64_t layers)
{
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

static bool fits(const struct gguf_tensor *tensor, uint32_t type)
{
    return tensor->extents[0] % gguf_type_block(type) == 0;
}

static uint32_t type_wanted(const struct choice *c, const struct gguf_tensor *tensor)
{
    const uint32_t type = c->recipe->type;
    if (gguf_type_block(type) == 1 || c->pure)
        return type;
    if (gguf_string_is(tensor->name, "output.weight") ||
        (c->tied && gguf_string_is(tensor->name, "token_embd.weight")))
        return type == GGUF_TYPE_Q8_0 || !fits(tensor, type) ? GGUF_TYPE_Q8_0
                                                             : GGUF_TYPE_Q6_K;
    if (c->recipe->more &&
        (contains(tensor->name, "attn_v.weight") || contains(tensor->name, "ffn_down")) &&
        layer_matters(layer_of(tensor->name), c->layers))
        return GGUF_TYPE_Q6_K;
    return type;
}

/* A type of similar precision for rows that are not whole blocks of the first one. */
static uint32_t type_that_fits(const struct gguf_tensor *tensor, uint32_t wanted)
{
    static const uint32_t smaller[][2] = { { GGUF_TYPE_Q4_K, GGUF_TYPE_Q5_0 },
                                           { GGUF_TYPE_Q5_K, GGUF_TYPE_Q5_1 },
                                           { GGUF_TYPE_Q6_K, GGUF_TYPE_Q8_0 } };
    if (fits(tensor, wanted))
        return wanted;
    for (size_t i = 0; i < sizeof smaller / sizeof *smaller; i++)
        if (smaller[i][0] == wanted && fits(tensor, smaller[i][1]))
            return smaller[i][1];
    return GGUF_TYPE_F16;
}

static bool decide(const struct gguf *file, const struct choice *c,
                   struct quantize_step *step, struct fault *why)
{
    const struct gguf_tensor *from = step->from;
    step->wanted = is_matrix(from) ? type_wanted(c, from) : from->type;
    step->to = type_that_fits(from, step->wanted);
    step->bytes = from->bytes / gguf_type_bytes(from->type) * gguf_type_block(from->type) /
                  gguf_type_block(step->to) * gguf_type_bytes(step->to);
    return step->to == from->type || dtype_of(from->type) ||
           fault(
               why,
               "%s: tensor '%.*s' has type %s, which hw cannot convert; begin with a file "
               "of F32, F16 or BF16",
               file->path, (int)from->name.length, from->name.bytes,
               gguf_type_name(from->type));
}

bool quantize_decide(const struct gguf *file, const struct recipe *recipe, bool pure,
                     struct quantize_plan *plan, struct fault *why)
{
    *plan = (struct quantize_plan){ 0 };
    if (!model_file_is_whole(file, why))
        return false;
    const struct gguf_tensor **order = gguf_in_order(file);
    struct choice c = { .recipe = recipe,
                        .pure = pure,
                        .tied = !gguf_tensor(file, "output.weight") };
    *plan = (struct quantize_plan){ .steps = calloc(file->tensor_count + 1,
                                                    sizeof *plan->steps) };
    bool good = (order && plan->steps) || fault(why, "%s: out of memory", file->path);
    for (size_t i = 0; i < file->tensor_count; i++) {
        const int64_t layer = layer_of(file->tensors[i].name);
        c.layers = layer >= c.layers ? layer + 1 : c.layers;
    }
    for (size_t i = 0; good && i < file->tensor_count; i++) {
        struct quantize_step *step = &plan->steps[plan->count++];
        step->from = order[i];
        good = decide(file, &c, step, why);
        plan->before += step->from->bytes;
        plan->after += step->bytes;
    }
    free(order);
    return good;
}

void quantize_free(struct quantize_plan *plan)
{
    free(plan->steps);
    *plan = (struct quantize_plan){ 0 };
}

/* ---- Conversion ---------------------------------------------------------------------- */

struct job {
    const struct gguf *file;
    const struct quantize_plan *plan;
    const struct quantize_output *output;
    struct hw_queue *queue;
    struct gguf_writer *writer;
    float *values; /* a chunk, as f32 */
    void *blocks;  /* the same, in the type that is written */
    uint64_t done; /* bytes of tensors read */
};

static bool interrupted(struct job *job, uint64_t bytes, struct fault *why)
{
    const struct quantize_output *o = job->output;
    job->done += bytes;
    return o->progress && !o->progress(o->user, job->done, job->plan->before) &&
           (fault_say(why, "interrupted; %s is not written", o->path), true);
}

/* Converts `count` elements between two places in host memory. */
static bool convert(struct job *job, const void *from, int32_t from_dtype, void *to,
                    int32_t to_dtype, int64_t count, struct fault *why)
{
    const struct hw_copy op = { .src = hw_host_1d(from, from_dtype, count),
                                .dst = hw_host_1d(to, to_dtype, count) };
    return (!hw_copy(job->queue, &op) && !hw_queue_wait(job->queue)) ||
           fault(why, "convert %s to %s: %s", hw_dtype_name(from_dtype),
                 hw_dtype_name(to_dtype), hw_message());
}

/* Refuses NaN and infinities, which a quantiser would turn into numbers, and numbers too large
 * for f16. */
static bool check_values(const struct job *job, const struct quantize_step *step,
                         const float *values, int64_t count, struct fault *why)
{
    const float limit = step->to == GGUF_TYPE_F16 ? 65504 : INFINITY;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]) || fabsf(values[i]) > limit)
            return fault(
                why, "%s: tensor '%.*s' has the value %g, which %s cannot store; %s",
                job->file->path, (int)step->from->name.length, step->from->name.bytes,
                (double)values[i], gguf_type_name(step->to),
                isfinite(values[i]) ? "use bf16 or f32" : "the file is damaged");
    return true;
}

/* Reads `count` elements at byte `at` of a tensor, and writes them in the other type. */
static bool write_chunk(struct job *job, const struct quantize_step *step, uint64_t at,
                        int64_t count, struct fault *why)
{
    const void *from = (const uint8_t *)step->from->data + at;
    const float *values = from;
    if (step->from->type != GGUF_TYPE_F32) {
        if (!convert(job, from, dtype_of(step->from->type), job->values, HW_F32, count,
                     why))
            return false;
        values = job->values;
    }
    if (!check_values(job, step, values, count, why))
        return false;
    const void *result = values;
    if (step->to != GGUF_TYPE_F32) {
        if (!convert(job, values, HW_F32, job->blocks, dtype_of(step->to), count, why))
            return false;
        result = job->blocks;
    }
    return gguf_put_data(
        job->writer, result,
        (size_t)count / gguf_type_block(step->to) * gguf_type_bytes(step->to), why);
}

/* Rows are whole blocks of both types, so a tensor may be cut at any whole number of blocks of
 * both, as CHUNK_ELEMENTS is. */
static bool write_converted(struct job *job, const struct quantize_step *step,
                            struct fault *why)
{
    const uint64_t block = gguf_type_block(step->from->type);
    const uint64_t bytes = gguf_type_bytes(step->from->type);
    const uint64_t total = step->from->bytes / bytes * block;
    for (uint64_t i = 0, count; i < total; i += count) {
        count = total - i < CHUNK_ELEMENTS ? total - i : CHUNK_ELEMENTS;
        if (!write_chunk(job, step, i / block * bytes, (int64_t)count, why) ||
            interrupted(job, count / block * bytes, why))
            return false;
    }
    return true;
}

static bool write_as_it_is(struct job *job, const struct quantize_step *step,
                           struct fault *why)
{
    const uint8_t *data = step->from->data;
    for (uint64_t i = 0, size; i < step->from->bytes; i += size) {
        size = step->from->bytes - i;
        size = size < CHUNK_ELEMENTS ? size : CHUNK_ELEMENTS;
        if (!gguf_put_data(job->writer, data + i, (size_t)size, why) ||
            interrupted(job, size, why))
            return false;
    }
    return true;
}

/* ---- The file ------------------------------------------------------------------------ */

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_pair *const *x = a, *const *y = b;
    return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

/* Copies the metadata in their order; the two keys that change come last. */
static bool describe_pairs(struct job *job, const struct recipe *recipe, struct fault *why)
{
    const struct gguf *file = job->file;
    const struct gguf_pair **order = calloc(file->pair_count + 1, sizeof *order);
    bool good = order || fault(why, "%s: out of memory", file->path);
    for (size_t i = 0; good && i < file->pair_count; i++)
        order[i] = &file->pairs[i];
    if (good)
        qsort(order, file->pair_count, sizeof *order, compare_offsets);
    for (size_t i = 0; good && i < file->pair_count; i++)
        if (!gguf_string_is(order[i]->key, "general.file_type") &&
            !gguf_string_is(order[i]->key, "general.quantization_version"))
            good = gguf_put_pair(job->writer, file, order[i], why);
    free(order);
    return good && gguf_put_u32(job->writer, "general.file_type", recipe->file_type, why) &&
           gguf_put_u32(job->writer, "general.quantization_version", QUANTIZATION_VERSION,
                        why);
}

/* Tries all conversions on a few elements before anything is written. */
static bool try_types(struct job *job, struct fault *why)
{
    memset(job->values, 0, CHUNK_ELEMENTS * sizeof *job->values);
    for (size_t i = 0; i < job->plan->count; i++) {
        const struct quantize_step *step = &job->plan->steps[i];
        const int32_t from = dtype_of(step->from->type), to = dtype_of(step->to);
        if (step->to == step->from->type)
            continue;
        if (!to)
            return fault(why, "the library has no type %s", gguf_type_name(step->to));
        if ((to != HW_F32 &&
             !convert(job, job->values, HW_F32, job->blocks, to, 256, why)) ||
            (from != HW_F32 && !convert(job, step->from->data, from, job->values, HW_F32,
                                        hw_dtype_block(from), why)))
            return false;
    }
    return true;
}

static bool write_file(struct job *job, const struct recipe *recipe, struct fault *why)
{
    const struct quantize_plan *plan = job->plan;
    if (!describe_pairs(job, recipe, why))
        return false;
    for (size_t i = 0; i < plan->count; i++)
        if (!gguf_put_tensor(job->writer, plan->steps[i].from, plan->steps[i].to, why))
            return false;
    for (size_t i = 0; i < plan->count; i++) {
        const struct quantize_step *step = &plan->steps[i];
        if (!(step->to == step->from->type ? write_as_it_is(job, step, why)
                                           : write_converted(job, step, why)))
            return false;
    }
    if (!gguf_finish(job->writer, why))
        return false;
    job->writer = NULL;
    return true;
}

bool quantize_write(const struct gguf *file, const struct recipe *recipe,
                    const struct quantize_plan *plan, const struct quantize_output *output,
                    struct fault *why)
{
    struct job job = { .file = file, .plan = plan, .output = output };
    job.values = malloc(CHUNK_ELEMENTS * sizeof *job.values);
    job.blocks = malloc(CHUNK_ELEMENTS * sizeof *job.values);
    const struct gguf_target target = { .path = output->path,
                                        .alignment = file->alignment,
                                        .replace = output->replace };
    bool good = (job.values && job.blocks) || fault(why, "out of memory");
    if (good && hw_queue_open(output->device, NULL, &job.queue))
        good = fault(why, "open a queue: %s", hw_message());
    good = good && try_types(&job, why) && (job.writer = gguf_create(&target, why)) &&
           write_file(&job, recipe, why);
    gguf_abandon(job.writer);
    hw_queue_close(job.queue);
    free(job.values);
    free(job.blocks);
    return good;
}
